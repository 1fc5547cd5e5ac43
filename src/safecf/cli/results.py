"""Train, evaluate, compare and show results: shared by `demo`, `evaluate` and `compare`."""

import json
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from safecf.atomic import replace_file
from safecf.data.splits.held_out import Split
from safecf.defaults import CONFIDENCE, CUTOFFS, TAILS
from safecf.evaluation import (
    RANK_METRICS,
    Comparison,
    Evaluation,
    compare,
    evaluate,
    find_floor,
    parse_metric,
)
from safecf.evaluation.json_records import to_json
from safecf.measures.tails import check_level, level_name, whom
from safecf.models.recommender import Recommender
from safecf.reporting import report
from safecf.tuning import Tuning


@dataclass(frozen=True)
class Output:
    """What to measure and show, and where to write it; checked before any work."""

    metric: str
    k: tuple[int, ...]
    level: float
    report_path: Path | None = None
    json_path: Path | None = None
    quiet: bool = False
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_level(self.level)
        for path in (self.report_path, self.json_path):
            if path is not None:
                check_writable(path)

    @property
    def tails(self) -> tuple[float, ...]:
        """The tail levels to evaluate, including the one to show."""
        return tuple(sorted({*TAILS, self.level}))


def choose_metric(metric: str | None, k: Sequence[int] | None) -> tuple[str, tuple[int, ...]]:
    """Return the metric to show, with its cutoff if it has one, and all cutoffs.

    >>> choose_metric("ndcg@10", None), choose_metric("recall", [5]), choose_metric("ndcg", [5])
    (('ndcg@10', (10, 20, 50, 100)), ('recall@5', (5,)), ('ndcg', (5,)))
    """
    cutoffs = list(k or CUTOFFS)
    for each in cutoffs:
        if each < 1:
            raise ValueError(f"--k {each} has to be at least 1; try --k 20")
    name, cutoff = parse_metric(metric or "recall")
    if cutoff is None and name in RANK_METRICS:
        return name, tuple(cutoffs)
    if cutoff is None:
        return f"{name}@{cutoffs[0]}", tuple(cutoffs)
    return f"{name}@{cutoff}", tuple(sorted({*cutoffs, cutoff}))


def check_writable(path: Path) -> None:
    """Raise if no file can be written at this path; no file is created."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name the file to write")
    folder = next(each for each in path.absolute().parents if each.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        reason = problem.strerror if folder.is_dir() else f"{folder} is a file"
        raise OSError(f"cannot write {path}: {reason}; choose another place") from None


def train_and_evaluate(
    models: Mapping[str, Recommender], split: Split, output: Output, *, again: bool = False
) -> list[Evaluation]:
    """Fit the models, and evaluate all of them on the test users.

    Those that are fitted already are left as they are, unless all are to be fitted `again`.
    """
    training = split.training
    found = []
    for name, model in models.items():
        if again or not model.is_fitted:
            model.fit(training, show_progress=not output.quiet)
        found.append(
            evaluate(model, split, output.k, output.tails, name=name, settings=output.settings)
        )
    return found


def show_results(
    console: Console,
    evaluations: list[Evaluation],
    output: Output,
    data_summary: Mapping[str, object],
    tuning: Tuning | None = None,
) -> list[Path]:
    """Print the results, write the requested files, and return their paths.

    If the models were tuned, the files have all trials.
    """
    results = _print(console, evaluations, output.metric, output.level)
    written = []
    if output.report_path is not None:
        written.append(
            report(
                results,
                output.report_path,
                metric=output.metric,
                level=output.level,
                data_summary=data_summary,
                tuning=tuning,
            )
        )
    if output.json_path is not None:
        output.json_path.parent.mkdir(parents=True, exist_ok=True)
        numbers = results.to_dict(level=output.level)
        if tuning is not None:
            numbers["tuning"] = to_json(tuning.to_dict())
        replace_file(output.json_path, json.dumps(numbers).encode())
        written.append(output.json_path)
    return written


def _print(
    console: Console, evaluations: list[Evaluation], metric: str, level: float
) -> Comparison | Evaluation:
    """Print mean and tail with their intervals, and compare the other models with the first.

    Where the tail is zero with every model, it says so, and shows another metric beside it.
    """
    table = Table(title=f"{metric}{_of_whom(evaluations[0])}, {100 * CONFIDENCE:g} % intervals")
    table.add_column("model")
    columns = {(metric, share): level_name(share) for share in (1.0, level)}
    floor = find_floor(evaluations, metric, level)
    if floor is not None and floor.beside is not None:
        columns[floor.beside, level] = f"{floor.beside}, {level_name(level)}"
    for heading in columns.values():
        table.add_column(heading, justify="right")
    for each in evaluations:
        cells = []
        for name, share in columns:
            low, high = each.interval(name, share)
            cells.append(f"{each.tail(name, share):.4f}  [{low:.4f}, {high:.4f}]")
        table.add_row(each.model, *cells)
    console.print(table)
    if len(evaluations) == 1:
        if floor is not None:
            console.print(str(floor), highlight=False)
        return evaluations[0]
    comparison = compare(evaluations)
    console.print(comparison.summary(metric, level), highlight=False)
    if evaluations[0].splits is not None:
        for other in comparison.others:
            console.print(_splits_won(comparison, other, metric, level), highlight=False)
    return comparison


def _of_whom(evaluation: Evaluation) -> str:
    """Return whose mean is shown: ` of 1,000 test users`, or the splits if there are several."""
    users = np.unique(evaluation.user_numbers[evaluation.users.target_count > 0]).size
    if evaluation.splits is None:
        return f" of {users:,} test users"
    return f", mean over {evaluation.num_splits} splits ({users:,} users)"


def _splits_won(comparison: Comparison, other: Evaluation, metric: str, level: float) -> str:
    """Return on how many splits the other model is better, by the metrics of the verdict."""
    floor = comparison.floor(metric, level)
    measured = metric if floor is None else floor.beside or metric
    said = [
        f"{comparison.difference(other, name, each).splits_won} for {whom(each)}"
        + (f" ({name})" if measured != metric else "")
        for each, name in {1.0: metric, level: measured}.items()
    ][::-1]
    return f"Of {other.num_splits} splits, {other.model} is better on {' and '.join(said)}"


def describe(split: Split, data: str) -> dict[str, object]:
    """Return the facts about the data that the report shows."""
    return {
        "data": data,
        "training users": f"{split.train.shape[0]:,}",
        "items": f"{split.train.shape[1]:,}",
        "interactions": f"{split.train.nnz:,}",
        "test users": f"{split.test.history.shape[0]:,}",
    }


def command_line() -> str:
    """Return the running command, quoted for a shell."""
    return shlex.join(["safecf", *sys.argv[1:]])
