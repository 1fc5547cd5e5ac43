"""`safecf recommend`: the best items of users of a saved model, by the original ids."""

import shlex
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from safecf.checks import check_integer
from safecf.cli.asking import (
    Count,
    KnownData,
    ModelFile,
    Out,
    interactions_of,
    load_model,
    print_groups,
)
from safecf.cli.command_options import DataOptions, Device, Json, Quiet, flag, with_records

if TYPE_CHECKING:
    from safecf.data.matrices.interactions import Interactions
    from safecf.models import Recommender

MOST_SHOWN = 20  # users, unless they are listed


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
    out: Out = None
    N: Count = 10
    filter_items: Annotated[
        list[str] | None,
        typer.Option(help="Id of an item, or a file of ids, to leave out; may be repeated."),
    ] = None
    items: Annotated[
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
    # the name in Python, too long to be shown beside the others
    filter_already_liked_items: Annotated[bool, typer.Option(hidden=True)] = True
    seen: Annotated[
        bool,
        typer.Option(
            "--seen",
            help="Also recommend what a user has already; the same as "
            "--no-filter-already-liked-items.",
        ),
    ] = False
    recalculate_user: Annotated[
        bool,
        typer.Option(
            "--recalculate-user", help="Compute users from the data, not from what training stored."
        ),
    ] = False
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Keep answers beside the file until it is written, so that the same command goes "
            "on after a break.",
        ),
    ] = False
    device: Device = None
    quiet: Quiet = False
    json: Json = False

    @property
    def leave_out_seen(self) -> bool:
        """Whether what users have already is not recommended."""
        return self.filter_already_liked_items and not self.seen

    def __post_init__(self) -> None:
        check_integer("N", self.N, 1, default=10)
        if self.filter_items and self.items:
            raise ValueError(
                "--filter-items and --items exclude each other; leave the former out of the latter"
            )
        if self.out is None and self.resume:
            raise ValueError("--resume is for a file; name it by -o, or leave out --resume")


@with_records
def recommend(options: RecommendOptions, data: KnownData) -> None:
    """Recommend items to users of a saved model.

    Users of whom nothing is known get the most popular items, and are marked so. The data are not
    needed with --seen, nor with --histories. For example:

    safecf recommend model.safetensors clicks.parquet --user visitor --item page -o best.parquet

    safecf recommend model.safetensors ml-1m --users 17 --users 18 -n 5

    safecf recommend model.safetensors --histories today.csv -o best.csv.gz
    """
    # Imported here, so that the command line starts fast and Ctrl-C works from the start.
    from safecf.cli.output_files import check_targets, input_files, table_file  # noqa: PLC0415
    from safecf.cli.running import check_interrupt  # noqa: PLC0415

    out = None if options.out is None else table_file(options.out)
    lists = [*(options.users or []), *(options.filter_items or []), *(options.items or [])]
    files = [str(options.model), *lists, *(options.histories or [])]
    check_targets([("--out", out)], input_files(data, files))
    model = load_model(options.model, options.device)
    everybody = out is None and not options.users and not options.histories and not options.json
    if everybody and (options.recalculate_user or model.sizes()[0] > MOST_SHOWN):
        raise ValueError(
            "all users are too many to show; give some by --users, or a file to write by -o"
        )
    chosen = _selection(model, options, data)
    histories = _histories(data, options.histories, model)
    if not data.data:
        _check_given(chosen["users"], histories, model, options)
    known = interactions_of(data, model) if data.data else None
    given: dict[str, Any] = {
        **chosen,
        "N": options.N,
        "filter_already_liked_items": options.leave_out_seen,
        "recalculate_user": options.recalculate_user,
        "histories": histories,
    }
    check_interrupt()
    if out is None:
        _show(model, known, given, as_json=options.json)
    else:
        _write(model, out, known, given, options)


def _selection(
    model: "Recommender", options: RecommendOptions, data: DataOptions
) -> dict[str, Any]:
    """Return the ids of users, and of items to leave out or to choose from; None for all."""
    from safecf.cli.id_lists import read_ids  # noqa: PLC0415

    lists = {
        "users": ("user", options.users, model.user_ids),
        "filter_items": ("item", options.filter_items, model.item_ids),
        "items": ("item", options.items, model.item_ids),
    }
    return {
        name: read_ids(flag(name), given, column, data, known) if given else None
        for name, (column, given, known) in lists.items()
    }


def _histories(
    data: KnownData, files: list[str] | None, model: "Recommender"
) -> "Interactions | None":
    """Read histories with the columns of the data; nothing of them is dropped."""
    if not files:
        return None
    plain = replace(
        data, data=files, path=None, min_user_interactions=None, min_item_interactions=None
    )
    return interactions_of(plain, model)


def _check_given(
    users: Any, histories: "Interactions | None", model: "Recommender", options: RecommendOptions
) -> None:
    """Raise if what users of the model have has to be known, and is not in the histories."""
    from safecf.errors import shown  # noqa: PLC0415
    from safecf.models.by_ids import Names  # noqa: PLC0415

    names = Names.of_users(model)
    asked = users
    if asked is None:
        asked = names.array[: 0 if histories is not None else None]
    lacking = asked if options.recalculate_user else asked[names.find(asked) >= 0]
    if histories is not None:
        given = Names.make(model, "given", histories.user_ids, histories.num_users)
        lacking = lacking[given.find(lacking) < 0]
    needed = options.leave_out_seen or options.recalculate_user or model.needs_histories
    if not needed or not lacking.size:
        return
    hint = "" if model.needs_histories else ", or --seen to recommend what they have, too"
    if histories is not None:
        raise ValueError(
            f"user {shown(lacking.tolist()[0])} of --users is not in --histories; add the data "
            f"with what the others have{hint}"
        )
    if model.needs_histories:
        raise ValueError(
            f"{type(model).__name__} computes users from what they have; add the data, or "
            "--histories"
        )
    raise ValueError(
        "what the users have already is not given; add the data, as in safecf recommend "
        f"{shlex.quote(str(options.model))} clicks.parquet{hint}"
    )


def _write(
    model: "Recommender",
    out: Path,
    known: "Interactions | None",
    given: dict[str, Any],
    options: RecommendOptions,
) -> None:
    """Write the file, then say what is in it."""
    from safecf.batch import recommend_to_file  # noqa: PLC0415
    from safecf.cli.terminal import Plain, bytes_text, print_json, seconds_text  # noqa: PLC0415

    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        found = recommend_to_file(
            model, out, known, **given, resume=options.resume, show_progress=not options.quiet
        )
    except KeyboardInterrupt:
        if not options.resume:
            raise
        raise KeyboardInterrupt(
            "safecf: interrupted; to go on, start the same command again"
        ) from None
    size = out.stat().st_size
    everybody = given["users"] is None and given["histories"] is None
    unknown = _count_unknown(model, known) if everybody and not options.recalculate_user else 0
    if options.json:
        record = {"file": str(out), "bytes": size, **asdict(found), "unknown_users": unknown}
        print_json(record)
        return
    console = Plain()
    console.line_of(
        f"{found.rows:,} recommendations for {found.users:,} users in {seconds_text(found.seconds)}"
    )
    if found.cold_users:
        console.line_of(f"{found.cold_users:,} users of whom nothing is known got popular items")
    if unknown:
        console.line_of(
            f"{unknown:,} users of the data are unknown to the model and have no row; name them by "
            "--users, which also takes the file of the data, or add --recalculate-user to compute "
            "all users of the data"
        )
    if found.empty_users:
        console.line_of(f"{found.empty_users:,} users have no row, as no item is left for them")
    console.line_of(f"written: {out} ({bytes_text(size)})")


def _count_unknown(model: "Recommender", known: "Interactions | None") -> int:
    """Return how many users of the data the model does not know."""
    from safecf.models.by_ids import Names  # noqa: PLC0415

    if known is None:
        return 0
    there = Names.make(model, "data", known.user_ids, known.num_users).array
    return int((Names.of_users(model).find(there) < 0).sum())


def _show(
    model: "Recommender", known: "Interactions | None", given: dict[str, Any], *, as_json: bool
) -> None:
    from safecf.cli.terminal import Plain, print_json  # noqa: PLC0415
    from safecf.models.answers import make_answers  # noqa: PLC0415

    answers = make_answers(model, user_items=known, cold=True, **given)
    found = answers.table()
    if as_json:
        print_json(found.to_pylist())
        return
    print_groups(found, "user", "item")
    empty = len(answers.users) - found["rank"].to_pylist().count(1)
    if found.num_rows and empty:
        Plain().print(f"no item is left for {empty:,} of {len(answers.users):,} users")
