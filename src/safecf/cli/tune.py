"""`safecf tune`: options searched on the validation users, for the mean, the tail, or both."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from safecf.cli.command_options import MODELS, DataOptions, SplitOptions, with_records
from safecf.defaults import LEVEL, METRIC

if TYPE_CHECKING:
    from rich.console import Console

    from safecf.tuning import Tuning

INTERRUPTED = 130  # exit code


@dataclass(frozen=True)
class TuneOptions:
    """What to tune, for how long, and what to show and write of the results."""

    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            help="A model, with options that are fixed, as in safer2:factors=64. "
            f"Models: {', '.join(MODELS)}.",
        ),
    ]
    trials: Annotated[
        int | None, typer.Option(help="Number of trials, of each model.", show_default="50")
    ] = None
    minutes: Annotated[float | None, typer.Option(help="Minutes of trials, of each model.")] = None
    objective: Annotated[
        str,
        typer.Option(
            help="What is maximised: mean (over all users), tail (over the worst-off), or both."
        ),
    ] = "both"
    metric: Annotated[
        str | None,
        typer.Option(help="Metric to maximise, such as recall or ndcg@10.", show_default=METRIC),
    ] = None
    tail: Annotated[float, typer.Option(help="Share of worst-off users.")] = LEVEL
    range: Annotated[
        list[str] | None,
        typer.Option(
            help="Range of an option, as in bandwidth=0.05..0.5 or kernel=gaussian,logistic; may "
            "be repeated.",
            show_default="around the defaults",
        ),
    ] = None
    against: Annotated[
        list[str] | None,
        typer.Option(help="A model to tune in the same way and compare with; may be repeated."),
    ] = None
    pick: Annotated[
        str,
        typer.Option(
            help="Trial to take: objective (the best by it; of both, by the mean relative gain "
            "over the defaults), mean, tail, or the number of a trial."
        ),
    ] = "objective"
    study: Annotated[
        Path | None,
        typer.Option(
            help="File that keeps the trials; started again, the search goes on from there.",
            show_default="DATA-MODEL.study.sqlite",
        ),
    ] = None
    save: Annotated[Path | None, typer.Option(help="Save the best model.")] = None
    seed: Annotated[int, typer.Option(help="Seed of the models and of the search.")] = 0
    report: Annotated[Path | None, typer.Option(help="Write the tail report, an HTML page.")] = None
    out: Annotated[Path | None, typer.Option(help="Write all numbers as JSON.")] = None
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")] = False


@with_records
def tune(data: DataOptions, split: SplitOptions, options: TuneOptions) -> None:
    """Tune a model on the validation users, and compare it with its defaults on the test users.

    Needs Optuna, which the extra "tune" installs. For example:

    safecf tune clicks.parquet --user visitor --item page -m safer2 --trials 50 --against ials
    """
    # Imported here, so that the command line starts fast and Ctrl-C works from the start.
    from rich.console import Console  # noqa: PLC0415

    from safecf.cli import inputs, results  # noqa: PLC0415
    from safecf.models.files import check_target  # noqa: PLC0415
    from safecf.tuning import TuningInterrupted, parse_range, tune  # noqa: PLC0415

    metric, cutoffs = results.choose_metric(options.metric, None)
    output = results.Output(metric, cutoffs, options.tail, options.report, options.out)
    if options.save is not None:
        check_target(options.save)
    model, space = _candidate(options.model, options.seed)
    defaults = type(model)().get_params()  # an option that is given as 1 may still be a float
    ranges = [parse_range(text, defaults) for text in options.range or []]
    for place, (name, _) in enumerate(ranges):
        if name in dict(ranges[:place]):
            raise ValueError(f"--range {name} is given twice; leave one of them out")
    space |= dict(ranges)
    against = [_candidate(spec, options.seed) for spec in options.against or []]
    pick = int(options.pick) if options.pick.isdecimal() else options.pick
    study = options.study or Path(default_study(data.data[0], options.model))
    made = inputs.load_data(data).split(split)
    try:
        found = tune(
            model,
            made,
            metric=metric,
            objective=options.objective,
            level=options.tail,
            trials=options.trials,
            minutes=options.minutes,
            space=space,
            study=study,
            against=against,
            pick=pick,
            seed=options.seed,
            show_progress=not options.quiet,
            settings=inputs.split_settings(data, split) | {"command": results.command_line()},
        )
    except TuningInterrupted as interrupted:
        typer.echo(str(interrupted), err=True)
        raise typer.Exit(INTERRUPTED) from None
    console = Console()
    print_trials(console, found)
    summary = results.describe(made, " ".join(data.data))
    written = results.show_results(console, found.evaluations, output, summary, found)
    if options.save is not None:
        found.best_model.save(options.save)
        written.append(check_target(options.save))
    for file in (*written, study):
        console.print(f"written: {file}", highlight=False)


def _candidate(spec: str, seed: int) -> tuple[Any, dict[str, Any]]:
    """Return a model, and None as the range of each option that is fixed."""
    from safecf.cli.inputs import make_model  # noqa: PLC0415

    if spec.endswith(".safetensors"):
        raise ValueError(f"{spec} is a fitted model; give a model and its options, as in safer2")
    fixed = [setting.partition("=")[0].strip() for setting in spec.partition(":")[2].split(",")]
    return make_model(spec, seed)[1], {name: None for name in fixed if name}


def default_study(data: str, model: str) -> str:
    """Return the name of a study from those of the data and the model.

    >>> default_study("data/clicks.csv.gz", "safer2:factors=64")
    'clicks-safer2.study.sqlite'
    """
    stem = re.sub(r"[^\w-]+", "-", Path(data).name.partition(".")[0]).strip("-") or "data"
    return f"{stem}-{model.partition(':')[0].lower()}.study.sqlite"


def print_trials(console: "Console", tuning: "Tuning") -> None:
    """Print the front of every model, or its best trial, beside its defaults."""
    from rich.table import Table  # noqa: PLC0415

    from safecf.measures.tails import level_name  # noqa: PLC0415

    objective = tuning.objective
    for search, best in zip(tuning.searches, tuning.picked, strict=True):
        chosen = search.front if objective.kind == "both" else []
        rows = {each.number: each for each in (search.trials[0], best, *chosen)}
        title = f"{search.name}: {objective.metric} of the validation users"
        table = Table(title=f"{title}, {len(search.trials)} trials")
        levels = [level_name(level) for level in (1.0, objective.level)]
        for heading in ("trial", *levels, "", "epochs", *search.space):
            table.add_column(heading, justify="right" if heading else "left")
        for each in sorted(rows.values(), key=lambda each: each.scores or (0.0, 0.0)):
            options = [_short(each.options[name]) for name in search.space]
            scores = [f"{score:.4f}" for score in each.scores or ()]
            notes = ["defaults"] * (each.number == 0) + ["picked"] * (each.number == best.number)
            told = ", ".join(notes)
            table.add_row(str(each.number), *scores, told, str(each.epochs), *options)
        console.print(table)
        for name in search.edges(best):
            told = f"{name} is near an end of its range, {search.space[name]}"
            console.print(f"{told}; a wider --range may help", highlight=False)


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
