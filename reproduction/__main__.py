"""`python -m reproduction`: the tables and figures of the paper, each by one command."""

from pathlib import Path
from typing import Annotated

import typer

from reproduction import NAMES, load
from safecf.cli.running import run
from safecf.errors import choose

app = typer.Typer(add_completion=False, pretty_exceptions_show_locals=False)


@app.command()
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", help=f"One or more of {', '.join(NAMES)}."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Run all experiments.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the experiments and exit.")] = False,
    data: Annotated[
        str | None,
        typer.Option(
            help="ml-1m, gowalla, ml-20m, msd, ml-20m-like, msd-like, or tiny to try a command.",
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
    seeds: Annotated[int | None, typer.Option(help="Run fewer seeds.")] = None,
    trials: Annotated[int | None, typer.Option(help="tuning: run fewer trials per model.")] = None,
    presets: Annotated[
        Path | None,
        typer.Option(
            help="File of the models' settings; tuning writes to it.",
            show_default="the library's",
        ),
    ] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="tuning: only this search of the set `tuned`, such as iALS; repeatable.",
            show_default="all",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Number of cells at a time; 0 runs them in this process.",
            show_default="by cores and memory",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Folder for the pages.", show_default="docs/results"),
    ] = None,
    cells: Annotated[
        Path | None,
        typer.Option(help="Folder for finished cells.", show_default="the cache"),
    ] = None,
    render_only: Annotated[
        bool, typer.Option("--render-only", help="Write pages from finished cells, run nothing.")
    ] = False,
    cells_only: Annotated[
        bool,
        typer.Option(
            "--cells-only", help="Run cells, and write no pages; tuning still writes --presets."
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")] = False,
) -> None:
    """Run experiments of the paper, and write a page, a CSV file and figures for each.

    Finished cells are kept: after Ctrl-C or a crash, run the same command again to go on. The page
    of a smaller run says so, and its files end in "-part". For example:

    python -m reproduction robustness --path ml-1m.zip --splits 5 --seeds 2
    """
    if listing:
        for name in NAMES:
            found = load(name)
            typer.echo(f"{name:16}{found.title}: {found.paper}")
        return
    if everything == bool(names):
        raise ValueError(
            f"give names of experiments, or --all: {', '.join(NAMES)}; "
            "python -m reproduction --list describes them"
        )
    # Imported here so that --help starts fast.
    from reproduction.session import Session  # noqa: PLC0415

    chosen = [load(name) for name in dict.fromkeys(names or NAMES)]
    if data is not None:
        _check_data(data)
    left_out = [each.name for each in chosen if everything and data and not each.accepts(data)]
    chosen = [each for each in chosen if each.name not in left_out]
    counts = {"splits": splits, "seeds": seeds, "trials": trials}
    if search and not any(each.tunes for each in chosen):
        raise ValueError("--search is an option of tuning; add tuning to the names")
    plans = [
        (each, each.options(data, presets=presets, searches=search or (), **counts))
        for each in chosen
    ]
    session = Session(
        *(path, output, cells, jobs),
        show_progress=not quiet,
        render_only=render_only,
        cells_only=cells_only,
    )
    if left_out:
        typer.echo(f"left out, since they do not accept {data}: {', '.join(left_out)}")
    for experiment in chosen if names else ():
        for line in experiment.ignored(jobs=jobs, **counts):
            typer.echo(line)
    if session.run_all(plans, typer.echo):
        raise typer.Exit(1)


def _check_data(name: str) -> None:
    """Raise if no experiment accepts the data."""
    known = [data for each in NAMES for data in load(each).data]
    choose("data", name, dict.fromkeys((*known, "tiny")))


if __name__ == "__main__":
    run(app)
