"""`safecf evaluate` and `safecf compare`: ranking quality of all users and of the worst-off."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from safecf.cli.command_options import (
    MODELS,
    DataOptions,
    RepeatedSplitOptions,
    SplitOptions,
    check_seed,
    with_records,
)
from safecf.defaults import LEVEL, METRIC

if TYPE_CHECKING:
    from safecf.evaluation import Evaluation


@dataclass(frozen=True)
class RunOptions:
    """Which models to evaluate, and what to show and write of the results."""

    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            "-m",
            help="A model and its options, as in safer2:factors=32,bandwidth=0.15, or the file of "
            f"a saved model; may be repeated. Models: {', '.join(MODELS)}.",
        ),
    ]
    seed: Annotated[int, typer.Option(help="Seed of the models.")] = 0
    metric: Annotated[
        str | None,
        typer.Option(help="Metric to show, such as recall, ndcg@10, or auc.", show_default=METRIC),
    ] = None
    k: Annotated[
        list[int] | None,
        typer.Option(help="Cutoff of the rankings; may be repeated.", show_default="20 50 100"),
    ] = None
    tail: Annotated[float, typer.Option(help="Share of worst-off users to show.")] = LEVEL
    report: Annotated[Path | None, typer.Option(help="Write the tail report, an HTML page.")] = None
    out: Annotated[Path | None, typer.Option(help="Write all numbers as JSON.")] = None
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")] = False


@with_records
def evaluate(data: DataOptions, split: RepeatedSplitOptions, options: RunOptions) -> None:
    """Evaluate models on held-out users: the mean, and the mean of the worst-off users.

    Models are trained first, unless they are loaded from a file. For example:

    safecf evaluate ratings.csv --rating stars --min-rating 4 -m safer2:factors=32 --report out.html
    """
    _run(data, split, options)


@with_records
def compare(data: DataOptions, split: RepeatedSplitOptions, options: RunOptions) -> None:
    """Compare models with the first one, user by user, with confidence intervals.

    For example:

    safecf compare clicks.parquet --user visitor --item page -m ials -m safer2 --report out.html

    safecf compare ml-1m -m ials:factors=32 -m safer2:factors=32 --repeats 10
    """
    if len(options.model) < 2:
        raise ValueError(
            "one model cannot be compared; add another one with -m, or use safecf evaluate"
        )
    _run(data, split, options)


def _run(data: DataOptions, split: RepeatedSplitOptions, options: RunOptions) -> None:
    # Imported here, so that the command line starts fast and Ctrl-C works from the start.
    from safecf.cli import inputs, results  # noqa: PLC0415
    from safecf.cli.output_files import check_targets, input_files  # noqa: PLC0415
    from safecf.cli.running import check_interrupt  # noqa: PLC0415
    from safecf.cli.terminal import Plain  # noqa: PLC0415
    from safecf.evaluation import over_splits  # noqa: PLC0415

    check_seed("--seed", options.seed)
    metric, cutoffs = results.choose_metric(options.metric, options.k)
    output = results.Output(
        metric,
        cutoffs,
        options.tail,
        options.report,
        options.out,
        options.quiet,
        settings=inputs.split_settings(data, split) | {"command": results.command_line()},
    )
    check_targets(output.paths, input_files(data, options.model))
    models = inputs.name_models(options.model, options.seed)
    if split.repeats > 1:
        inputs.refuse_fitted(models)
    loaded = inputs.load_data(data)
    check_interrupt()

    def run(number: int, each: SplitOptions) -> tuple[list["Evaluation"], dict[str, object]]:
        """Train and evaluate on one split, which is not kept; also return its facts."""
        if split.repeats > 1 and not options.quiet:
            Plain(stderr=True).print(f"split {number} of {split.repeats}")
        made = loaded.split(each)
        found = results.train_and_evaluate(models, made, output, again=split.repeats > 1)
        return found, results.describe(made, " ".join(data.data))

    found, facts = zip(*(run(*each) for each in enumerate(split.each(), start=1)), strict=True)
    evaluations = [over_splits(each) for each in zip(*found, strict=True)]
    summary = facts[0]
    if split.repeats > 1:
        summary["counted in"] = f"the first of {split.repeats} splits"
    results.finish(Plain(), evaluations, output, summary)
