"""`safecf fit`: train one model on all data, and save it."""

import inspect
import shlex
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    flag,
    only_model,
    with_records,
)
from safecf.cli.completion import one_of
from safecf.cli.split_options import SplitOptions
from safecf.defaults import LEVEL

if TYPE_CHECKING:
    from safecf.evaluation import Evaluation
    from safecf.models import Recommender


@dataclass(frozen=True)
class FitOptions:
    """What to train, where to save it, and on whom to report."""

    out: Annotated[
        Path, typer.Option("--out", "-o", help="File of the model, as in model.safetensors.")
    ]
    model: Annotated[
        list[str],
        typer.Option(
            "--model", "-m", help=MODEL_HELP, autocompletion=one_of(MODELS), show_default="safer2"
        ),
    ] = field(default_factory=lambda: ["safer2"])
    seed: ModelSeed = 0
    device: Device = None
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="File that is replaced after every epoch, to go on from after a break."),
    ] = None
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Checkpoint to go on from; may be the file of --checkpoint, which need not exist "
            "then."
        ),
    ] = None
    heldout: Annotated[
        int | None,
        typer.Option(
            help="Number of users to hold out and to report on; by default none, and all are "
            "trained on."
        ),
    ] = None
    split_seed: Annotated[
        int | None, typer.Option(help="Seed that chooses the held-out users.", show_default="98765")
    ] = None
    metric: Metric = None
    tail: Tail = LEVEL
    quiet: Quiet = False
    json: Json = False

    def __post_init__(self) -> None:
        check_seed("--seed", self.seed)
        for name in ("split_seed", "metric"):
            if self.heldout is None and getattr(self, name) is not None:
                raise ValueError(
                    f"{flag(name)} is for held-out users; add --heldout, or leave it out"
                )


@with_records
def fit(data: DataOptions, options: FitOptions) -> None:
    """Train a model on all data, and save it.

    Killed and started again with the same command, a training with --checkpoint and --resume goes
    on after the last epoch. For example:

    safecf fit clicks.parquet --user visitor --item page -o model.safetensors

    safecf fit ml-1m -m safer2:factors=64 --heldout 1000 -o model.safetensors

    safecf fit ml-1m -o model.safetensors --checkpoint run --resume run
    """
    # Imported here, so that the command line starts fast and Ctrl-C works from the start.
    from safecf.cli import inputs, results  # noqa: PLC0415
    from safecf.cli.output_files import check_targets, input_files, model_file  # noqa: PLC0415
    from safecf.cli.running import check_interrupt  # noqa: PLC0415
    from safecf.evaluation import evaluate  # noqa: PLC0415
    from safecf.models.callbacks import Watching  # noqa: PLC0415

    split = SplitOptions(heldout=options.heldout, split_seed=options.split_seed)
    metric, cutoffs = results.choose_metric(options.metric, None)
    output = results.Output(metric, cutoffs, options.tail)
    out = model_file(options.out)
    run = _checkpoints(options)
    read = [*input_files(data), *(run[name] for name in ("resume",) if name in run)]
    other = [path for path in read if path != run.get("checkpoint")]
    check_targets([("--out", out), ("--checkpoint", run.get("checkpoint"))], other)
    name, model = inputs.make_unfitted(only_model(options.model, "fit"), options.seed)
    if options.device is not None:
        model.to(options.device)
    for option in run:
        if option not in inspect.signature(model.fit).parameters:
            raise ValueError(f"{name} has no checkpoints; leave out {flag(option)}")
    if options.heldout is not None:
        inputs.split_settings(data, split)  # raises if the data is split already
    loaded = inputs.load_data(data)
    made = None if options.heldout is None else loaded.split(split)
    training = loaded.interactions() if made is None else inputs.all_but_test(made)
    check_interrupt()
    start, watch = time.perf_counter(), Watching(check_interrupt)
    try:
        model.fit(training, show_progress=not options.quiet, callback=watch, **run)
    except KeyboardInterrupt:
        kept = run.get("checkpoint")
        if kept is None or not kept.is_file():
            raise
        again = f"add {shlex.join(['--resume', str(kept)])} to the same command"
        if run.get("resume") == kept:
            again = "start the same command again"
        raise KeyboardInterrupt(f"safecf: interrupted; to go on, {again}") from None
    seconds = time.perf_counter() - start
    check_interrupt()
    found = None
    dropped = None if made is None else loaded.dropped_users(made)
    if made is not None:
        settings = split.settings() | {"command": results.command_line()}
        found = evaluate(model, made, cutoffs, output.tails, name=name, settings=settings)
    check_interrupt()
    facts: dict[str, Any] = {
        "users": training.num_users,
        "items": training.num_items,
        "interactions": training.nnz,
        "epochs": len(getattr(model, "history", [])),
        "seconds": round(seconds, 3),
    }
    if made is not None and dropped is not None:
        facts["heldout_users"] = made.test.history.shape[0]
        facts["dropped_users"], facts["min_user_interactions"] = dropped
    _finish(model, out, facts, found, output, data, as_json=options.json)


def _checkpoints(options: FitOptions) -> dict[str, Path]:
    """Return the files of --checkpoint and --resume, as far as they are given; checked."""
    from safecf.models import files  # noqa: PLC0415

    found: dict[str, Path] = {}
    if options.checkpoint is not None:
        files.check_checkpoint_target(options.checkpoint)
        found["checkpoint"] = files.with_suffix(options.checkpoint)
    if options.resume is not None:
        found["resume"] = files.located(options.resume)
        if found["resume"] != found.get("checkpoint") and not found["resume"].is_file():
            raise FileNotFoundError(
                f"--resume {options.resume}: there is no such file; leave it out to start anew"
            )
    return found


def _finish(
    model: "Recommender",
    out: Path,
    facts: dict[str, Any],
    found: "Evaluation | None",
    output: Any,
    data: DataOptions,
    *,
    as_json: bool,
) -> None:
    """Write the model, then say what was made, and what to do with it."""
    from safecf.cli.output_files import model_target, raise_all, write_all  # noqa: PLC0415
    from safecf.cli.results import print_scores, scores_of  # noqa: PLC0415
    from safecf.cli.terminal import (  # noqa: PLC0415
        Plain,
        bytes_text,
        print_facts,
        print_json,
        seconds_text,
    )

    raise_all(write_all([model_target("--out", out, model)])[1])
    size = out.stat().st_size
    if as_json:
        record = {
            "model": type(model).__name__,
            "options": model.get_params(),
            "resolved": dict(model.resolved),
            **facts,
            "file": str(out),
            "bytes": size,
        }
        if found is not None:
            record["heldout"] = scores_of(found, output.metric, output.level)
        print_json(record)
        return
    console = Plain()
    counted = [f"{facts[each]:,} {each}" for each in ("users", "items", "interactions")]
    told: dict[str, object] = {"model": options_text(model)}
    if model.resolved:
        found_values = (f"{name} {value:.3g}" for name, value in model.resolved.items())
        told["scaled to the data"] = ", ".join(found_values)
    told["trained on"] = ", ".join(counted)
    if found is not None:
        told["left out"] = _left_out(facts)
    told["time"] = f"{seconds_text(facts['seconds'])}, {facts['epochs']} epochs"
    print_facts(console, told)
    if found is not None:
        print_scores(console, [found], output.metric, output.level)
        console.print(
            "The users left out are unknown to the model; train without --heldout to serve all."
        )
    console.line_of(f"written: {out} ({bytes_text(size)})")
    file = shlex.quote(str(out))
    console.line_of(f"next:    safecf recommend {file} {data.typed()} -o recommendations.parquet")
    console.line_of(f"    or:  safecf serve {file} {data.typed()}")


def _left_out(facts: dict[str, Any]) -> str:
    """Return how many users were not trained on, and why."""
    told = f"{facts['heldout_users']:,} held-out users"
    if facts["dropped_users"]:
        told += (
            f", and {facts['dropped_users']:,} with fewer than {facts['min_user_interactions']} "
            "interactions (see --min-user-interactions)"
        )
    return told


def options_text(model: "Recommender") -> str:
    """Return the class of a model, and the options that differ from their defaults.

    >>> options_text(SAFER2(factors=32, random_state=0))
    'SAFER2, factors 32, random_state 0'
    """
    options = inspect.signature(type(model)).parameters
    values = {name: getattr(model, name) for name in options}
    chosen = [f"{n} {v}" for n, v in values.items() if repr(v) != repr(options[n].default)]
    return ", ".join([type(model).__name__, *chosen])
