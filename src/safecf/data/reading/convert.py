"""The columns of a log in the types of the library, or what is wrong with them, and where."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from safecf.data.matrices.matrix import LARGEST_WEIGHT
from safecf.data.reading.times import BadTimeError, to_times


@dataclass(frozen=True)
class Place:
    """Where a batch is: its column, how its rows are called, and the number of its first row."""

    column: str
    row: Callable[[int], str]
    first: int

    def __call__(self, wrong: Any) -> str:
        """Name the column and the first row that is wrong."""
        return self.at(pc.index(wrong, pa.scalar(True)).as_py())

    def at(self, row: int) -> str:
        """Name the column and a row of the batch."""
        return f"{self.column}, {self.row(self.first + row)}"


def plain(array: Any) -> Any:
    """Return a chunked, extension or dictionary array as a plain one."""
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


def _ids(array: Any, place: Place) -> Any:
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


def _numbers(array: Any, place: Place) -> Any:
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


def _weights(array: Any, place: Place) -> Any:
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
                f"{place(pc.greater(weights, float(LARGEST_WEIGHT)))}: the weight is above "
                f"{LARGEST_WEIGHT:.2g}; clip or scale it"
            )
    return weights


def _times(array: Any, place: Place) -> Any:
    try:
        return to_times(array)
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
