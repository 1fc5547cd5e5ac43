"""Times as microseconds since 1970 in UTC, whatever they were written as."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from safecf.data.reading.arrow import load_pandas
from safecf.errors import shown

UNIT = "datetime64[us]"
MICROSECONDS = pa.timestamp("us")
# Seconds up to the year 10,000; larger numbers are in another unit.
LAST_SECOND = 253_402_300_800

# What a string may stand for, tried in this order.
STRING_FORMATS = (
    pa.int64(),
    pa.float64(),
    MICROSECONDS,
    pa.timestamp("us", "UTC"),
    pa.timestamp("ns"),
    pa.timestamp("ns", "UTC"),
)


class BadTimeError(ValueError):
    """The value at `row`, counted from 0, is not a time."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row = row


def to_timestamps(array: Any) -> Any:
    """Convert an Arrow array of times to timestamp[us].

    Times are timestamps (those with a zone are converted to UTC), dates, ISO-8601 strings such as
    "2024-05-01 13:00:00+02:00", or seconds since 1970, as numbers or as strings.
    """
    kind = array.type
    if pa.types.is_null(kind) and len(array):
        raise _no_time(0)
    if str(kind) in ("string", "large_string", "string_view"):
        _check_present(array)
        array = _parse(array)
        kind = array.type
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_date(kind)
    ):
        raise TypeError(f"holds {kind}, not times; cast it to timestamps, or to seconds since 1970")
    _check_present(array)
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


def to_datetime64(values: Any, name: str) -> NDArray[Any]:
    """Convert a list or array of times to datetime64[us]; the formats are `to_timestamps`'."""
    load_pandas()
    found = np.asarray(values)
    if found.dtype.kind == "M":
        # Arrow knows fewer units than numpy.
        found = found.astype(UNIT)
    try:
        times = to_timestamps(pa.array(found.tolist() if found.dtype.kind in "UO" else found))
    except BadTimeError as problem:
        raise ValueError(f"{name}, entry {problem.row}: {problem}") from None
    except (TypeError, OverflowError, pa.ArrowException) as problem:
        raise TypeError(f"{name}: {problem}") from None
    return np.asarray(times.to_numpy(zero_copy_only=False), dtype=UNIT)


def _no_time(row: int) -> BadTimeError:
    return BadTimeError(row, "there is no time; drop such rows beforehand")


def _check_present(array: Any) -> None:
    missing = pc.is_null(array, nan_is_null=True)
    if pc.any(missing).as_py():
        raise _no_time(pc.index(missing, pa.scalar(True)).as_py())


def _parse(strings: Any) -> Any:
    """Convert strings to numbers or timestamps, all of them to the same type."""
    for kind in STRING_FORMATS:
        if _fits(strings, kind):
            return strings.cast(kind)
    row = max(_first_misfit(strings, kind) for kind in STRING_FORMATS)
    raise BadTimeError(
        row,
        f"{shown(strings[row].as_py())} is no time, or written in another way than those before; "
        "write all of them as 2024-05-01T13:00:00, all with a zone or none, or as seconds since "
        "1970",
    )


def _fits(strings: Any, kind: Any) -> bool:
    try:
        strings.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _first_misfit(strings: Any, kind: Any) -> int:
    """Bisect for the first string that cannot be cast to `kind`: all shorter prefixes can."""
    good, bad = 0, len(strings)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if _fits(strings[:middle], kind) else (good, middle)
    return good
