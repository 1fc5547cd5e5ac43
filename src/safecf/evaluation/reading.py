"""Results from files that nobody has checked: every part is looked at, or refused."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.evaluation.json_records import Floats, Record
from safecf.evaluation.users import UserProfile

EVALUATION, COMPARISON = "safecf evaluation 1", "safecf comparison 1"


def check_format(record: Record, wanted: str) -> None:
    """Refuse what is of another kind or version."""
    found = record.get("format", str)
    if found != wanted:
        raise record.error(f"its format is {found!r}, not {wanted!r}")


def evaluation_fields(values: Any) -> dict[str, Any]:
    """Return the fields of an `Evaluation` from what its `to_dict` returned."""
    record = Record(values, "evaluation")
    check_format(record, EVALUATION)
    model = record.get("model", str)
    record.where = f"evaluation {model!r}"
    users = _users(record.record("users"))
    size = len(users.target_count)
    scores, catalogue = record.record("scores"), record.record("catalogue")
    versions = record.record("versions")
    return {
        "model": model,
        "scores": {name: scores.numbers(name, size) for name in scores.values},
        "k": tuple(record.list("k", int)),
        "tails": _tails(record),
        "users": users,
        "catalogue": {
            name: np.nan if value is None else float(catalogue.get(name, int, float))
            for name, value in catalogue.values.items()
        },
        "training": _training(record.record("training")),
        "losses": _optional(record, "losses", size),
        "versions": {name: versions.get(name, str) for name in versions.values},
        "weights": _optional(record, "weights", size),
        "data": record.get("data", str),
        "settings": record.get("settings", dict),
    }


def _users(record: Record) -> UserProfile:
    target_count = record.counts("target_count")
    size = len(target_count)
    return UserProfile(
        history_length=record.counts("history_length", size),
        target_count=target_count,
        popularity=record.numbers("popularity", size),
        group=_labels(record, size),
    )


def _labels(record: Record, size: int) -> NDArray[Any] | None:
    """Read one label per user, all of them integers or all of them strings; or null."""
    values = record.get("group", list, type(None))
    if values is None:
        return None
    if len(values) != size:
        raise record.error(f"'group' has {len(values)} entries for {size} users")
    kind = type(values[0]) if values and isinstance(values[0], int) else str
    return np.array(record.list("group", kind))


def _tails(record: Record) -> tuple[float, ...]:
    levels = [float(level) for level in record.list("tails", int, float)]
    for level in levels:
        if not 0 < level <= 1:
            raise record.error(f"'tails' holds {level}, which is no share of users")
    return tuple(levels)


def _training(record: Record) -> dict[str, Any]:
    """Read what is known of training; a model of another library tells nothing."""
    if not record.values:
        return {}
    record.list("history", dict)
    record.get("params", dict)
    known = [name for name in ("losses", "weights") if name in record.values]
    arrays: dict[str, Any] = {name: _optional(record, name) for name in known}
    return {**record.values, **arrays}


def _optional(record: Record, key: str, size: int | None = None) -> Floats | None:
    """Read a list of numbers, or null."""
    return None if record.get(key, list, type(None)) is None else record.numbers(key, size)
