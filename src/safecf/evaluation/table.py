"""An evaluation as rows, and as a Markdown table."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from safecf.evaluation.result import Evaluation


def rows(
    evaluation: "Evaluation",
    metrics: Sequence[str],
    levels: Sequence[float],
    confidence: float | None,
) -> list[dict[str, Any]]:
    """Return a record per metric and level; `low` and `high` only where `confidence` is given."""
    found = []
    for metric in metrics:
        for level in levels:
            row = {"model": evaluation.model, "metric": metric, "level": level}
            row["value"] = evaluation.tail(metric, level)
            if confidence is not None:
                row["low"], row["high"] = evaluation.interval(metric, level, confidence)
            found.append(row)
    return found


def table(
    evaluation: "Evaluation",
    metrics: Sequence[str],
    levels: Sequence[float],
    confidence: float | None,
) -> str:
    """Return one line per metric, with one column per level."""
    lines = [[evaluation.model, *(level_name(level) for level in levels)]]
    lines.append(["---"] * len(lines[0]))
    for metric in metrics:
        cells = [_cell(row) for row in rows(evaluation, [metric], levels, confidence)]
        lines.append([metric, *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def level_name(level: float) -> str:
    """Write `worst 30 %`, or `all users`."""
    return "all users" if level == 1 else f"worst {100 * level:g} %"


def _cell(row: dict[str, Any]) -> str:
    interval = f" [{row['low']:.4f}, {row['high']:.4f}]" if "low" in row else ""
    return f"{row['value']:.4f}{interval}"
