"""Popularity: the share of the training users who have each item; what unknown users get."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from safecf.als.loss import Vector
from safecf.data.matrices.interactions import Interactions
from safecf.errors import FileFormatError
from safecf.models import files

Shares = NDArray[np.float32]

NAME = "item_popularity"


def popularity_of(interactions: Interactions, counts: Vector | None = None) -> Shares:
    """Return the share of the users with interactions who have each item, by their counts.

    >>> popularity_of(Interactions.from_csr(scipy.sparse.csr_matrix([[1, 1], [1, 0], [0, 0]])))
    array([1. , 0.5], dtype=float32)
    """
    users = interactions.users
    each = np.ones(users.num_rows) if counts is None else counts
    total = each[np.diff(users.indptr) > 0].sum()
    shares = replace(interactions.items, weights=None).row_mass(each) / total
    return np.asarray(shares, dtype=np.float32)


def resized(shares: Shares | None, size: int) -> Shares:
    """Cut the shares to `size` items, or append zeros for items of which nothing is known."""
    found = np.zeros(size, dtype=np.float32)
    known = found[:0] if shares is None else shares[:size]
    found[: known.size] = known
    return found


def pack_popularity(shares: Shares | None, num_items: int) -> files.Arrays:
    """Return the shares as an array of a file, which has none if they are not known."""
    if shares is None:
        return {}
    found = resized(shares, num_items)
    if not (np.isfinite(found) & (found >= 0)).all():
        raise ValueError(f"{NAME} holds a share that is negative or not finite; set it to None")
    return {NAME: found}


def unpack_popularity(arrays: files.Arrays, num_items: int) -> Shares | None:
    """Undo `pack_popularity`; files of version 0.1 have none."""
    if NAME not in arrays:
        return None
    found = files.array(arrays, NAME, (num_items,), np.float32)
    if found.min(initial=0) < 0:
        raise FileFormatError("the popularity of its items is negative; save it again")
    return found
