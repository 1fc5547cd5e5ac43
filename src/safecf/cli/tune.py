"""`safecf tune`: options searched on the validation users, for the mean, the tail, or both."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from safecf.cli.command_options import (
    MODELS,
    DataOptions,
    Device,
    Json,
    Quiet,
    check_seed,
    only_model,
    with_records,
)
from safecf.cli.completion import metric, one_of
from safecf.cli.split_options import SplitOptions
from safecf.defaults import LEVEL, METRIC


@dataclass(frozen=True)
class TuneOptions:
    """What to tune, for how long, and what to show and write of the results."""

    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            "-m",
            help="A model, with options that are fixed, as in safer2:factors=64. "
            f"Models: {', '.join(MODELS)}.",
            autocompletion=one_of(MODELS),
        ),
    ]
    trials: Annotated[
        int | None, typer.Option(help="Number of trials, of each model.", show_default="50")
    ] = None
    minutes: Annotated[float | None, typer.Option(help="Minutes of trials, of each model.")] = None
    objective: Annotated[
        str,
        typer.Option(
            help="What is maximised: mean (over all users), tail (over the worst-off), or both.",
            autocompletion=one_of(("mean", "tail", "both")),
        ),
    ] = "both"
    metric: Annotated[
        str | None,
        typer.Option(
            help="Metric to maximise, such as recall or ndcg@10.",
            show_default=METRIC,
            autocompletion=metric,
        ),
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
        typer.Option(
            help="A model to tune in the same way and compare with; may be repeated.",
            autocompletion=one_of(MODELS),
        ),
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
    device: Device = None
    report: Annotated[Path | None, typer.Option(help="Write the tail report, an HTML page.")] = None
    out: Annotated[Path | None, typer.Option(help="Write all numbers as JSON.")] = None
    quiet: Quiet = False
    json: Json = False

    @property
    def spec(self) -> str:
        """The model and its options."""
        return only_model(self.model, "tune")


@with_records
def tune(data: DataOptions, split: SplitOptions, options: TuneOptions) -> None:
    """Tune a model on the validation users, and compare it with its defaults on the test users.

    Needs Optuna, which the extra "tune" installs. For example:

    safecf tune clicks.parquet --user visitor --item page -m safer2 --trials 50 --against ials

    Its last line is the command that trains a model with the best options on all data.
    """
    # Imported here, so that the command line starts fast and Ctrl-C works from the start.
    from safecf.cli import inputs, results  # noqa: PLC0415
    from safecf.cli.output_files import (  # noqa: PLC0415
        check_targets,
        input_files,
        model_file,
        model_target,
    )
    from safecf.cli.running import check_interrupt  # noqa: PLC0415
    from safecf.cli.terminal import Plain  # noqa: PLC0415
    from safecf.tuning import parse_range, tune  # noqa: PLC0415
    from safecf.tuning.storage import study_path  # noqa: PLC0415

    check_seed("--seed", options.seed)
    metric, cutoffs = results.choose_metric(options.metric, None)
    output = results.Output(
        metric, cutoffs, options.tail, options.report, options.out, as_json=options.json
    )
    save = None if options.save is None else model_file(options.save)
    study = options.study or Path(default_study(data.data[0], options.spec))
    study_path(study)  # raises if it cannot be a file
    check_targets([*output.paths, ("--save", save), ("--study", study)], input_files(data))
    model, space = _candidate(options.spec, options.seed)
    defaults = type(model)().get_params()  # an option that is given as 1 may still be a float
    ranges = [parse_range(text, defaults) for text in options.range or []]
    for place, (name, _) in enumerate(ranges):
        if name in dict(ranges[:place]):
            raise ValueError(f"--range {name} is given twice; leave one of them out")
    space |= dict(ranges)
    against = [_candidate(spec, options.seed) for spec in options.against or []]
    if options.device is not None:
        for candidate in (model, *(each for each, _ in against)):
            candidate.to(options.device)
    pick = int(options.pick) if options.pick.isdecimal() else options.pick
    made = inputs.load_data(data).split(split)
    check_interrupt()
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
    results.finish(
        Plain(),
        found.evaluations,
        output,
        results.describe(made, " ".join(data.data)),
        tuning=found,
        more=[] if save is None else [model_target("--save", save, found.best_model)],
        kept=[study],
    )
    if not options.json:
        Plain().line_of(
            f"next:    safecf fit {data.typed()} -m {shlex.quote(inputs.spec_of(found.best_model))}"
            + f" --seed {options.seed}" * bool(options.seed)
            + " -o model.safetensors"
        )


def _candidate(spec: str, seed: int) -> tuple[Any, dict[str, Any]]:
    """Return a model, and None as the range of each option that is fixed."""
    from safecf.cli.inputs import make_unfitted  # noqa: PLC0415

    fixed = [setting.partition("=")[0].strip() for setting in spec.partition(":")[2].split(",")]
    return make_unfitted(spec, seed)[1], {name: None for name in fixed if name}


def default_study(data: str, model: str) -> str:
    """Return the name of a study from those of the data and the model.

    >>> default_study("data/clicks.csv.gz", "safer2:factors=64")
    'clicks-safer2.study.sqlite'
    """
    stem = re.sub(r"[^\w-]+", "-", Path(data).name.partition(".")[0]).strip("-") or "data"
    return f"{stem}-{model.partition(':')[0].lower()}.study.sqlite"
