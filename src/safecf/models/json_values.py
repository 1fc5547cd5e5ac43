"""Values in the JSON headers of files; JSON has neither infinities nor NaN."""

import math
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from safecf.errors import shown

NOT_FINITE = ("inf", "-inf", "nan")
KEPT = (str, int, float, np.integer, np.floating, np.bool_, type(None))


def plain(value: Any) -> Any:
    """Convert to JSON types; infinities and NaN become strings."""
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, bool | str | None):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    number = float(value)
    return number if math.isfinite(number) else str(number)


def check_kept(name: str, value: object) -> None:
    """Raise if a file would return another value than this one.

    >>> check_kept("provenance", {"note": "nan"})
    Traceback (most recent call last):
    ValueError: provenance['note'] is the text 'nan', which is read as a number; write it otherwise
    """
    if isinstance(value, dict):
        for key, entry in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{name} has the key {shown(key)}, not a text; try {str(key)!r}")
            check_kept(f"{name}[{shown(key)}]", entry)
    elif isinstance(value, list):
        for at, entry in enumerate(value):
            check_kept(f"{name}[{at}]", entry)
    elif isinstance(value, str) and value in NOT_FINITE:
        raise ValueError(
            f"{name} is the text {value!r}, which is read as a number; write it otherwise"
        )
    elif not isinstance(value, KEPT):
        raise TypeError(
            f"{name} is of type {type(value).__name__}, which a file cannot hold; give dicts, "
            "lists, texts, numbers, True, False or None"
        )


def revived(value: Any) -> Any:
    """Undo `plain` for infinities and NaN."""
    if isinstance(value, dict):
        return {key: revived(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [revived(entry) for entry in value]
    return float(value) if value in NOT_FINITE else value
