"""What the commands that ask a saved model share: its file, what users have, and tables."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from safecf.cli.command_options import DATASETS, SHAPES, DataOptions
from safecf.cli.completion import SUFFIX, name_or_file

if TYPE_CHECKING:
    from safecf.data.matrices.interactions import Interactions
    from safecf.models import Recommender

ModelFile = Annotated[
    Path,
    typer.Argument(
        help="File of a model, as safecf fit writes it.", autocompletion=name_or_file((), SUFFIX)
    ),
]
Count = Annotated[int, typer.Option("--N", "-n", help="Number of results, of each.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="File to write, as .parquet, .csv or .jsonl, and the last two also with .gz; else it "
        "is shown.",
    ),
]


@dataclass(frozen=True)
class KnownData(DataOptions):
    """What users have already; nothing where a command does without it."""

    data: Annotated[
        list[str],
        typer.Argument(
            help="What the users have, which they are not recommended again: the data that the "
            "model was trained on, or newer one, given as to safecf fit.",
            autocompletion=name_or_file((*DATASETS, *SHAPES)),
        ),
    ] = field(default_factory=list)


def load_model(path: Path, device: str | None = None) -> "Recommender":
    """Load a saved model, to work on a device, if one is given."""
    from safecf.models import Recommender  # noqa: PLC0415

    found = Recommender.load(path)
    return found if device is None else found.to(device)


def interactions_of(data: DataOptions, model: "Recommender") -> "Interactions":
    """Read what users have, with ids of the model's types."""
    from safecf.cli.id_lists import in_known_types  # noqa: PLC0415
    from safecf.cli.inputs import load_data  # noqa: PLC0415

    return in_known_types(load_data(data).interactions(), model)


def tell(found: Any, out: Path | None, show: Callable[[], None], *, as_json: bool) -> None:
    """Write a table and say so, or print it as JSON, or show it."""
    from safecf.batch import write_table  # noqa: PLC0415
    from safecf.cli.terminal import Plain, print_json  # noqa: PLC0415

    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_table(out, found)
        said = {"file": str(out), "rows": found.num_rows}
        print_json(said) if as_json else Plain().line_of(f"written: {out}")
    elif as_json:
        print_json(found.to_pylist())
    else:
        show()


def print_groups(found: Any, first: str, second: str) -> None:
    """Print rows of a table, those of one id together, with its name once."""
    from safecf.cli.terminal import Plain, Rows  # noqa: PLC0415

    rows = found.to_pylist()
    table = Rows("", [first, second], ["score"])
    names = [row[first] for row in rows]
    for at, row in enumerate(rows):
        begins = at == 0 or names[at - 1] != names[at]
        ends = at + 1 == len(rows) or names[at + 1] != names[at]
        name = str(row[first]) if begins else ""
        note = " (popular)" if begins and row.get("popular") else ""
        table.add_row(name + note, str(row[second]), f"{row['score']:.4f}", end_section=ends)
    if rows:
        table.show(Plain())
    else:
        Plain().print(f"no {second} is left for any {first}")
