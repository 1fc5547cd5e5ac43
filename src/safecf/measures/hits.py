"""Hits: the ranks at which held-out items stand."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.data.matrices.csr_from_scipy import check_matrix

Hits = NDArray[np.bool_]
Counts = NDArray[np.int64]

PADDING = -1


def find_hits(ranked: NDArray[Any], target: Any, k: int) -> tuple[Hits, Counts]:
    """Return hit_ur = [the r-th of the first K items of user u is in target_u], and |target_u|.

    `ranked` holds each user's items, best first, padded with -1; `target` is a sparse matrix with
    the held-out items of the same users.
    """
    held_out = check_matrix(target, name="target", allow_empty=True)
    best = checked_ranking(ranked, held_out.num_rows, k)
    hits = match(best, held_out.indptr, held_out.indices, held_out.num_columns)
    return hits, np.diff(held_out.indptr)


def match(
    ranked: NDArray[Any], indptr: NDArray[np.int64], indices: NDArray[np.int32], num_items: int
) -> Hits:
    """hit_ur = [ranked_ur in target_u], target_u = indices[indptr[u]:indptr[u + 1]], ascending."""
    order = np.argsort(ranked, axis=1)
    ordered = np.take_along_axis(ranked, order, axis=1).astype(np.int64)
    check_items(ordered, num_items)
    # One ascending key per pair (user, item) turns all look-ups into one binary search. The
    # padding's key is the lowest of its user, and no item's.
    users, length = ranked.shape
    lowest = np.arange(users, dtype=np.int64) * (num_items + 1)
    ranked_keys = (lowest[:, None] + 1 + ordered).ravel()
    held_out_keys = np.repeat(lowest, np.diff(indptr)) + 1 + indices
    place = np.searchsorted(ranked_keys, held_out_keys)
    place = place[np.append(ranked_keys, -1)[place] == held_out_keys]
    hits = np.zeros(ranked.shape, dtype=np.bool_)
    hits[place // length, order.ravel()[place]] = True
    return hits


def checked_ranking(ranked: NDArray[Any], users: int, k: int) -> NDArray[Any]:
    """Return the first k columns of `ranked`; raise if it is no ranking for so many users."""
    ranked = np.asarray(ranked)
    if ranked.dtype.kind not in "iu":
        raise TypeError(f"ranked holds values of type {ranked.dtype}; give item indices")
    if ranked.ndim != 2 or ranked.shape[0] != users:
        raise ValueError(
            f"ranked has shape {ranked.shape}; give one row for each of the {users} rows of target"
        )
    if not 1 <= k <= ranked.shape[1]:
        raise ValueError(
            f"k is {k}, but ranked has {ranked.shape[1]} columns; rank more items, or pad with -1"
        )
    return ranked[:, :k]


def check_items(ordered: NDArray[Any], num_items: int) -> None:
    """Raise if a row holds an unknown item, or one item twice in a row."""
    outside = (ordered < PADDING) | (ordered >= num_items)
    if outside.any():
        row, column = np.argwhere(outside)[0]
        raise ValueError(
            f"ranked holds item {ordered[row, column]} in row {row}, outside of 0 to "
            f"{num_items - 1}; use the columns of target as item indices"
        )
    repeated = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != PADDING)
    if repeated.any():
        row, column = np.argwhere(repeated)[0]
        raise ValueError(
            f"ranked holds item {ordered[row, column]} more than once in row {row}; "
            "rank every item once"
        )
