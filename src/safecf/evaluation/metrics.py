"""Ranking metrics: one score per user first, aggregation elsewhere."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.data.matrix import Csr, check_matrix

PADDING = -1


def recall(ranked: NDArray[np.integer[Any]], target: Any, k: int) -> NDArray[np.float64]:
    """Recall@K_u = |first K of ranked_u, that are in target_u| / min(K, |target_u|).

    `ranked` holds each user's items, best first, padded with -1; `target` is a sparse matrix with
    the held-out items of the same users. Users without held-out items get NaN: they have no
    score, neither a good nor a bad one.

    >>> recall(np.array([[3, 0]]), scipy.sparse.csr_matrix([[1, 1, 0, 0]]), k=2)
    array([0.5])
    """
    held_out = check_matrix(target, name="target", allow_empty=True)
    best = _checked_ranking(ranked, held_out, k)
    held_out_counts = np.diff(held_out.indptr)
    # One sorted key per pair (user, item) turns all look-ups into one binary search.
    first_keys = np.arange(held_out.num_rows, dtype=np.int64) * held_out.num_columns
    held_out_keys = np.repeat(first_keys, held_out_counts) + held_out.indices
    ranked_keys = first_keys[:, None] + best
    place = np.searchsorted(held_out_keys, ranked_keys)
    # The extra key, which no pair has, is what a search beyond the end finds.
    found = np.append(held_out_keys, -1)[place] == ranked_keys
    hits = np.count_nonzero(found & (best != PADDING), axis=1)
    possible = np.minimum(k, held_out_counts)
    scores = np.full(held_out.num_rows, np.nan)
    np.divide(hits, possible, out=scores, where=possible > 0)
    return scores


def _checked_ranking(ranked: NDArray[np.integer[Any]], held_out: Csr, k: int) -> NDArray[np.int64]:
    """Return the first k columns of `ranked`."""
    ranked = np.asarray(ranked)
    if ranked.dtype.kind not in "iu":
        raise TypeError(f"ranked holds values of type {ranked.dtype}; give item indices")
    if ranked.ndim != 2 or ranked.shape[0] != held_out.num_rows:
        raise ValueError(
            f"ranked has shape {ranked.shape}; give one row for each of the {held_out.num_rows} "
            "rows of target"
        )
    if not 1 <= k <= ranked.shape[1]:
        raise ValueError(
            f"k is {k}, but ranked has {ranked.shape[1]} columns; rank more items, or pad with -1"
        )
    best = ranked[:, :k].astype(np.int64)
    outside = np.argwhere((best < PADDING) | (best >= held_out.num_columns))
    if outside.size:
        row, column = outside[0]
        raise ValueError(
            f"ranked holds item {best[row, column]} in row {row}, outside of 0 to "
            f"{held_out.num_columns - 1}; use the columns of target as item indices"
        )
    ordered = np.sort(best, axis=1)
    repeated = np.argwhere((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != PADDING))
    if repeated.size:
        row, column = repeated[0]
        raise ValueError(
            f"ranked holds item {ordered[row, column]} more than once in row {row}; "
            "rank every item once"
        )
    return best
