"""Train, evaluate and compare models, write files, print results: what commands share."""

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import JustifyMethod
from rich.table import Table

from safecf.atomic import replace_file
from safecf.cli.output_files import Target, raise_all, write_all
from safecf.cli.running import check_interrupt
from safecf.cli.terminal import Plain, Rows, print_json
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
from safecf.evaluation.json_records import CHECKSUM, sealed, to_json
from safecf.measures.tails import check_level, level_name, whom
from safecf.models.callbacks import Watching
from safecf.models.recommender import Recommender
from safecf.reporting import report
from safecf.tuning import Tuning


@dataclass(frozen=True)
class Output:
    """What to measure and show, and where to write it."""

    metric: str
    k: tuple[int, ...]
    level: float
    report_path: Path | None = None
    json_path: Path | None = None
    quiet: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    as_json: bool = False  # whether to print all numbers as JSON instead of tables

    def __post_init__(self) -> None:
        check_level(self.level)

    @property
    def paths(self) -> list[tuple[str, Path | None]]:
        """The files to write, by option."""
        return [("--report", self.report_path), ("--out", self.json_path)]

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
            watch = Watching(check_interrupt)
            model.fit(training, show_progress=not output.quiet, callback=watch)
        check_interrupt()
        found.append(
            evaluate(model, split, output.k, output.tails, name=name, settings=output.settings)
        )
    return found


def finish(
    console: Plain,
    evaluations: list[Evaluation],
    output: Output,
    data_summary: Mapping[str, object],
    *,
    tuning: Tuning | None = None,
    more: Sequence[Target] = (),
    kept: Sequence[Path] = (),
    last: str = "",
) -> None:
    """Write the requested files, then print the results; raise at the end if a file failed.

    If the models were tuned, the files have all trials. `more` are other files to write, such as
    models, `kept` are files that exist already, and `last` is said at the end.
    """
    check_interrupt()
    results = compare(evaluations) if len(evaluations) > 1 else evaluations[0]
    targets = list(_targets(results, output, data_summary, tuning))
    written, problems = write_all([*targets, *more])
    if output.as_json:
        print_json(_record(results, output, tuning))
        raise_all(problems)
        return
    if tuning is not None:
        print_trials(console, tuning)
    print_scores(console, evaluations, output.metric, output.level)
    if isinstance(results, Comparison):
        _print_comparison(console, results, output.metric, output.level)
    if last:
        console.print(last)
    for file in (*written, *kept):
        console.line_of(f"written: {file}")
    raise_all(problems)


def _targets(
    results: Comparison | Evaluation,
    output: Output,
    data_summary: Mapping[str, object],
    tuning: Tuning | None,
) -> Iterator[Target]:
    """Yield the report and the numbers, as far as they were requested."""
    page, numbers = output.report_path, output.json_path
    metric, level = output.metric, output.level

    def write_report() -> None:
        if page is not None:
            report(
                results,
                page,
                metric=metric,
                level=level,
                data_summary=data_summary,
                tuning=tuning,
            )

    def write_numbers() -> None:
        if numbers is not None:
            record = _record(results, output, tuning)
            numbers.parent.mkdir(parents=True, exist_ok=True)
            replace_file(numbers, json.dumps(record).encode())

    if page is not None:
        yield Target("--report", page, write_report)
    if numbers is not None:
        yield Target("--out", numbers, write_numbers)


def _record(
    results: Comparison | Evaluation, output: Output, tuning: Tuning | None
) -> dict[str, Any]:
    """Return all numbers as JSON values, which `--out` writes and `--json` prints."""
    record = results.to_dict(level=output.level)
    if tuning is not None:
        record.pop(CHECKSUM)
        record = sealed({**record, "tuning": to_json(tuning.to_dict())})
    return record


def scores_of(evaluation: Evaluation, metric: str, level: float) -> dict[str, Any]:
    """Return mean and tail with their intervals, as JSON values."""
    found: dict[str, Any] = {"users": evaluation.num_users, "metric": metric, "level": level}
    for name, share in (("mean", 1.0), ("tail", level)):
        found[name] = evaluation.tail(metric, share)
        found[f"{name}_interval"] = list(evaluation.interval(metric, share))
    return found


def print_scores(console: Plain, evaluations: list[Evaluation], metric: str, level: float) -> None:
    """Print mean and tail with their intervals.

    Where the tail is zero with every model, it says so, and shows another metric beside it.
    """
    columns = {(metric, share): level_name(share) for share in (1.0, level)}
    floor = find_floor(evaluations, metric, level)
    if floor is not None and floor.beside is not None:
        columns[floor.beside, level] = f"{floor.beside}, {level_name(level)}"
    title = f"{metric}{_of_whom(evaluations[0])}, {100 * CONFIDENCE:g} % intervals"
    table = Rows(title, ["model"], list(columns.values()))
    for each in evaluations:
        cells = []
        for name, share in columns:
            low, high = each.interval(name, share)
            cells.append(f"{each.tail(name, share):.4f}  [{low:.4f}, {high:.4f}]")
        table.add_row(each.model, *cells)
    table.show(console)
    cautions = dict.fromkeys(evaluations[0].caution(name, share) for name, share in columns)
    for caution in filter(None, cautions):
        console.print(f"caution: {caution}")
    if floor is not None:
        console.print(str(floor))


def _print_comparison(console: Plain, comparison: Comparison, metric: str, level: float) -> None:
    """Print the verdict on every model, and how many splits it wins."""
    for other in comparison.others:
        console.print(comparison.verdict(other, metric, level))
    if comparison.baseline.splits is not None:
        for other in comparison.others:
            console.print(_splits_won(comparison, other, metric, level))


def print_trials(console: Plain, tuning: Tuning) -> None:
    """Print the front of every model, or its best trial, beside its defaults."""
    objective = tuning.objective
    for search, best in zip(tuning.searches, tuning.picked, strict=True):
        chosen = search.front if objective.kind == "both" else []
        rows = {each.number: each for each in (search.trials[0], best, *chosen)}
        title = f"{search.name}: {objective.metric} of the validation users"
        levels = [level_name(level) for level in (1.0, objective.level)]
        table = Table(title=f"{title}, {len(search.trials)} trials")
        for heading in ("trial", *levels, "", "epochs", *search.space):
            side: JustifyMethod = "right" if heading else "left"
            width = max(
                map(len, (heading or "defaults, picked", "0.1234"))
            )  # whole names, in long lines
            table.add_column(heading, justify=side, overflow="fold", min_width=width)
        for each in sorted(rows.values(), key=lambda each: each.scores or (0.0, 0.0)):
            options = [_short(each.options[name]) for name in search.space]
            scores = [f"{score:.4f}" for score in each.scores or ()]
            notes = ["defaults"] * (each.number == 0) + ["picked"] * (each.number == best.number)
            told = ", ".join(notes)
            table.add_row(str(each.number), *scores, told, str(each.epochs), *options)
        console.print(table, crop=False)
        for name in search.edges(best):
            told = f"{name} is near an end of its range, {search.space[name]}"
            console.print(f"{told}; a wider --range may help")


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


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
