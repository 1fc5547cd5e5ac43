"""`safecf data`: look at data, and split it."""

from pathlib import Path
from typing import Annotated

import typer

from safecf.data import datasets
from safecf.data.columns import Column
from safecf.data.split_files import NAMES, write_split
from safecf.errors import choose

app = typer.Typer(no_args_is_help=True, help="Look at data, and split it.")

Separator = Annotated[str, typer.Option(help='Between two fields of a text file: "," "::" "\\t".')]


@app.command()
def summary(
    files: Annotated[
        list[str],
        typer.Argument(help="Parquet or text files, folders or patterns; or ml-1m, ml-20m, msd."),
    ],
    user: Annotated[str, typer.Option(help="Column of the users; a name or a number.")] = "user",
    item: Annotated[str, typer.Option(help="Column of the items; a name or a number.")] = "item",
    rating: Annotated[str | None, typer.Option(help="Column of the ratings.")] = None,
    min_rating: Annotated[float | None, typer.Option(help="Keep ratings from here on.")] = None,
    min_user_interactions: Annotated[int, typer.Option(help="Drop users with fewer.")] = 1,
    min_item_interactions: Annotated[int, typer.Option(help="Drop items with fewer.")] = 1,
    separator: Separator = ",",
    header: Annotated[bool, typer.Option(help="Whether the first line holds the names.")] = True,
) -> None:
    """Show how many users, items and interactions there are, and how they are spread."""
    if len(files) == 1 and files[0] in datasets.DATASETS:
        log = datasets.load(files[0], min_rating=min_rating)
    else:
        log = datasets.read(
            files,
            user=_column(user),
            item=_column(item),
            rating=None if rating is None else _column(rating),
            min_rating=min_rating,
            separator=separator.replace("\\t", "\t"),
            header=header,
        )
    interactions = log.interactions(
        min_user_interactions=min_user_interactions,
        min_item_interactions=min_item_interactions,
    )
    typer.echo(str(interactions.summary()))


@app.command()
def split(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(datasets.DATASETS)}.")],
    out: Annotated[Path, typer.Option(help="Folder for the files.")],
    path: Annotated[
        Path | None, typer.Option(help="Official archive, its folder or file; else downloaded.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the split.")] = 98765,
) -> None:
    """Split a data set as the paper does, into train, validation and test users."""
    dataset = choose("data set", name, datasets.DATASETS)
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"{out} is a file; give a folder with --out")
    log = datasets.load(name, path)
    made = dataset.split(log, seed=seed)
    write_split(made, log, out)
    counts = (made.train.shape[0], made.validation.target.shape[0], made.test.target.shape[0])
    typer.echo(
        f"{counts[0]:,} training, {counts[1]:,} validation and {counts[2]:,} test users over "
        f"{made.train.shape[1]:,} items: {', '.join(NAMES)} in {out}"
    )


def _column(given: str) -> Column:
    return int(given) if given.isdecimal() else given
