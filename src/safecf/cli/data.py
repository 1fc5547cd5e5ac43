"""`safecf data`: summarise data and split it."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from safecf.cli.command_options import (
    DataOptions,
    Json,
    check_seed,
    with_records,
)
from safecf.cli.helping import Command, Group
from safecf.cli.running import named_options
from safecf.cli.split_options import HELDOUT_HELP, SplitOptions
from safecf.data.splits.protocol import SEED
from safecf.errors import ParameterWarning, warn

app = typer.Typer(cls=Group, no_args_is_help=True, help="Summarise data, or split it.")


@app.command(cls=Command)
@named_options
@with_records
def summary(data: DataOptions, as_json: Json = False) -> None:
    """Show the numbers of users, items and interactions, and their distribution.

    For example:

    safecf data summary clicks.csv.gz --user visitor --item page
    """
    from safecf.cli.inputs import load_data  # noqa: PLC0415
    from safecf.cli.terminal import print_json  # noqa: PLC0415

    found = load_data(data).log.interactions(
        weighted=data.weight is not None, duplicates=data.duplicates, **data.counts()
    )
    if as_json:
        print_json(asdict(found.summary()))
    else:
        typer.echo(str(found.summary()))


@app.command(cls=Command)
@named_options
@with_records
def split(
    data: DataOptions,
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
    heldout: Annotated[
        int | None,
        typer.Option(help=HELDOUT_HELP.capitalize()),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the split.")] = SEED,
    as_json: Json = False,
) -> None:
    """Split into training, validation and test users as the paper does, and write text files.

    For example:

    safecf data split ml-1m --path ml-1m.zip --out ml-1m-split
    """
    from safecf.cli.inputs import load_data  # noqa: PLC0415
    from safecf.cli.output_files import check_targets, input_files  # noqa: PLC0415
    from safecf.cli.terminal import print_json  # noqa: PLC0415
    from safecf.data.splits.split_files import FILES, write_split  # noqa: PLC0415

    check_seed("--seed", seed)
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"{out} is a file; give a folder with --out")
    check_targets([("--out", out / name) for name in FILES], input_files(data))
    found = load_data(data)
    if found.made is not None:
        raise ValueError(f"{data.data[0]} is split already; give the data that it was made from")
    for name in ("weight", "group"):
        if getattr(data, name) is not None:
            warn(
                f"the files hold no {name}s; give the data itself to evaluate with {name}=",
                ParameterWarning,
            )
    made = found.split(SplitOptions(heldout=heldout, split_seed=seed))
    write_split(made, found.log, out)
    parts = {"training": made.train, "validation": made.validation.target, "test": made.test.target}
    counts = {name: matrix.shape[0] for name, matrix in parts.items()}
    items = made.train.shape[1]
    if as_json:
        print_json({"folder": str(out), "files": FILES, "users": counts, "items": items})
        return
    training, validation, test = counts.values()
    typer.echo(
        f"{training:,} training, {validation:,} validation and {test:,} test users over "
        f"{items:,} items: {', '.join(FILES)} in {out}"
    )
