"""The columns of a log: which they are, and what is wrong with them where."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# a name, or a position counted from 0
Column = str | int

LARGEST_WEIGHT = 3.4e38


@dataclass(frozen=True)
class Columns:
    """Which column holds what; a rating below `min_rating` drops its row."""

    user: Column
    item: Column
    rating: Column | None = None
    weight: Column | None = None
    timestamp: Column | None = None
    min_rating: float | None = None

    def __post_init__(self) -> None:
        if self.min_rating is not None and self.rating is None:
            raise ValueError(
                f"min_rating is {self.min_rating}, but no column holds the ratings; "
                "try rating='rating'"
            )

    @property
    def given(self) -> dict[str, Column]:
        """The columns that there are, by what they hold."""
        roles = ("user", "item", "rating", "weight", "timestamp")
        columns = {role: getattr(self, role) for role in roles}
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
                    f"{source}: there are {names.count(str(column))} columns {column!r}; "
                    f"rename them, or give a position, such as {role}=0"
                )
            positions[role] = names.index(str(column))
        elif isinstance(column, int) and 0 <= column < len(names):
            positions[role] = column
        else:
            shown = ", ".join(repr(name) for name in names[:20]) + (", …" if names[20:] else "")
            near = difflib.get_close_matches(str(column).lower(), names, n=1, cutoff=0.5)
            remedy = near[0] if near else names[0] if names else "…"
            raise ValueError(
                f"{source}: there is no column {column!r} for the {role}; it has "
                f"{shown or 'no columns at all'}; try {role}={remedy!r}"
            )
    return positions


def checked(source: Source, columns: Columns) -> Iterator[dict[str, Any]]:
    """Yield the columns of every batch in the types of the library, without low ratings.

    user and item are int64 or large_string, rating and weight float64, timestamp int64, none of
    them null.
    """
    first = 0
    for batch in source.batches():
        arrays = {}
        for role in columns.given:
            convert = CONVERT[role]
            where = f"{source.name}: column {columns.given[role]!r}"
            arrays[role] = convert(_whole(batch.column(role), where), _Place(where, source, first))
        first += batch.num_rows
        if columns.min_rating is not None:
            keep = pc.greater_equal(arrays["rating"], float(columns.min_rating))
            if not pc.all(keep).as_py():
                arrays = {role: array.filter(keep) for role, array in arrays.items()}
        yield arrays


@dataclass(frozen=True)
class _Place:
    """Where a batch is: its column, and the number of its first row."""

    column: str
    source: Source
    first: int

    def __call__(self, wrong: Any) -> str:
        """Name the column and the first row that is wrong."""
        row = pc.index(wrong, pa.scalar(True)).as_py()
        return f"{self.column}, {self.source.place(self.first + row)}"


def _whole(array: Any, where: str) -> Any:
    """Return a chunked or dictionary array as a plain one."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        return _unviewed(array.dictionary).take(array.indices)
    return array


def _unviewed(array: Any) -> Any:
    """Return strings in the layout that every function of Arrow knows."""
    text = ("string", "string_view", "large_string")
    return array.cast(pa.large_string()) if str(array.type) in text else array


def _ids(array: Any, place: _Place) -> Any:
    array = _unviewed(array)
    if pa.types.is_null(array.type) and len(array):
        array = array.cast(pa.int64())
    elif not (pa.types.is_integer(array.type) or pa.types.is_large_string(array.type)):
        raise TypeError(
            f"{place.column} holds {array.type}, not ids; cast it to int64 or to strings"
        )
    if array.null_count:
        raise ValueError(f"{place(array.is_null())}: there is no id; drop such rows beforehand")
    if pa.types.is_uint64(array.type) and len(array) and pc.max(array).as_py() >= 2**63:
        huge = pc.greater_equal(array, pa.scalar(2**63, pa.uint64()))
        raise ValueError(f"{place(huge)}: an id is above 2^63 - 1; cast the ids to strings")
    return array if pa.types.is_large_string(array.type) else array.cast(pa.int64())


def _numbers(array: Any, place: _Place) -> Any:
    if pa.types.is_null(array.type) and len(array):
        array = array.cast(pa.float64())
    elif not (
        pa.types.is_integer(array.type)
        or pa.types.is_floating(array.type)
        or pa.types.is_decimal(array.type)
    ):
        raise TypeError(f"{place.column} holds {array.type}, not numbers; cast it to float64")
    # Integers beyond 2^53 lose digits, which is fine for a rating or a weight.
    numbers = pc.cast(array, pa.float64(), safe=False)
    missing = pc.is_null(numbers, nan_is_null=True)
    if pc.any(missing).as_py():
        raise ValueError(f"{place(missing)}: there is no number; drop such rows beforehand")
    return numbers


def _weights(array: Any, place: _Place) -> Any:
    weights = _numbers(array, place)
    if len(weights):
        low, high = pc.min_max(weights).as_py().values()
        if low < 0:
            raise ValueError(
                f"{place(pc.less(weights, 0.0))}: the weight is negative; drop negative feedback, "
                "or give the column as rating= with a min_rating"
            )
        if high > LARGEST_WEIGHT:
            raise ValueError(
                f"{place(pc.greater(weights, LARGEST_WEIGHT))}: the weight is above "
                f"{LARGEST_WEIGHT:g}; clip or scale it"
            )
    return weights


def _times(array: Any, place: _Place) -> Any:
    if pa.types.is_date32(array.type):
        array = array.cast(pa.date64())
    if not (pa.types.is_integer(array.type) or pa.types.is_temporal(array.type)):
        raise TypeError(
            f"{place.column} holds {array.type}, not times; cast it to int64 or to timestamps"
        )
    if array.null_count:
        raise ValueError(f"{place(array.is_null())}: there is no time; drop such rows beforehand")
    return array.cast(pa.int64())


CONVERT: dict[str, Callable[[Any, _Place], Any]] = {
    "user": _ids,
    "item": _ids,
    "rating": _numbers,
    "weight": _weights,
    "timestamp": _times,
}
