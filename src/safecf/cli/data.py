"""`safecf data`: look at data, and split it."""

from pathlib import Path
from typing import Annotated

import typer

from safecf.cli.options import SEED, DataOptions, SplitOptions, with_records

app = typer.Typer(no_args_is_help=True, help="Look at data, and split it.")


@app.command()
@with_records
def summary(data: DataOptions) -> None:
    """Show how many users, items and interactions there are, and how they are spread.

    For example:

    safecf data summary clicks.csv.gz --user visitor --item page
    """
    from safecf.cli.sources import load_data  # noqa: PLC0415

    found = load_data(data).log.interactions(
        weighted=data.weight is not None, duplicates=data.duplicates, **data.counts()
    )
    typer.echo(str(found.summary()))


@app.command()
@with_records
def split(
    data: DataOptions,
    out: Annotated[Path, typer.Option(help="Folder for the files.")],
    heldout: Annotated[
        int | None,
        typer.Option(help="Users for validation, and for the test; the paper's, or a tenth."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the split.")] = SEED,
) -> None:
    """Split as the paper does, into train, validation and test users, and write its six files.

    For example:

    safecf data split ml-1m --path ml-1m.zip --out ml-1m-split
    """
    from safecf.cli.sources import load_data  # noqa: PLC0415
    from safecf.data.splits.files import NAMES, write_split  # noqa: PLC0415

    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"{out} is a file; give a folder with --out")
    found = load_data(data)
    made = found.split(SplitOptions(heldout=heldout, split_seed=seed))
    write_split(made, found.log, out)
    counts = (made.train.shape[0], made.validation.target.shape[0], made.test.target.shape[0])
    typer.echo(
        f"{counts[0]:,} training, {counts[1]:,} validation and {counts[2]:,} test users over "
        f"{made.train.shape[1]:,} items: {', '.join(NAMES)} in {out}"
    )
