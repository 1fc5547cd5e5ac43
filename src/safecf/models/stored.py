"""`Stored`: what a file holds of a trained ALS model."""

from typing import Any

import numpy as np

from safecf.als.loop import Epoch
from safecf.errors import FileFormatError
from safecf.models import files
from safecf.models.fold_in import FoldIn
from safecf.models.history import pack_history, unpack_history
from safecf.models.per_user import LARGEST_WEIGHT, pack_groups, unpack_groups


class Stored(FoldIn):
    """All that `FoldIn` needs, and how training went."""

    history: list[Epoch]
    seed: int

    def _pack(self) -> tuple[dict[str, Any], files.Arrays]:
        users, items = self._factors()
        if not (np.isfinite(users).all() and np.isfinite(items).all()):
            raise ValueError("the factors are not finite, so the file could not be read; fit again")
        fitted = {
            "seed": self.seed,
            "shape": self.shape,
            "num_users": self.num_users,
            "num_items": self.num_items,
            "history": pack_history(self.history),
        }
        arrays: files.Arrays = {
            "user_factors": np.asarray(users, dtype=np.float32),
            "item_factors": np.asarray(items, dtype=np.float32),
            "user_weights": self.user_weights,
            "user_mass": self.user_mass,
            "user_counts": self.user_counts,
            **files.pack_ids("user_ids", self.user_ids),
            **files.pack_ids("item_ids", self.item_ids),
            **pack_groups(self.group_weights),
        }
        return fitted, arrays

    def _unpack(self, fitted: dict[str, Any], arrays: files.Arrays) -> None:
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
        self.user_ids = files.unpack_ids(arrays, "user_ids", shape[0], len(users))
        self.item_ids = files.unpack_ids(arrays, "item_ids", shape[1], len(items))
        self.user_factors, self.item_factors = users, items
        self.user_weights, self.user_mass, self.user_counts = weights, mass, counts
        self.group_weights = unpack_groups(arrays)
        self.seed, self.shape = seed, (shape[0], shape[1])
        self.num_users, self.num_items = num_users, num_items
        self.history = unpack_history(fitted, Epoch)
