"""Train, evaluate and compare: what `demo`, `evaluate` and `compare` have in common."""

import json
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from safecf.atomic import replace_file
from safecf.data.split import Split
from safecf.evaluation import Comparison, Evaluation, compare, evaluate
from safecf.models.recommender import Recommender
from safecf.report import report


def train_and_evaluate(
    models: Mapping[str, Recommender], split: Split, *, quiet: bool = False
) -> list[Evaluation]:
    """Train every model that is not trained yet on the training users; score the test users."""
    found = []
    for name, model in models.items():
        if getattr(model, "item_factors", None) is None:
            model.fit(split.train, show_progress=not quiet)
        found.append(evaluate(model, split, name=name))
    return found


def print_results(
    console: Console, evaluations: list[Evaluation], metric: str, level: float
) -> Comparison | None:
    """Print mean and tail with their intervals, and a verdict on every model but the first."""
    users = len(evaluations[0].users.target_count) - evaluations[0].unscored
    table = Table(title=f"{metric} of {users:,} test users, 95 % intervals")
    table.add_column("model")
    for heading in ("all users", f"worst-off {level:.0%}"):
        table.add_column(heading, justify="right")
    for each in evaluations:
        cells = []
        for share in (1.0, level):
            low, high = each.interval(metric, share)
            cells.append(f"{each.tail(metric, share):.4f}  [{low:.4f}, {high:.4f}]")
        table.add_row(each.model, *cells)
    console.print(table)
    if len(evaluations) == 1:
        return None
    comparison = compare(evaluations)
    console.print(comparison.summary(metric, level), highlight=False)
    return comparison


def write_results(
    results: Comparison | Evaluation,
    *,
    json_path: Path | None = None,
    report_path: Path | None = None,
    metric: str,
    level: float,
    data_summary: Mapping[str, object] | None = None,
) -> list[Path]:
    """Write what was asked for, and return where it lies."""
    written = []
    if report_path is not None:
        written.append(
            report(results, report_path, metric=metric, level=level, data_summary=data_summary)
        )
    if json_path is not None:
        json_path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(json_path, json.dumps(results.to_dict()).encode())
        written.append(json_path)
    return written


def describe(split: Split, data: str) -> dict[str, object]:
    """Return what the report says about the data."""
    return {
        "data": data,
        "training users": f"{split.train.shape[0]:,}",
        "items": f"{split.train.shape[1]:,}",
        "interactions": f"{split.train.nnz:,}",
        "test users": f"{split.test.history.shape[0]:,}",
    }
