"""Records as JSON: plain values, arrays as lists, null where there is no number; and back."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.errors import FileFormatError

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


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


def options_to_json(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a model's options as JSON values; an infinite one, such as a bandwidth, as "inf"."""
    return {
        name: str(value)
        if isinstance(value, float) and not math.isfinite(value)
        else to_json(value)
        for name, value in options.items()
    }


class Record:
    """A JSON object that nobody has checked, read key by key; `where` names it in errors.

    >>> Record(json.load(file), "results.json").get("model", str)
    """

    def __init__(self, values: Any, where: str) -> None:
        self.where = where
        if not isinstance(values, dict):
            raise self.error(f"it is a {type(values).__name__}, not an object")
        self.values: dict[str, Any] = values

    def error(self, problem: str) -> FileFormatError:
        """Return an error that says where, and what to try."""
        return FileFormatError(f"{self.where}: {problem}; write it again with to_dict()")

    def get(self, key: str, *kinds: type) -> Any:
        """Return a value of one of these types; a bool is no number."""
        if key not in self.values:
            raise self.error(f"{key!r} is missing")
        value = self.values[key]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise self.error(f"{key!r} is a {type(value).__name__}, not a {wanted}")
        return value

    def record(self, key: str) -> "Record":
        """Return an object inside this one."""
        return Record(self.get(key, dict), f"{self.where}, {key!r}")

    def list(self, key: str, *kinds: type) -> list[Any]:
        """Return a list whose entries are all of these types."""
        values: list[Any] = self.get(key, list)
        for place, value in enumerate(values):
            if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
                raise self.error(f"entry {place} of {key!r} is a {type(value).__name__}")
        return values

    def numbers(self, key: str, size: int | None = None) -> Floats:
        """Return a list of numbers as an array, with NaN for null, one per user if `size` is."""
        values = self.list(key, int, float, type(None))
        if size is not None and len(values) != size:
            raise self.error(f"{key!r} has {len(values)} entries for {size} users")
        try:
            found = np.array([math.nan if v is None else v for v in values], dtype=np.float64)
        except OverflowError:
            found = np.array([math.inf])
        if np.isinf(found).any():
            raise self.error(f"{key!r} holds a number that is not finite")
        return found

    def counts(self, key: str, size: int | None = None) -> Counts:
        """Return a list of whole numbers, none below 0."""
        found = self.numbers(key, size)
        if not (found == np.floor(found)).all() or (found < 0).any() or (found > 2.0**53).any():
            raise self.error(f"{key!r} holds what is no count")
        return found.astype(np.int64)
