"""Times in one unit: microseconds since 1970, UTC, whatever they were written as."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

UNIT = "datetime64[us]"
MICROSECONDS = pa.timestamp("us")
# In seconds, the year 10,000: later than that is another unit.
LAST_SECOND = 253_402_300_800

# What a text may be, tried in this order.
WRITTEN_AS = (
    pa.int64(),
    pa.float64(),
    MICROSECONDS,
    pa.timestamp("us", "UTC"),
    pa.timestamp("ns"),
    pa.timestamp("ns", "UTC"),
)


class BadTimeError(ValueError):
    """Something is wrong with the time in a row, counted from 0."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row = row


def to_times(array: Any) -> Any:
    """Return an Arrow array of times as timestamp[us].

    Times are timestamps (those with a zone are converted to UTC), dates, ISO-8601 texts such as
    "2024-05-01 13:00:00+02:00", or numbers: seconds since 1970. Numbers may be texts as well.
    """
    kind = array.type
    if pa.types.is_null(kind) and len(array):
        raise BadTimeError(0, "there is no time; drop such rows beforehand")
    if str(kind) in ("string", "large_string", "string_view"):
        _check_there(array)
        array = _parsed(array)
        kind = array.type
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_date(kind)
    ):
        raise TypeError(f"holds {kind}, not times; cast it to timestamps, or to seconds since 1970")
    _check_there(array)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return array.cast(MICROSECONDS, safe=False)
    seconds = pc.cast(array, pa.float64(), safe=False)
    late = pc.greater_equal(pc.abs(seconds), float(LAST_SECOND))
    if pc.any(late).as_py():
        row = pc.index(late, pa.scalar(True)).as_py()
        raise BadTimeError(
            row,
            f"{array[row].as_py()} seconds since 1970 are after the year 9999; divide "
            "milliseconds by 1000, or cast them to timestamps",
        )
    if pa.types.is_integer(kind):
        return array.cast(pa.int64()).cast(pa.timestamp("s")).cast(MICROSECONDS)
    return pc.round(pc.multiply(seconds, 1e6)).cast(pa.int64()).cast(MICROSECONDS)


def as_times(values: Any, name: str) -> NDArray[Any]:
    """Return times, in a list or an array of any kind that `to_times` knows, as datetime64[us]."""
    found = np.asarray(values)
    if found.dtype.kind == "M":
        # Arrow knows fewer units than numpy.
        found = found.astype(UNIT)
    try:
        times = to_times(pa.array(found.tolist() if found.dtype.kind in "UO" else found))
    except BadTimeError as problem:
        raise ValueError(f"{name}, entry {problem.row}: {problem}") from None
    except (TypeError, pa.ArrowException) as problem:
        raise TypeError(f"{name}: {problem}") from None
    return np.asarray(times.to_numpy(zero_copy_only=False), dtype=UNIT)


def _check_there(array: Any) -> None:
    missing = pc.is_null(array, nan_is_null=True)
    if pc.any(missing).as_py():
        row = pc.index(missing, pa.scalar(True)).as_py()
        raise BadTimeError(row, "there is no time; drop such rows beforehand")


def _parsed(texts: Any) -> Any:
    """Return texts as numbers or timestamps, all of them in the same way."""
    for kind in WRITTEN_AS:
        if _fits(texts, kind):
            return texts.cast(kind)
    row = max(_first_misfit(texts, kind) for kind in WRITTEN_AS)
    raise BadTimeError(
        row,
        f"{texts[row].as_py()[:50]!r} is no time, or written in another way than those before; "
        "write all of them as 2024-05-01T13:00:00, all with a zone or none, or as seconds since "
        "1970",
    )


def _fits(texts: Any, kind: Any) -> bool:
    try:
        texts.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _first_misfit(texts: Any, kind: Any) -> int:
    """Return the first text that is not of this kind, by bisection: prefixes fit up to it."""
    good, bad = 0, len(texts)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if _fits(texts[:middle], kind) else (good, middle)
    return good
