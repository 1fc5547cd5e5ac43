"""Results as JSON values, and back: nothing in a file is trusted before it has been checked."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.errors import FileFormatError
from safecf.measures.tails import Floats

Counts = NDArray[np.int64]

EVALUATION, COMPARISON = "safecf evaluation 2", "safecf comparison 2"
# those of version 0.1, without checksums
EARLIER = {EVALUATION: "safecf evaluation 1", COMPARISON: "safecf comparison 1"}
CHECKSUM = "checksum"
LONGEST = 400  # characters of a message: names in a file may have any length


def to_json(value: Any) -> Any:
    """Return what `json.dumps(..., allow_nan=False)` takes; NaN and infinities become None.

    Other objects, such as a random generator among a model's options, become their `repr`.
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


def sealed(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of JSON values with a checksum, which shows accidental changes.

    >>> sealed({"model": "IALS"})["checksum"]
    'sha256:0e14714337c48516f1cb05b1cc1a8b1a3e2520b2d6b7de048fe127721d5d6be8'
    """
    return {**record, CHECKSUM: _checksum(record)}


def unsealed(record: "Record") -> dict[str, Any]:
    """Return the values without their checksum; raise if it does not fit, or is missing."""
    values = dict(record.values)
    if CHECKSUM not in values and values.get("format") not in EARLIER:
        return values
    if values.pop(CHECKSUM, None) != _checksum(values):
        raise record.error("it is damaged or was edited: its checksum does not fit, or is missing")
    return values


def _checksum(record: Mapping[str, Any]) -> str:
    """SHA-256 of the values as JSON with sorted keys; inner evaluations count by their own."""
    content = dict(record)
    if isinstance(inner := content.get("evaluations"), list):
        content["evaluations"] = [
            each.get(CHECKSUM) if isinstance(each, dict) else each for each in inner
        ]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def options_to_json(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a model's options as JSON values; an infinite one, such as a bandwidth, as "inf"."""
    return {
        name: str(value)
        if isinstance(value, float) and not math.isfinite(value)
        else to_json(value)
        for name, value in options.items()
    }


def shortened(message: str) -> str:
    """Leave out the middle of a message with long values from a file."""
    if len(message) <= LONGEST:
        return message
    return f"{message[: LONGEST // 2]} … {message[-LONGEST // 2 :]}"


class Record:
    """A JSON object that has not been checked, read key by key.

    Errors begin with `where` it is, and end with the `remedy`.

    >>> Record(json.load(file), "results.json").get("model", str)
    """

    def __init__(
        self, values: Any, where: str, remedy: str = "write it again, by to_dict() or --out"
    ) -> None:
        self.where, self.remedy = where, remedy
        if not isinstance(values, dict):
            raise self.error(f"it is a {type(values).__name__}, not an object")
        self.values: dict[str, Any] = values

    def error(self, problem: str) -> FileFormatError:
        """Return an error that says where the problem is and what to try."""
        return FileFormatError(f"{shortened(f'{self.where}: {problem}')}; {self.remedy}")

    def get(self, key: str, *kinds: type) -> Any:
        """Return a value of one of these types; a bool is not an int."""
        if key not in self.values:
            raise self.error(f"{key!r} is missing")
        value = self.values[key]
        if not _is_a(value, kinds):
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise self.error(f"{key!r} is a {type(value).__name__}, not a {wanted}")
        return value

    def record(self, key: str) -> "Record":
        """Return an object inside this one."""
        return Record(self.get(key, dict), f"{self.where}, {key!r}", self.remedy)

    def list(self, key: str, *kinds: type) -> list[Any]:
        """Return a list whose entries are all of these types."""
        values: list[Any] = self.get(key, list)
        for place, value in enumerate(values):
            if not _is_a(value, kinds):
                raise self.error(f"entry {place} of {key!r} is a {type(value).__name__}")
        return values

    def numbers(self, key: str, size: int | None = None) -> Floats:
        """Return a list of numbers as an array, NaN for null; `size` is the number of users."""
        values = self.list(key, int, float, type(None))
        if size is not None and len(values) != size:
            raise self.error(f"{key!r} has {len(values)} entries for {size} users")
        return self._finite(key, values)

    def number(self, key: str) -> float:
        """Return a number, NaN for null."""
        return float(self._finite(key, [self.get(key, int, float, type(None))])[0])

    def numbers_or_none(self, key: str, size: int | None = None) -> Floats | None:
        """Return a list of numbers as an array, or None for null."""
        return None if self.get(key, list, type(None)) is None else self.numbers(key, size)

    def counts(self, key: str, size: int | None = None) -> Counts:
        """Return a list of whole numbers that are not negative."""
        found = self.numbers(key, size)
        if not (found == np.floor(found)).all() or (found < 0).any() or (found > 2.0**53).any():
            raise self.error(f"{key!r} holds a value that is no count")
        return found.astype(np.int64)

    def _finite(self, key: str, values: Sequence[Any]) -> Floats:
        """Return numbers as an array, NaN for None; JSON has integers beyond any float, too."""
        try:
            found = np.array([math.nan if v is None else v for v in values], dtype=np.float64)
        except OverflowError:
            found = np.array([math.inf])
        if np.isinf(found).any():
            raise self.error(f"{key!r} holds a number that is not finite")
        return found


def _is_a(value: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def check_format(record: Record, wanted: str) -> None:
    """Raise if the record is of another kind or version; an earlier one will do."""
    found = record.get("format", str)
    if found not in (wanted, EARLIER[wanted]):
        raise record.error(f"its format is {found!r}, not {wanted!r}")


def evaluation_fields(values: Any) -> dict[str, Any]:
    """Check what `Evaluation.to_dict` returned; return its fields, `users` as a dictionary."""
    record = Record(values, "evaluation")
    check_format(record, EVALUATION)
    model = record.get("model", str)
    record.where = f"evaluation {model!r}"
    users = _users(record.record("users"))
    size = len(users["target_count"])
    scores, catalogue = record.record("scores"), record.record("catalogue")
    versions = record.record("versions")
    found = {
        "model": model,
        "scores": {name: scores.numbers(name, size) for name in scores.values},
        "k": _cutoffs(record),
        "tails": _tails(record),
        "users": users,
        "catalogue": {name: catalogue.number(name) for name in catalogue.values},
        "training": _training(record.record("training")),
        "losses": record.numbers_or_none("losses", size),
        "versions": {name: versions.get(name, str) for name in versions.values},
        "weights": record.numbers_or_none("weights", size),
        "data": record.get("data", str),
        "settings": record.get("settings", dict),
        "splits": _splits(record, size),
    }
    unsealed(record)
    return found


def _users(record: Record) -> dict[str, Any]:
    target_count = record.counts("target_count")
    size = len(target_count)
    return {
        "history_length": record.counts("history_length", size),
        "target_count": target_count,
        "popularity": record.numbers("popularity", size),
        "group": _labels(record, "group", size),
        # not in files of version 0.1
        "ids": _labels(record, "ids", size) if "ids" in record.values else None,
    }


def _labels(record: Record, key: str, size: int) -> NDArray[Any] | None:
    """Read one label per user: all integers, all strings or all booleans; or null."""
    values = record.get(key, list, type(None))
    if values is None:
        return None
    if len(values) != size:
        raise record.error(f"{key!r} has {len(values)} entries for {size} users")
    if not (values and isinstance(values[0], int)):
        return np.array(record.list(key, str), dtype=object)
    if isinstance(values[0], bool):
        return np.array(record.list(key, bool))
    labels = np.array(record.list(key, int), dtype=object)
    for kind in (np.int64, np.uint64):
        if np.iinfo(kind).min <= labels.min() and labels.max() <= np.iinfo(kind).max:
            return labels.astype(kind)
    raise record.error(f"{key!r} holds integers beyond 64 bits")


def _splits(record: Record, size: int) -> Counts | None:
    """Read the number of the split of every user, 0, 1, ...; or null, as in version 0.1."""
    if record.values.get("splits") is None:
        return None
    found = record.counts("splits", size)
    numbers = np.unique(found)
    if not numbers.size or numbers[-1] != numbers.size - 1:
        raise record.error("'splits' does not number the splits 0, 1, ...")
    if record.record("users").values.get("ids") is None:
        raise record.error("it has 'splits', but no 'ids' of the users")
    return found


def _cutoffs(record: Record) -> tuple[int, ...]:
    found: list[int] = record.list("k", int)
    if record.counts("k").min(initial=1) < 1:
        raise record.error("'k' holds 0, which is no cutoff")
    return tuple(found)


def _tails(record: Record) -> tuple[float, ...]:
    levels: list[float] = record.numbers("tails").tolist()
    for level in levels:
        if not 0 < level <= 1:
            raise record.error(f"'tails' holds {level}, which is no share of users")
    return tuple(levels)


def _training(record: Record) -> dict[str, Any]:
    """Read the record of training, which is empty for models of other libraries."""
    if not record.values:
        return {}
    record.list("history", dict)
    record.get("params", dict)
    if "resolved" in record.values:  # not in files of version 0.1
        record.get("resolved", dict)
    known = [name for name in ("losses", "weights") if name in record.values]
    arrays: dict[str, Any] = {name: record.numbers_or_none(name) for name in known}
    return {**record.values, **arrays}
