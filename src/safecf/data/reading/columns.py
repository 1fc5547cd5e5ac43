"""The columns of a `Source`, checked and converted to the types of the library."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from safecf.data.limits import LARGEST_WEIGHT
from safecf.data.reading.arrow import load_pandas
from safecf.data.reading.layout import Layout, Source
from safecf.data.reading.paths import one_line
from safecf.data.reading.times import BadTimeError, to_timestamps


def read_columns(source: Source, layout: Layout) -> Iterator[dict[str, Any]]:
    """Yield the columns of every batch by role, without the rows below `min_rating`.

    user, item and group are int64 or large_string, rating and weight float64, timestamp
    timestamp[us]; none of them is null.
    """
    load_pandas()
    first_row = 0
    for batch in source.batches():
        arrays = {}
        for role, column in layout.columns.items():
            place = Place(f"{source.name}: column {column!r}", source.place, first_row)
            arrays[role] = CONVERT[role](_plain(_valid(batch.column(role), place)), place)
        first_row += batch.num_rows
        if layout.min_rating is not None:
            keep = pc.greater_equal(arrays["rating"], float(layout.min_rating))
            if not pc.all(keep).as_py():
                arrays = {role: array.filter(keep) for role, array in arrays.items()}
        yield arrays


@dataclass(frozen=True)
class Place:
    """A column of a batch, for error messages.

    `row(n)` names row n of the source; `first` is the first row of the batch.
    """

    column: str
    row: Callable[[int], str]
    first: int

    def first_of(self, wrong: Any) -> str:
        """Name the column and the first row where `wrong` is true."""
        return self.at(pc.index(wrong, pa.scalar(True)).as_py())

    def at(self, row: int) -> str:
        """Name the column and a row of the batch."""
        return f"{self.column}, {self.row(self.first + row)}"


def _valid(array: Any, place: Place) -> Any:
    """Raise if an Arrow array is damaged, or holds strings that are not UTF-8."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as problem:
        row = re.search(r"Invalid UTF8 sequence at string index (\d+)", str(problem))
        if row and not pa.types.is_dictionary(array.type):
            raise ValueError(f"{place.at(int(row[1]))}: it is not UTF-8; write it anew") from None
        raise ValueError(
            f"{place.column} is damaged ({one_line(problem)}); write it anew"
        ) from None
    return array


def _plain(array: Any) -> Any:
    """Turn a chunked, extension or dictionary array into a plain one.

    The numbers inside of pandas' periods and intervals are none that a user has seen.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ExtensionArray) and not _is_of_pandas(array.type):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        return _large_strings(array.dictionary).take(array.indices)
    return array


def _is_of_pandas(kind: Any) -> bool:
    return str(getattr(kind, "extension_name", "")).startswith("pandas.")


def _large_strings(array: Any) -> Any:
    """Cast strings of any layout to large_string, which all of pyarrow's functions support."""
    strings = ("string", "string_view", "large_string")
    return array.cast(pa.large_string()) if str(array.type) in strings else array


def _ids(array: Any, place: Place) -> Any:
    array = _large_strings(array)
    if pa.types.is_null(array.type) and len(array):
        array = array.cast(pa.int64())
    elif not (pa.types.is_integer(array.type) or pa.types.is_large_string(array.type)):
        raise TypeError(
            f"{place.column} holds {array.type}, not ids; cast it to int64 or to strings"
        )
    if array.null_count:
        where = place.first_of(array.is_null())
        raise ValueError(f"{where}: there is no id; drop such rows beforehand")
    if pa.types.is_uint64(array.type) and len(array) and pc.max(array).as_py() >= 2**63:
        where = place.first_of(pc.greater_equal(array, pa.scalar(2**63, pa.uint64())))
        raise ValueError(f"{where}: an id is above 2^63 - 1; cast the ids to strings")
    return array if pa.types.is_large_string(array.type) else array.cast(pa.int64())


def _numbers(array: Any, place: Place) -> Any:
    if pa.types.is_null(array.type) and len(array):
        array = array.cast(pa.float64())
    elif not (
        pa.types.is_integer(array.type)
        or pa.types.is_floating(array.type)
        or pa.types.is_decimal(array.type)
    ):
        raise TypeError(f"{place.column} holds {array.type}, not numbers; cast it to float64")
    # Integers beyond 2^53 lose digits, which does not matter in a rating or a weight.
    # The product is a copy: a frame may be written to while it is read.
    numbers = pc.multiply(pc.cast(array, pa.float64(), safe=False), 1.0)
    missing = pc.is_null(numbers, nan_is_null=True)
    if pc.any(missing).as_py():
        where = place.first_of(missing)
        raise ValueError(f"{where}: there is no number; drop such rows beforehand")
    return numbers


def _weights(array: Any, place: Place) -> Any:
    weights = _numbers(array, place)
    if len(weights):
        low, high = pc.min_max(weights).as_py().values()
        if low < 0:
            raise ValueError(
                f"{place.first_of(pc.less(weights, 0.0))}: the weight is negative; drop negative "
                "feedback, or give the column as rating= with a min_rating"
            )
        if high > LARGEST_WEIGHT:
            where = place.first_of(pc.greater(weights, float(LARGEST_WEIGHT)))
            raise ValueError(f"{where}: the weight is above {LARGEST_WEIGHT:g}; clip or scale it")
    return weights


def _times(array: Any, place: Place) -> Any:
    try:
        return to_timestamps(array)
    except TypeError as problem:
        raise TypeError(f"{place.column} {problem}") from None
    except BadTimeError as problem:
        raise ValueError(f"{place.at(problem.row)}: {problem}") from None


CONVERT: dict[str, Callable[[Any, Place], Any]] = {
    "user": _ids,
    "item": _ids,
    "rating": _numbers,
    "weight": _weights,
    "timestamp": _times,
    "group": _ids,
}
