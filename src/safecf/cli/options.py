"""The options that commands share, as records; a command takes a record as one parameter.

Nothing heavy is imported here, so that `safecf --help` is fast; names of models and data sets are
written out for that reason.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from safecf.errors import choose

DATASETS = ("ml-1m", "ml-20m", "msd")
SHAPES = ("demo", "ml-20m-like", "msd-like")
MODELS = ("ials", "ialspp", "ermmf", "cvarmf", "safer2", "safer2pp", "safer2cg", "ease", "multvae")
SPLITS = ("strong", "holdout", "temporal")
SEED = 98765

OfFiles = functools.partial(typer.Option, rich_help_panel="Reading files")
OfRows = functools.partial(typer.Option, rich_help_panel="Choosing interactions")
OfSplits = functools.partial(typer.Option, rich_help_panel="Splitting")


def _column(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


@dataclass(frozen=True)
class DataOptions:
    """Where interactions come from, and which of them count; None is what was not given."""

    data: Annotated[
        list[str],
        typer.Argument(
            help=f"A data set ({', '.join(DATASETS)}), a synthetic one ({', '.join(SHAPES)}), or "
            "Parquet and text files, also compressed, folders and patterns."
        ),
    ]
    path: Annotated[
        Path | None, OfFiles(help="Archive, folder or file of a data set; else downloaded.")
    ] = None
    user: Annotated[
        str | None,
        OfFiles(help="Column of the users, a name or a number from 0.", show_default="user"),
    ] = None
    item: Annotated[str | None, OfFiles(help="Column of the items.", show_default="item")] = None
    rating: Annotated[str | None, OfFiles(help="Column of the ratings.")] = None
    weight: Annotated[str | None, OfFiles(help="Column of the weights to train with.")] = None
    timestamp: Annotated[
        str | None, OfFiles(help="Column of the times: ISO-8601, or seconds since 1970.")
    ] = None
    group: Annotated[str | None, OfFiles(help="Column with a label of the user.")] = None
    separator: Annotated[
        str | None, OfFiles(help='Between fields of text: "," "::" "\\t".', show_default=",")
    ] = None
    header: Annotated[
        bool | None,
        OfFiles(
            "--header/--no-header", help="Whether line 1 holds the names.", show_default="header"
        ),
    ] = None
    encoding: Annotated[str | None, OfFiles(help="Of text files.", show_default="utf8")] = None
    min_rating: Annotated[float | None, OfRows(help="Keep ratings from here on.")] = None
    min_user_interactions: Annotated[int | None, OfRows(help="Drop users with fewer.")] = None
    min_item_interactions: Annotated[int | None, OfRows(help="Drop items with fewer.")] = None
    duplicates: Annotated[
        str | None, OfRows(help="Weight of a pair that repeats: sum, max, first, last or error.")
    ] = None

    def layout(self) -> Any:
        """Return how the files are written, with the library's defaults for the rest."""
        from safecf.data.reading.columns import Layout  # noqa: PLC0415

        columns = ("user", "item", "rating", "weight", "timestamp", "group")
        given = {n: v for n, v in vars(self).items() if v is not None and hasattr(Layout, n)}
        given |= {name: _column(given[name]) for name in columns if name in given}
        if self.separator is not None:
            given["separator"] = self.separator.replace("\\t", "\t")
        return Layout(**given)

    def counts(self) -> dict[str, int]:
        """Return the least numbers of interactions that were given."""
        names = ("min_user_interactions", "min_item_interactions")
        return {name: vars(self)[name] for name in names if vars(self)[name] is not None}

    def refuse_others(self, allowed: tuple[str, ...], what: str) -> None:
        """Refuse the options that mean nothing for this data."""
        for name, value in vars(self).items():
            if name not in (*allowed, "data") and value is not None:
                raise ValueError(f"{flag(name)} means nothing for {what}; leave it out")


@dataclass(frozen=True)
class SplitOptions:
    """Who is held out, and what of them."""

    split: Annotated[
        str,
        OfSplits(
            help="strong: users new to the model; holdout: a part of every user; temporal: what "
            "comes after a time."
        ),
    ] = "strong"
    heldout: Annotated[
        int | None,
        OfSplits(help="strong: users for validation, and for the test; by default a tenth."),
    ] = None
    share: Annotated[
        float | None, OfSplits(help="Share that is hidden: of a user, or of all by time.")
    ] = None
    cutoff: Annotated[
        str | None, OfSplits(help="temporal: when the test begins; instead of --share.")
    ] = None
    split_seed: Annotated[
        int | None, OfSplits(help="strong, holdout: seed of the split.", show_default=str(SEED))
    ] = None

    def __post_init__(self) -> None:
        choose("split", self.split, dict.fromkeys(SPLITS))
        uses = {"heldout": ("strong",), "cutoff": ("temporal",), "split_seed": SPLITS[:2]}
        for name, splits in uses.items():
            if getattr(self, name) is not None and self.split not in splits:
                raise ValueError(
                    f"{flag(name)} means nothing for --split {self.split}; leave it out"
                )
        if self.cutoff is not None and self.share is not None:
            raise ValueError("--cutoff and --share exclude each other; leave one of them out")

    @property
    def seed(self) -> int:
        """The seed of the split, the paper's by default."""
        return SEED if self.split_seed is None else self.split_seed

    def settings(self) -> dict[str, object]:
        """Return what it takes to split in the same way again."""
        chosen = {"split": self.split, "held-out users": self.heldout, "share": self.share}
        chosen |= {"cutoff": self.cutoff}
        if self.split != "temporal":
            chosen["seed of the split"] = self.seed
        return {name: value for name, value in chosen.items() if value is not None}


def with_records(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take records: their fields become its options."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    records: dict[str, Any] = {}
    for each in inspect.signature(command).parameters.values():
        kind = hints[each.name]
        if is_dataclass(kind):
            records[each.name] = kind
            parameters += _options(kind)
        else:
            parameters.append(each.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def run(**given: Any) -> None:
        made = {
            name: kind(**{field.name: given.pop(field.name) for field in fields(kind)})
            for name, kind in records.items()
        }
        command(**made, **given)

    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _options(record: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(record, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(record)
    ]


def flag(name: str) -> str:
    """Return the option of this name.

    >>> flag("min_rating")
    '--min-rating'
    """
    return "--" + name.replace("_", "-")
