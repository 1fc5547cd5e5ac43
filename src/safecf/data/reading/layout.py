"""`Layout`: which column of a log holds what; `Source`: the record batches of a log."""

import difflib
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from safecf.errors import shown

# a name, or a position counted from 0
Column = str | int

# what a column can hold
ROLES = ("user", "item", "rating", "weight", "timestamp", "group")


@dataclass(frozen=True)
class Layout:
    """The columns of a log by role, and the format of text files.

    `user`, `item`, `rating`, `weight`, `timestamp` and `group` (the label of the user) are columns,
    None if there is no such column. Rows with a rating below `min_rating` are dropped.

    The last three are for text files: `separator` is one character, or the same one twice ("::"),
    `header` says whether the first line holds the column names.
    """

    user: Column = "user"
    item: Column = "item"
    rating: Column | None = None
    weight: Column | None = None
    timestamp: Column | None = None
    group: Column | None = None
    min_rating: float | None = None
    separator: str = ","
    header: bool = True
    encoding: str = "utf8"

    def __post_init__(self) -> None:
        for role in ROLES:
            column: Any = getattr(self, role)
            wrong = isinstance(column, bool) or not isinstance(column, str | int)
            if wrong and (column is not None or role in ("user", "item")):
                raise TypeError(
                    f"{role}={shown(column)}; give the name of a column, or its position from 0"
                )
        lowest: Any = self.min_rating
        if lowest is None:
            return
        if isinstance(lowest, bool) or not isinstance(lowest, numbers.Real):
            raise TypeError(f"min_rating={shown(lowest)}; it has to be a number, try min_rating=4")
        if self.rating is None:
            raise ValueError(
                f"min_rating={lowest}, but no column holds the ratings; try rating='rating'"
            )

    @property
    def columns(self) -> dict[str, Column]:
        """The columns that were given, by role."""
        columns = {role: getattr(self, role) for role in ROLES}
        return {role: column for role, column in columns.items() if column is not None}


class ColumnError(ValueError):
    """A column is not there, or not to be told from the others."""


@dataclass(frozen=True)
class Source:
    """The record batches of one file or frame; their columns are named by role.

    `place(row)` names a row in error messages; rows are counted from 0 over all batches. `is_text`:
    the file has no types, so that ids are strings, which may stand for integers.
    """

    name: str
    batches: Callable[[], Iterable[Any]]
    place: Callable[[int], str] = "row {} (counted from 0)".format
    is_text: bool = False


def name_all(names: Sequence[str]) -> str:
    """Name the first source, and say how many more there are.

    >>> name_all(["a.csv", "b.csv"])
    'a.csv and 1 more'
    """
    return names[0] + (f" and {len(names) - 1} more" if names[1:] else "")


def find_columns(columns: dict[str, Column], names: Sequence[str], source: str) -> dict[str, int]:
    """Return the position of every role's column among `names`.

    Raise if one is missing, or if user and item are the same.
    """
    positions = {}
    for role, column in columns.items():
        if column in names:
            if names.count(str(column)) > 1:
                raise ColumnError(
                    f"{source}: there are {names.count(str(column))} columns {shown(column)}; "
                    f"rename them, or give a position, such as {role}={names.index(str(column))}"
                )
            positions[role] = names.index(str(column))
        elif isinstance(column, int) and 0 <= column < len(names):
            positions[role] = column
        else:
            known = ", ".join(map(shown, names[:20])) + (", …" if names[20:] else "")
            near = difflib.get_close_matches(str(column).lower(), names, n=1, cutoff=0.5)
            near += [name for name in names if name.lower().startswith(str(column).lower())]
            remedy = f"try {role}={shown(near[0])}" if near else f"choose another one by {role}="
            raise ColumnError(
                f"{source}: there is no column {shown(column)} for the {role}; it has "
                f"{known or 'no columns at all'}; {remedy}"
            )
    if {"user", "item"} <= positions.keys() and positions["user"] == positions["item"]:
        raise ColumnError(
            f"{source}: column {columns['user']!r} is given both for the user and for the item; "
            "choose another one by user= or item="
        )
    return positions


def name_by_role(batch: Any, columns: Mapping[str, int | str]) -> Any:
    """Return the given columns of a record batch, named by role."""
    arrays = [batch.column(column) for column in columns.values()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))
