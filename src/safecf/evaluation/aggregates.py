"""The numbers of an evaluation: rows, a Markdown table, and all that its report shows."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from safecf.evaluation.profile import tail_profile
from safecf.measures.bootstrap import Draws
from safecf.measures.tails import level_name

if TYPE_CHECKING:
    from safecf.evaluation.result import Evaluation


def rows(
    evaluation: "Evaluation",
    metrics: Sequence[str],
    levels: Sequence[float],
    confidence: float | None,
) -> list[dict[str, Any]]:
    """Return a record per metric and level, with `low` and `high` if `confidence` is given."""
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
    """Return a Markdown table: one line per metric, one column per level."""
    lines = [[evaluation.model, *(level_name(level) for level in levels)]]
    lines.append(["---"] * len(lines[0]))
    for metric in metrics:
        cells = [_cell(row) for row in rows(evaluation, [metric], levels, confidence)]
        lines.append([metric, *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(row: dict[str, Any]) -> str:
    interval = f" [{row['low']:.4f}, {row['high']:.4f}]" if "low" in row else ""
    return f"{row['value']:.4f}{interval}"


def by_metric(evaluation: "Evaluation", level: float, draws: Draws) -> dict[str, Any]:
    """Return, by metric: tails with intervals and VaR, the quantile curve, groups, the profile.

    Metrics for which no user has a score are left out.
    """
    found = {}
    for metric in evaluation.scored_metrics:
        tails = []
        for each in sorted({*evaluation.tails, level, 1.0}):
            value, low, high = evaluation.estimate(metric, each, draws)
            tails.append(
                {
                    "level": each,
                    "value": value,
                    "low": low,
                    "high": high,
                    "value_at_risk": evaluation.value_at_risk(metric, each),
                }
            )
        shares, scores = evaluation.quantile_curve(metric)
        found[metric] = {
            "tails": tails,
            "quantiles": {"share": shares, "score": scores},
            "groups": evaluation.groups(metric, **asdict(draws)),
            "profile": tail_profile(evaluation, metric, level),
        }
    return found
