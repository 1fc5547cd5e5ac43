"""`safecf reproduce`: the tables and figures of the paper, each by one command."""

from pathlib import Path
from typing import Annotated

import typer

import reproduction as experiments
from safecf.errors import choose


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", help=f"One or more of {', '.join(experiments.MODULES)}."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Run all experiments.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the experiments, and end.")] = False,
    data: Annotated[
        str | None,
        typer.Option(
            help="ml-1m, gowalla, ml-20m, msd, a synthetic shape, or tiny to try a command.",
            show_default="the experiment's first",
        ),
    ] = None,
    path: Annotated[
        Path | None,
        typer.Option(
            help="Archive, folder or file of the data set.",
            show_default="SAFECF_DATA, ../shared/data, or downloaded",
        ),
    ] = None,
    splits: Annotated[int | None, typer.Option(help="Run fewer splits.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Run fewer initialisations.")] = None,
    trials: Annotated[int | None, typer.Option(help="tuning: run fewer trials per model.")] = None,
    presets: Annotated[
        Path | None,
        typer.Option(
            help="File of the models' settings; tuning writes what it finds into it.",
            show_default="the one that comes along",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Cells at a time; 0 runs them in this process.",
            show_default="by cores and memory",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Folder for the pages.", show_default="docs/results of a checkout, or ."),
    ] = None,
    cells: Annotated[
        Path | None,
        typer.Option(help="Folder in which finished cells are kept.", show_default="the cache"),
    ] = None,
    render_only: Annotated[
        bool, typer.Option("--render-only", help="Write pages from finished cells, run nothing.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")] = False,
) -> None:
    """Run experiments of the paper, and write a page, a CSV file and figures for each.

    What is finished is kept: after Ctrl-C, or a crash, the same command goes on where it stopped.
    The pages of smaller runs say so, and end in "-part". For example:

    safecf reproduce robustness --path ml-1m.zip --splits 5 --seeds 2
    """
    if listing:
        for name in experiments.MODULES:
            found = experiments.load(name)
            typer.echo(f"{name:16}{found.title}: {found.paper}")
        return
    if everything == bool(names):
        raise ValueError(
            f"say which experiment, or --all: {', '.join(experiments.MODULES)}; "
            "safecf reproduce --list tells what they are"
        )
    # Here, not above: the command line starts fast, and Ctrl-C ends it at any time.
    from reproduction.session import Session  # noqa: PLC0415

    chosen = [experiments.load(name) for name in dict.fromkeys(names or experiments.MODULES)]
    if data is not None:
        _check_data(data)
    left_out = [each.name for each in chosen if everything and data and not each.takes(data)]
    chosen = [each for each in chosen if each.name not in left_out]
    counts = {"splits": splits, "seeds": seeds, "trials": trials}
    plans = [(each, each.options(data, presets=presets, **counts)) for each in chosen]
    session = Session(path, output, cells, jobs, show_progress=not quiet, render_only=render_only)
    if left_out:
        typer.echo(f"left out, since they do not take {data}: {', '.join(left_out)}")
    for experiment in chosen if names else ():
        for line in experiment.unused(jobs=jobs, **counts):
            typer.echo(line)
    try:
        failed = session.run_all(plans, typer.echo)
    except (KeyError, TypeError) as problem:
        raise RuntimeError("this is a mistake of safecf") from problem
    if failed:
        raise typer.Exit(1)


def _check_data(name: str) -> None:
    """Refuse data that no experiment takes."""
    known = [data for each in experiments.MODULES for data in experiments.load(each).data]
    choose("data", name, dict.fromkeys((*known, "tiny")))
