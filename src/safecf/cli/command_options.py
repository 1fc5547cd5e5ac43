"""The options that commands share, as records; a command takes a record as one parameter.

No heavy module is imported, so that `safecf --help` is fast; therefore the names of models and data
sets are repeated here.
"""

import functools
import inspect
import shlex
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from safecf.cli.completion import metric, name_or_file, one_of
from safecf.data.splits.protocol import MIN_INTERACTIONS
from safecf.defaults import METRIC

DATASETS = ("ml-1m", "ml-20m", "msd")
SHAPES = ("demo", "ml-20m-like", "msd-like")
MODELS = ("ials", "ialspp", "ermmf", "cvarmf", "safer2", "safer2pp", "safer2cg", "ease", "multvae")
COUNTS = ("min_user_interactions", "min_item_interactions")
MODEL_HELP = (
    f"A model and its options, as in safer2:factors=32,bandwidth=0.15. Models: {', '.join(MODELS)}."
)

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print the results as one JSON document, and nothing else.")
]
Device = Annotated[
    str | None,
    typer.Option(
        help="Where models compute: cpu, cuda, cuda:1 and so on, or auto, the GPU if there is one.",
        show_default="as the model says",
        autocompletion=one_of(("auto", "cpu", "cuda")),
    ),
]
ModelSeed = Annotated[int, typer.Option(help="Seed of the models.")]
Metric = Annotated[
    str | None,
    typer.Option(
        help="Metric to show, such as recall, ndcg@10, or auc.",
        show_default=METRIC,
        autocompletion=metric,
    ),
]
Tail = Annotated[float, typer.Option(help="Share of worst-off users to show.")]

FileOption = functools.partial(typer.Option, rich_help_panel="Reading files")
FilterOption = functools.partial(typer.Option, rich_help_panel="Filtering interactions")


def _column(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


@dataclass(frozen=True)
class DataOptions:
    """Where interactions come from, and which of them to keep; None: the option was not given."""

    data: Annotated[
        list[str],
        typer.Argument(
            help=f"A data set ({', '.join(DATASETS)}), a synthetic one ({', '.join(SHAPES)}), or "
            "files: Parquet or text, which may be compressed, folders, patterns; or the folder of "
            "a split that safecf data split wrote.",
            autocompletion=name_or_file((*DATASETS, *SHAPES)),
        ),
    ]
    path: Annotated[
        Path | None,
        FileOption(
            help="Archive, folder or file of a data set; by default in SAFECF_DATA or the cache, "
            "else downloaded."
        ),
    ] = None
    user: Annotated[
        str | None,
        FileOption(
            help="Column of the user ids: a name, or a position from 0.", show_default="user"
        ),
    ] = None
    item: Annotated[str | None, FileOption(help="Column of the item ids.", show_default="item")] = (
        None
    )
    rating: Annotated[str | None, FileOption(help="Column of the ratings.")] = None
    weight: Annotated[str | None, FileOption(help="Column of the confidence weights.")] = None
    timestamp: Annotated[
        str | None, FileOption(help="Column of the times: ISO-8601, or seconds since 1970.")
    ] = None
    group: Annotated[str | None, FileOption(help="Column of the users' group labels.")] = None
    separator: Annotated[
        str | None,
        FileOption(help='Field separator of text files: "," "::" "\\t".', show_default=","),
    ] = None
    header: Annotated[
        bool | None,
        FileOption(
            "--header/--no-header",
            help="Whether line 1 of a text file holds the column names.",
            show_default="header",
        ),
    ] = None
    encoding: Annotated[
        str | None, FileOption(help="Encoding of text files.", show_default="utf8")
    ] = None
    min_rating: Annotated[float | None, FilterOption(help="Lowest rating to keep.")] = None
    min_user_interactions: Annotated[
        int | None,
        FilterOption(
            help="Drop users with fewer interactions. Not given, a split into training and "
            f"held-out users drops those with fewer than {MIN_INTERACTIONS}, or as the paper does."
        ),
    ] = None
    min_item_interactions: Annotated[
        int | None, FilterOption(help="Drop items with fewer interactions.")
    ] = None
    duplicates: Annotated[
        str | None,
        FilterOption(
            help="How to merge repeated pairs: sum, max, first, last or error.",
            autocompletion=one_of(("sum", "max", "first", "last", "error")),
        ),
    ] = None

    def layout(self) -> Any:
        """Return the layout of the files; options that were not given keep its defaults."""
        from safecf.data.reading.layout import ROLES, Layout  # noqa: PLC0415

        given = {n: v for n, v in vars(self).items() if v is not None and hasattr(Layout, n)}
        given |= {name: _column(given[name]) for name in ROLES if name in given}
        if self.separator is not None:
            given["separator"] = self.separator.replace("\\t", "\t")
        return Layout(**given)

    def typed(self) -> str:
        """Return the data and its options as they are typed in a shell.

        >>> DataOptions(["my clicks.csv"], user="visitor", header=False).typed()
        "'my clicks.csv' --user visitor --no-header"
        """
        words = [str(each) for each in self.data]
        for name, value in vars(self).items():
            if isinstance(value, bool):
                words.append(flag(name) if value else flag(f"no-{name}"))
            elif name != "data" and value is not None:
                words += [flag(name), str(value)]
        return shlex.join(words)

    def counts(self) -> dict[str, int]:
        """Return the minimum numbers of interactions that were given."""
        return {name: vars(self)[name] for name in COUNTS if vars(self)[name] is not None}

    def refuse_others(self, allowed: tuple[str, ...], what: str) -> None:
        """Raise if an option was given that does not apply to this data."""
        for name, value in vars(self).items():
            if name not in (*allowed, "data") and value is not None:
                raise ValueError(f"{flag(name)} does not apply to {what}; leave it out")


def with_records(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the record parameters of a command by options, one per field."""
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
            name: kind(**{field.name: _given(field, given) for field in fields(kind)})
            for name, kind in records.items()
        }
        command(**made, **given)

    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def reflowed(command: Callable[..., None]) -> str:
    """Return the help of a command with the lines of every paragraph joined: it is wrapped anew."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(each.split()) for each in paragraphs)


def _options(record: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(record, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(field),
            annotation=hints[field.name],
        )
        for field in fields(record)
    ]


def _given(field: Field[Any], given: dict[str, Any]) -> Any:
    value = given.pop(field.name)
    if value is None and field.default_factory is not MISSING:
        return field.default_factory()
    return value


def _default(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return None  # Click before 8.2 takes no other default for arguments that may be repeated
    return inspect.Parameter.empty if field.default is MISSING else field.default


def only_model(specs: list[str], command: str) -> str:
    """Return the one model of a command that takes no more; raise if there are several."""
    if len(specs) > 1:
        raise ValueError(
            f"safecf {command} takes one model, while -m is given {len(specs)} times; leave out "
            f"all but one, or use safecf compare"
        )
    return specs[0]


def check_seed(option: str, seed: int) -> None:
    """Raise unless numpy takes the seed."""
    if not 0 <= seed < 2**32:
        bound = "at least 0" if seed < 0 else "below 2**32"
        raise ValueError(f"{option} {seed} has to be {bound}; try {option} 0")


def flag(name: str) -> str:
    """Return the name of an option as it is typed.

    >>> flag("min_rating")
    '--min-rating'
    """
    return "--" + name.replace("_", "-")
