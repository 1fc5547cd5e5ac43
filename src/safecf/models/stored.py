"""What a file holds of a trained ALS model."""

from typing import TYPE_CHECKING, Any

import numpy as np

from safecf.als.loop import Epoch
from safecf.errors import FileFormatError
from safecf.models import files
from safecf.models.history import pack_history, unpack_history
from safecf.models.options import check_options
from safecf.models.per_user import LARGEST_WEIGHT, pack_groups, unpack_groups
from safecf.models.popularity import pack_popularity, unpack_popularity

if TYPE_CHECKING:
    from safecf.models.als import ALSModel


def pack(model: "ALSModel") -> tuple[dict[str, Any], files.Arrays]:
    """Return what training has found, as JSON values and as arrays."""
    users, items = model.both_factors()
    if users.shape[1] != model.factors:
        raise ValueError(
            f"factors={model.factors}, while the model was trained with {users.shape[1]}; fit it "
            f"again, or set factors={users.shape[1]}"
        )
    model.compose()  # raises if an option was set to "auto" after the fit
    if not (np.isfinite(users).all() and np.isfinite(items).all()):
        raise ValueError("the factors are not finite, so the file could not be read; fit again")
    fitted = {
        "seed": model.seed,
        "shape": model.shape,
        "num_users": model.num_users,
        "num_items": model.num_items,
        "history": pack_history(model.history),
        "resolved": model.resolved,
    }
    arrays: files.Arrays = {
        "user_factors": np.asarray(users, dtype=np.float32),
        "item_factors": np.asarray(items, dtype=np.float32),
        "user_weights": model.user_weights,
        "user_mass": model.user_mass,
        "user_counts": model.user_counts,
        **files.pack_ids("user_ids", model.user_ids),
        **files.pack_ids("item_ids", model.item_ids),
        **pack_groups(model.group_weights),
        **pack_popularity(model.item_popularity, len(items)),
    }
    return fitted, arrays


def unpack(model: "ALSModel", fitted: dict[str, Any], arrays: files.Arrays) -> None:
    """Read and validate what `pack` returned, and give it to the model."""
    users = files.array(arrays, "user_factors", (None, None), np.float32)
    items = files.array(arrays, "item_factors", (None, users.shape[1]), np.float32)
    weights = files.array(arrays, "user_weights", (len(users),), np.float64)
    mass = files.array(arrays, "user_mass", (len(users),), np.float64)
    counts = files.array(arrays, "user_counts", (len(users),), np.float64)
    seed, shape = files.field(fitted, "seed", int), files.field(fitted, "shape", list)
    num_users = files.field(fitted, "num_users", float)
    num_items = files.field(fitted, "num_items", int)
    order = [1, *shape[:1], len(users)], [1, num_items, *shape[1:], len(items)]
    if (
        [type(size) for size in shape] != [int, int]
        or any(side != sorted(side) for side in order)
        or users.shape[1] < 1
        or min(seed, weights.min(), mass.min(), counts.min()) < 0
        or counts.max() > LARGEST_WEIGHT
        or not 0 < num_users <= counts.sum() * (1 + 1e-9)
    ):
        raise FileFormatError("its numbers and its arrays contradict each other; save it again")
    model.user_ids = files.unpack_ids(arrays, "user_ids", shape[0], len(users))
    model.item_ids = files.unpack_ids(arrays, "item_ids", shape[1], len(items))
    model.user_factors, model.item_factors = users, items
    model.user_weights, model.user_mass, model.user_counts = weights, mass, counts
    model.group_weights = unpack_groups(arrays)
    model.item_popularity = unpack_popularity(arrays, len(items))
    model.seed, model.shape = seed, (shape[0], shape[1])
    model.num_users, model.num_items = num_users, num_items
    model.history = unpack_history(fitted, Epoch)
    model.resolved = _unpack_resolved(fitted, model)


def _unpack_resolved(fitted: dict[str, Any], model: "ALSModel") -> dict[str, float]:
    """Return the values of the "auto" options; files of version 0.1 have none."""
    found = files.field({"resolved": {}, **fitted}, "resolved", dict)
    values = {name: files.field(found, name, float) for name in found}
    try:
        check_options(values, type(model))
        model.settled(values).parts()
    except (KeyError, TypeError, ValueError) as problem:
        raise FileFormatError(f"a value of an option is damaged: {problem}") from problem
    return values
