"""Per-user arguments of `fit`: how many users each stands for, and groups."""

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from safecf.als.loss import Vector
from safecf.als.rows import Mask
from safecf.data.matrices.csr import Csr
from safecf.data.matrices.ids import IdArray
from safecf.errors import FileFormatError, shown
from safecf.models import files

GroupWeights = dict[str | int, float]

# Beyond this, or below its inverse, sums and squares in float32 would overflow or vanish.
LARGEST_WEIGHT = 1e9


def check_user_weight(weights: ArrayLike | None, users: Csr) -> Vector | None:
    """Return a number >= 0 per user, above 0 for one who has interactions; None stays None."""
    if weights is None:
        return None
    given = _one_each(np.asarray(weights), users.num_rows, "user_weight")
    if given.dtype.kind not in "biuf":
        raise TypeError(f"user_weight holds values of type {given.dtype}, not numbers; try float64")
    found = given.astype(np.float64)
    wrong = np.flatnonzero(~((found >= 0) & (found <= LARGEST_WEIGHT)))
    if wrong.size:
        raise ValueError(
            f"user_weight[{wrong[0]}] is {given[wrong[0]]}, and not from 0 to {LARGEST_WEIGHT:g}; "
            "try 0 for users that are not to count, 1 for those of whom nothing is known, or "
            "divide all by their mean"
        )
    largest = found.max(where=np.diff(users.indptr) > 0, initial=0)
    if largest < 1 / LARGEST_WEIGHT:
        raise ValueError(
            f"user_weight is at most {largest:g} for all users that have interactions; try 1 for "
            "some of them, or divide all by their mean"
        )
    return found


def check_user_groups(labels: ArrayLike, active: Mask) -> IdArray:
    """Return a label per user, all strings or all integers; active users need at least two."""
    # numpy would make strings of ['a', 1], and end 'a\0' before the zero
    given = np.asarray(labels, dtype=None if hasattr(labels, "dtype") else object)
    values: list[Any] = _one_each(given, active.size, "user_groups").tolist()
    fits = _is_string if isinstance(values[0], str) else _is_integer
    for user, label in enumerate(values):
        if not fits(label):
            raise TypeError(
                f"user_groups[{user}] is {shown(label)}, and labels have to be all strings or all "
                "integers; try 'unknown' for users of whom nothing is known"
            )
    if isinstance(values[0], str):
        values = [_encodable(user, label) for user, label in enumerate(values)]
    found = _label_array(values)
    if len(set(found[active].tolist())) < 2:
        raise ValueError(
            f"user_groups has one label, {shown(found[active][0])}, for all users that count; give "
            "at least two, or leave user_groups out"
        )
    return found


def pack_groups(weights: GroupWeights | None) -> files.Arrays:
    """Return the groups' labels and weights as arrays."""
    if weights is None:
        return {}
    names = files.pack_ids("group_names", _label_array(list(weights)))
    return {**names, "group_weights": np.array(list(weights.values()))}


def unpack_groups(arrays: files.Arrays) -> GroupWeights | None:
    """Undo `pack_groups`."""
    if "group_weights" not in arrays:
        return None
    weights = files.array(arrays, "group_weights", (None,), np.float64)
    names = files.unpack_ids(arrays, "group_names", weights.size, weights.size)
    if names is None or weights.size < 2 or weights.min() < 0:
        raise FileFormatError("the weights of its groups are damaged; save it again")
    return dict(zip(names.tolist(), weights.tolist(), strict=True))


def _is_string(label: object) -> bool:
    return isinstance(label, str)


def _is_integer(label: object) -> bool:
    if isinstance(label, bool) or not isinstance(label, numbers.Integral):
        return False
    return abs(int(label)) < 2**63


def _encodable(user: int, label: str) -> str:
    """Return the label as a plain string; raise if UTF-8 cannot encode it."""
    try:
        return label.encode().decode()
    except UnicodeEncodeError as problem:
        raise ValueError(
            f"user_groups[{user}] is {shown(label)}, which UTF-8 cannot encode: {problem.reason}; "
            "try label.encode(errors='replace').decode()"
        ) from problem


def _label_array(labels: list[Any]) -> IdArray:
    return np.array(labels, dtype=object if isinstance(labels[0], str) else np.int64)


def _one_each(found: NDArray[Any], size: int, name: str) -> NDArray[Any]:
    if found.shape != (size,):
        raise ValueError(
            f"{name} has shape {found.shape}, while there are {size} users; give a 1-D array with "
            "one value per user, in the order of the rows"
        )
    return found
