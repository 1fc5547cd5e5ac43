"""`safecf evaluate` and `safecf compare`: ranking quality of all users and of the worst-off."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from safecf.cli.command_options import (
    MODEL_HELP,
    MODELS,
    DataOptions,
    Device,
    Json,
    Metric,
    ModelSeed,
    Quiet,
    Tail,
    check_seed,
    with_records,
)
from safecf.cli.completion import SUFFIX, name_or_file
from safecf.cli.split_options import RepeatedSplitOptions, SplitOptions
from safecf.defaults import LEVEL

if TYPE_CHECKING:
    from safecf.cli.output_files import Target
    from safecf.evaluation import Evaluation
    from safecf.models import Recommender


@dataclass(frozen=True)
class RunOptions:
    """Which models to evaluate, and what to show and write of the results."""

    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            "-m",
            help=f"{MODEL_HELP} Or the file of a saved model. May be repeated.",
            autocompletion=name_or_file(MODELS, SUFFIX),
        ),
    ]
    seed: ModelSeed = 0
    device: Device = None
    metric: Metric = None
    k: Annotated[
        list[int] | None,
        typer.Option(help="Cutoff of the rankings; may be repeated.", show_default="20 50 100"),
    ] = None
    tail: Tail = LEVEL
    save: Annotated[
        Path | None,
        typer.Option(help="Save what was trained: a file for one model, a folder for several."),
    ] = None
    report: Annotated[Path | None, typer.Option(help="Write the tail report, an HTML page.")] = None
    out: Annotated[Path | None, typer.Option(help="Write all numbers as JSON.")] = None
    quiet: Quiet = False
    json: Json = False


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
        as_json=options.json,
    )
    read = list(input_files(data, options.model))
    check_targets(output.paths, read)
    models = inputs.name_models(options.model, options.seed)
    if options.device is not None:
        models = {name: model.to(options.device) for name, model in models.items()}
    saved = [] if options.save is None else list(_saved(options.save, models, split.repeats))
    paths = [(each.option, each.path) for each in saved]
    check_targets([*output.paths, *paths], read)
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
    results.finish(Plain(), evaluations, output, summary, more=saved)


def _saved(place: Path, models: Mapping[str, "Recommender"], repeats: int) -> Iterator["Target"]:
    """Yield a target for every model that is to be trained."""
    from safecf.cli.output_files import model_file, model_target  # noqa: PLC0415

    if repeats > 1:
        raise ValueError(
            "--save has no one model to save where --repeats trains several; leave one of them out"
        )
    if all(model.is_fitted for model in models.values()):
        raise ValueError("nothing is trained that --save could save; leave it out")
    if len(models) > 1 and place.is_file():
        raise NotADirectoryError(f"{place} is a file; give a folder for {len(models)} models")
    for name, model in models.items():
        if not model.is_fitted:
            path = place if len(models) == 1 else place / file_name(name)
            yield model_target("--save", model_file(path), model)


def file_name(model: str) -> str:
    """Return the name of a model's file in a folder.

    >>> file_name("IALS (factors=8) #2")
    'ials-factors-8-2.safetensors'
    """
    return re.sub(r"[^a-z0-9.]+", "-", model.lower()).strip("-") + ".safetensors"
