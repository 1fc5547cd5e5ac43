"""`Layout`, which says where in a log everything is; its columns, found and converted."""

import difflib
import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from safecf.data.reading.convert import CONVERT, Place, plain

# a name, or a position counted from 0
Column = str | int


@dataclass(frozen=True)
class Layout:
    """How interactions are written down; the last three are for text files.

    `user`, `item`, `rating`, `weight`, `timestamp` and `group`, the label of the user, are
    columns, None where there is none. A rating below `min_rating` drops its row. `separator` is
    one character, or the same one twice: "::"; `header` says whether the first line holds the
    names.
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
        lowest: Any = self.min_rating
        if lowest is None:
            return
        if isinstance(lowest, bool) or not isinstance(lowest, numbers.Real):
            raise TypeError(f"min_rating is {lowest!r}; it has to be a number, try min_rating=4")
        if self.rating is None:
            raise ValueError(
                f"min_rating is {lowest}, but no column holds the ratings; try rating='rating'"
            )

    @property
    def given(self) -> dict[str, Column]:
        """The columns that there are, by what they hold."""
        columns = {role: getattr(self, role) for role in CONVERT}
        return {role: column for role, column in columns.items() if column is not None}


@dataclass(frozen=True)
class Source:
    """Record batches from one place, whose columns are named by what they hold.

    `place(row)` says where a row is, counted from 0 over all batches.
    """

    name: str
    batches: Callable[[], Iterable[Any]]
    place: Callable[[int], str] = "row {} (counted from 0)".format


def resolve(columns: dict[str, Column], names: Sequence[str], source: str) -> dict[str, int]:
    """Return the position of every column among `names`, or say which one is missing."""
    positions = {}
    for role, column in columns.items():
        if column in names:
            if names.count(str(column)) > 1:
                raise ValueError(
                    f"{source}: there are {names.count(str(column))} columns {column!r}; rename "
                    f"them, or give a position, such as {role}={names.index(str(column))}"
                )
            positions[role] = names.index(str(column))
        elif isinstance(column, int) and 0 <= column < len(names):
            positions[role] = column
        else:
            shown = ", ".join(repr(name) for name in names[:20]) + (", …" if names[20:] else "")
            near = difflib.get_close_matches(str(column).lower(), names, n=1, cutoff=0.5)
            near += [name for name in names if name.lower().startswith(str(column).lower())]
            remedy = f"try {role}={near[0]!r}" if near else f"choose another one by {role}="
            raise ValueError(
                f"{source}: there is no column {column!r} for the {role}; it has "
                f"{shown or 'no columns at all'}; {remedy}"
            )
    return positions


def checked(source: Source, layout: Layout) -> Iterator[dict[str, Any]]:
    """Yield the columns of every batch in the types of the library, without low ratings.

    user, item and group are int64 or large_string, rating and weight float64, timestamp
    timestamp[us]; none of them is null.
    """
    first = 0
    for batch in source.batches():
        arrays = {}
        for role, column in layout.given.items():
            place = Place(f"{source.name}: column {column!r}", source.place, first)
            arrays[role] = CONVERT[role](plain(batch.column(role)), place)
        first += batch.num_rows
        if layout.min_rating is not None:
            keep = pc.greater_equal(arrays["rating"], float(layout.min_rating))
            if not pc.all(keep).as_py():
                arrays = {role: array.filter(keep) for role, array in arrays.items()}
        yield arrays
