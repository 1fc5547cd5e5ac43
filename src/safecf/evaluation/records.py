"""Records as JSON: plain values, arrays as lists, null where there is no number."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def to_json(value: Any) -> Any:
    """Return what `json.dumps(..., allow_nan=False)` takes; NaN and infinities become None.

    Objects that JSON does not know, such as a random generator among a model's options, are
    written as they print.
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    elif is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return repr(value)


def floats_from_json(values: Any) -> Floats:
    """Return a list of numbers as an array, with NaN for None."""
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)
