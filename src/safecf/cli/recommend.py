"""`safecf recommend` and `safecf similar`: answers of a saved model, by the original ids."""

import shlex
import tempfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from safecf.cli.command_options import DATASETS, SHAPES, DataOptions, Json, Quiet, with_records
from safecf.cli.completion import SUFFIX, name_or_file

if TYPE_CHECKING:
    from safecf.data.matrices.interactions import Interactions
    from safecf.models import Recommender

MODEL = typer.Argument(
    help="File of a model, as safecf fit writes it.", autocompletion=name_or_file((), SUFFIX)
)
TABLE_HELP = "as .parquet, .csv or .jsonl, and the last two also with .gz"
ModelFile = Annotated[Path, MODEL]
Number = Annotated[int, typer.Option("--number", "-n", help="Number of results, of each.")]


@dataclass(frozen=True)
class KnownData(DataOptions):
    """What users have already; nothing where a command does without it."""

    data: Annotated[
        list[str],
        typer.Argument(
            help="What the users have already: the data that the model was trained on, or newer "
            "one, given as to safecf fit. Not needed with --seen, nor with --histories.",
            autocompletion=name_or_file((*DATASETS, *SHAPES)),
        ),
    ] = field(default_factory=list)


@dataclass(frozen=True)
class RecommendOptions:
    """For whom to recommend, which items, and where to write them."""

    model: ModelFile
    users: Annotated[
        list[str] | None,
        typer.Option(
            help="Id of a user, or a file of ids: one per line, or a column of a .csv or .parquet; "
            "may be repeated. By default all users of the model, or of --histories."
        ),
    ] = None
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help=f"File to write, {TABLE_HELP}; else it is shown."),
    ] = None
    number: Number = 10
    block: Annotated[
        list[str] | None,
        typer.Option(help="Id of an item, or a file of ids, to leave out; may be repeated."),
    ] = None
    allow: Annotated[
        list[str] | None,
        typer.Option(help="Id of an item, or a file of ids, to choose from; may be repeated."),
    ] = None
    histories: Annotated[
        list[str] | None,
        typer.Option(
            help="Files with what users have now, with columns as in the data: they are computed "
            "from it, also if they are new to the model; may be repeated."
        ),
    ] = None
    seen: Annotated[
        bool, typer.Option("--seen", help="Also recommend what a user has already.")
    ] = False
    recalculate: Annotated[
        bool,
        typer.Option(
            "--recalculate", help="Compute users from the data, not from what training stored."
        ),
    ] = False
    quiet: Quiet = False
    json: Json = False

    def __post_init__(self) -> None:
        if self.number < 1:
            raise ValueError(f"--number {self.number} has to be at least 1; try --number 10")
        if self.block and self.allow:
            raise ValueError(
                "--block and --allow exclude each other; leave the blocked items out of --allow"
            )
        if self.out is None and not self.users and not self.histories:
            raise ValueError(
                "all users are too many to show; give some by --users, or a file to write by -o"
            )


@with_records
def recommend(options: RecommendOptions, data: KnownData) -> None:
    """Recommend items to users of a saved model.

    Users of whom nothing is known get the most popular items, and are marked so. For example:

    safecf recommend model.safetensors clicks.parquet --user visitor --item page -o best.parquet

    safecf recommend model.safetensors ml-1m --users 17 --users 18 -n 5

    safecf recommend model.safetensors --histories today.csv -o best.csv.gz
    """
    # Imported here, so that the command line starts fast and Ctrl-C works from the start.
    from safecf.cli.output_files import check_targets, input_files, table_file  # noqa: PLC0415
    from safecf.cli.running import check_interrupt  # noqa: PLC0415

    out = None if options.out is None else table_file(options.out)
    lists = [*(options.users or []), *(options.block or []), *(options.allow or [])]
    files = [str(options.model), *lists, *(options.histories or [])]
    check_targets([("--out", out)], input_files(data, files))
    without = not data.data and not options.histories
    if without and (options.recalculate or not options.seen):
        raise ValueError(
            "what the users have already is not given; add the data, as in safecf recommend "
            f"{shlex.quote(str(options.model))} clicks.parquet, or --seen to recommend that, too"
        )
    model = _load(options.model)
    if without and model.needs_histories:
        raise ValueError(
            f"{type(model).__name__} computes users from what they have; add the data, or "
            "--histories"
        )
    chosen = _selection(model, options, data)
    known, histories = _interactions(data), _histories(data, options.histories)
    check_interrupt()
    given: dict[str, Any] = {
        **chosen,
        "N": options.number,
        "filter_already_liked_items": not options.seen,
        "recalculate_user": options.recalculate,
        "histories": histories,
        "show_progress": not options.quiet,
    }
    if out is None:
        _show(model, known, given, as_json=options.json)
    else:
        _write(model, out, known, given, as_json=options.json)


@with_records
def similar(
    model: ModelFile,
    ids: Annotated[list[str], typer.Argument(help="Ids of items, or of users with --users.")],
    number: Number = 10,
    users: Annotated[bool, typer.Option("--users", help="Similar users, not items.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help=f"File to write, {TABLE_HELP}; else it is shown."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what is most like some items, or like some users, of a saved model.

    For example:

    safecf similar model.safetensors "page 17" "page 18" -n 5

    safecf similar model.safetensors ann --users
    """
    from safecf.cli.id_lists import read_ids  # noqa: PLC0415
    from safecf.cli.output_files import check_targets, table_file, write_table  # noqa: PLC0415
    from safecf.cli.terminal import Plain, print_json  # noqa: PLC0415

    if number < 1:
        raise ValueError(f"--number {number} has to be at least 1; try --number 10")
    target = None if out is None else table_file(out)
    inputs = [model, *(Path(each) for each in ids if Path(each).is_file())]
    check_targets([("--out", target)], inputs)
    side = "user" if users else "item"
    loaded = _load(model)
    known = loaded.user_ids if users else loaded.item_ids
    asked = read_ids(f"the {side}", ids, side, DataOptions([]), known)
    frame = loaded.similar_users_frame if users else loaded.similar_items_frame
    found = frame(asked, number)
    if target is not None:
        write_table(target, found)
        said = {"file": str(target), "rows": found.num_rows}
        print_json(said) if as_json else Plain().line_of(f"written: {target}")
    elif as_json:
        print_json(found.to_pylist())
    else:
        _print_groups(found, side, "similar")


def _load(path: Path) -> "Recommender":
    from safecf.models import Recommender  # noqa: PLC0415

    return Recommender.load(path)


def _selection(
    model: "Recommender", options: RecommendOptions, data: DataOptions
) -> dict[str, Any]:
    """Return the ids of users, and of items to leave out or to choose from; None for all."""
    from safecf.cli.id_lists import only_known, read_ids  # noqa: PLC0415

    chosen: dict[str, Any] = dict.fromkeys(("users", "filter_items", "items"))
    if options.users:
        chosen["users"] = read_ids("--users", options.users, "user", data, model.user_ids)
    lists = {"filter_items": ("--block", options.block), "items": ("--allow", options.allow)}
    for name, (option, given) in lists.items():
        if given:
            ids = read_ids(option, given, "item", data, model.item_ids)
            chosen[name] = only_known(option, ids, model.item_ids, model.sizes()[1])
    return chosen


def _interactions(data: KnownData) -> "Interactions | None":
    from safecf.cli.inputs import load_data  # noqa: PLC0415

    return load_data(data).interactions() if data.data else None


def _histories(data: KnownData, files: list[str] | None) -> "Interactions | None":
    """Read histories with the columns of the data; nothing of them is dropped."""
    if not files:
        return None
    plain = replace(
        data, data=files, path=None, min_user_interactions=None, min_item_interactions=None
    )
    return _interactions(plain)


def _write(
    model: "Recommender",
    out: Path,
    known: "Interactions | None",
    given: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    """Write the file, then say what is in it."""
    from safecf.batch import recommend_to_file  # noqa: PLC0415
    from safecf.cli.terminal import Plain, bytes_text, print_json, seconds_text  # noqa: PLC0415

    out.parent.mkdir(parents=True, exist_ok=True)
    found = recommend_to_file(model, out, known, **given)
    size = out.stat().st_size
    if as_json:
        print_json({"file": str(out), "bytes": size, **asdict(found)})
        return
    console = Plain()
    console.line_of(
        f"{found.rows:,} recommendations for {found.users:,} users in {seconds_text(found.seconds)}"
    )
    if found.cold_users:
        console.line_of(f"{found.cold_users:,} users of whom nothing is known got popular items")
    console.line_of(f"written: {out} ({bytes_text(size)})")


def _show(
    model: "Recommender", known: "Interactions | None", given: dict[str, Any], *, as_json: bool
) -> None:
    import pyarrow.parquet  # noqa: PLC0415

    from safecf.batch import recommend_to_file  # noqa: PLC0415
    from safecf.cli.terminal import print_json  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.parquet"
        recommend_to_file(model, path, known, **{**given, "show_progress": False})
        found = pyarrow.parquet.read_table(path)
    if as_json:
        print_json(found.to_pylist())
    else:
        _print_groups(found, "user", "item")


def _print_groups(found: Any, first: str, second: str) -> None:
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
    console = Plain()
    if not rows:
        console.print(f"no {second} is left for any {first}")
        return
    table.show(console)
