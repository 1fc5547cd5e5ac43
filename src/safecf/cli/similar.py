"""`safecf similar` and `safecf explain`: items like an item, and why an item is recommended."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from safecf.checks import check_integer
from safecf.cli.asking import Count, ModelFile, Out, interactions_of, load_model, print_groups, tell
from safecf.cli.command_options import DataOptions, Json, flag, with_records


@with_records
def similar(
    model: ModelFile,
    ids: Annotated[
        list[str],
        typer.Argument(
            help="Ids of items, or of users with --users; or files of ids. Those that begin with a "
            "dash go behind --."
        ),
    ],
    N: Count = 10,
    users: Annotated[bool, typer.Option("--users", help="Similar users, not items.")] = False,
    filter_items: Annotated[
        list[str] | None,
        typer.Option(help="Id of an item, or a file of ids, to leave out; may be repeated."),
    ] = None,
    filter_users: Annotated[
        list[str] | None,
        typer.Option(help="With --users: id of a user, or a file of ids, to leave out."),
    ] = None,
    among: Annotated[
        list[str] | None,
        typer.Option(help="Id, or a file of ids, to choose from; may be repeated."),
    ] = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Show what is most like some items, or like some users, of a saved model.

    What is asked for is not among its own answers. For example:

    safecf similar model.safetensors "page 17" "page 18" -n 5

    safecf similar model.safetensors ann --users
    """
    # Imported here, so that the command line starts fast and Ctrl-C works from the start.
    from safecf.cli.id_lists import read_ids  # noqa: PLC0415
    from safecf.cli.output_files import check_targets, table_file  # noqa: PLC0415

    check_integer("N", N, 1, default=10)
    target = None if out is None else table_file(out)
    side, other = ("user", "item") if users else ("item", "user")
    blocked = filter_users if users else filter_items
    if filter_items if users else filter_users:
        raise ValueError(f"--filter-{other}s is for similar {other}s; use --filter-{side}s")
    if blocked and among:
        raise ValueError(
            f"--filter-{side}s and --among exclude each other; leave the former out of the latter"
        )
    named = [*ids, *(blocked or []), *(among or [])]
    check_targets([("--out", target)], [model, *(Path(e) for e in named if os.path.isfile(e))])
    loaded = load_model(model)
    known = loaded.user_ids if users else loaded.item_ids
    asked = read_ids(f"the {side}", ids, side, DataOptions([]), known)
    lists = {
        name: read_ids(flag(name), given, side, DataOptions([]), known)
        for name, given in ((f"filter_{side}s", blocked), ("among", among))
        if given
    }
    ask: Any = loaded.similar_users_frame if users else loaded.similar_items_frame
    found = ask(asked, N, **lists)
    tell(found, target, lambda: print_groups(found, side, "similar"), as_json=as_json)


@with_records
def explain(
    model: ModelFile,
    data: DataOptions,
    user_id: Annotated[
        str,
        typer.Argument(
            metavar="USER", help="Id of a user in the data; behind -- if it begins with a dash."
        ),
    ],
    item_id: Annotated[str, typer.Argument(metavar="ITEM", help="Id of an item of the model.")],
    N: Count = 10,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Show which items of a user's history add most to the score of an item.

    All contributions of the history add up to the score. For example:

    safecf explain model.safetensors clicks.parquet --user visitor --item page ann "page 17" -n 5
    """
    from safecf.cli.id_lists import typed_id  # noqa: PLC0415
    from safecf.cli.output_files import check_targets, input_files, table_file  # noqa: PLC0415
    from safecf.cli.running import check_interrupt  # noqa: PLC0415

    check_integer("N", N, 1, default=10)
    target = None if out is None else table_file(out)
    check_targets([("--out", target)], input_files(data, [str(model)]))
    loaded = load_model(model)
    item = typed_id("the item", item_id, loaded.item_ids)
    given = interactions_of(data, loaded)
    user = typed_id("the user", user_id, given.user_ids)
    check_interrupt()
    found = loaded.explain_frame(user, item, N, user_items=given)
    tell(found, target, lambda: _print(found, user_id, item_id), as_json=as_json)


def _print(found: Any, user: str, item: str) -> None:
    from safecf.cli.terminal import Plain, Rows  # noqa: PLC0415

    table = Rows(f"why {item} for {user}", ["item"], ["contribution"])
    for row in found.to_pylist():
        table.add_row(str(row["item"]), f"{row['contribution']:.4f}")
    if found.num_rows:
        table.show(Plain())
    else:
        Plain().print(f"nothing is known of {user}")
