"""Checks of arguments; a message has the argument as it is written in a call, and a remedy.

numpy's scalars are numbers, True and False are not.
"""

import numbers
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from safecf.errors import shown


def check_integer(name: str, value: object, low: int, default: object) -> int:
    """Return a whole number from `low` on; `default` is what the message suggests.

    >>> check_integer("trials", 5.5, 1, default=50)
    Traceback (most recent call last):
    TypeError: trials=5.5 has to be a whole number; try trials=50
    """
    remedy = f"try {name}={default!r}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name}={shown(value)} has to be a whole number; {remedy}")
    if value < low:
        raise ValueError(f"{name}={int(value)} has to be at least {low}; {remedy}")
    return int(value)


def check_number(name: str, value: object, default: object) -> float:
    """Return a real number, which may be infinite, as integers beyond any float are, or NaN."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}={shown(value)} has to be a number; try {name}={default!r}")
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def check_list(name: str, value: object, remedy: str) -> list[Any]:
    """Return the entries; a text or a mapping is not a list."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"{name} is {_described(value)}; {remedy}")
    return list(value)


def check_type(name: str, value: object, kinds: type | tuple[type, ...], remedy: str) -> None:
    """Raise if the value is not of one of the types."""
    if not isinstance(value, kinds):
        raise TypeError(f"{name} is {_described(value)}; {remedy}")


def check_plain(path: Path) -> None:
    """Raise if the path is a pipe, a socket or a device: reading it might never end."""
    if os.path.exists(path) and not path.is_file() and not path.is_dir():
        mode = path.stat().st_mode
        kind = "pipe" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"
        raise OSError(f"{path}: it is a {kind}, not a file; copy the data into a file")


def _described(value: object) -> str:
    """Write None and short values as they are, others by their type."""
    if value is None or isinstance(value, str | bool | int | float):
        return shown(value)
    article = "an" if type(value).__name__[0].lower() in "aeiou" else "a"
    return f"{article} {type(value).__name__}"
