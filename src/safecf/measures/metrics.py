"""Ranking metrics: one score per user; they are aggregated elsewhere.

In the equations n_u is the number of held-out items of user u, and h_r is 1 where the r-th item of
the user's ranking is one of them, else 0. A new metric is one function with `@metric`: its
arguments are h as a boolean matrix of K columns (fewer if there are fewer items), the numbers
n_u > 0, and K.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.measures.hits import Counts, Hits, find_hits
from safecf.measures.tails import Floats

Formula = Callable[[Hits, Counts, int], Floats]

METRICS: dict[str, "Metric"] = {}


class Metric:
    """A formula on hits that can be called on rankings and held-out items.

    >>> recall(np.array([[3, 0]]), scipy.sparse.csr_matrix([[1, 1, 0, 0]]), k=2)
    array([0.5])
    """

    def __init__(self, formula: Formula) -> None:
        self.formula = formula
        self.name = formula.__name__
        self.__doc__ = formula.__doc__

    def __call__(self, ranked: NDArray[Any], target: Any, k: int) -> Floats:
        """Score rankings, best first and padded with -1, by a sparse matrix of held-out items.

        Users without held-out items get NaN.
        """
        return self.of_hits(*find_hits(ranked, target, k), k)

    def of_hits(self, hits: Hits, held_out: Counts, k: int) -> Floats:
        """Score at a cutoff; `hits` has as many columns, or one per item; see `find_hits`."""
        scores = self.formula(hits[:, :k], np.maximum(held_out, 1), k).astype(np.float64)
        scores[held_out == 0] = np.nan
        return scores


def metric(formula: Formula) -> Metric:
    """Register a metric in `METRICS` under its own name."""
    METRICS[formula.__name__] = Metric(formula)
    return METRICS[formula.__name__]


@metric
def recall(hits: Hits, held_out: Counts, k: int) -> Floats:
    """Recall@K_u = sum_{r <= K} h_r / min(K, n_u): the share found of what K items can hold."""
    return np.asarray(np.count_nonzero(hits, axis=1) / np.minimum(k, held_out))


@metric
def ndcg(hits: Hits, held_out: Counts, k: int) -> Floats:
    """nDCG@K_u = sum_{r <= K} h_r / log2(r + 1)  /  sum_{r <= min(K, n_u)} 1 / log2(r + 1)."""
    discount = 1 / np.log2(np.arange(2, hits.shape[1] + 2))
    ideal = np.cumsum(discount)
    return np.asarray(_total(hits, discount) / ideal[np.minimum(k, held_out) - 1])


@metric
def precision(hits: Hits, held_out: Counts, k: int) -> Floats:
    """Precision@K_u = sum_{r <= K} h_r / K, also where fewer than K items could be ranked."""
    return np.asarray(np.count_nonzero(hits, axis=1) / k)


@metric
def map(hits: Hits, held_out: Counts, k: int) -> Floats:
    """MAP@K_u = sum_{r <= K} h_r (h_1 + ... + h_r) / r  /  min(K, n_u): the average precision."""
    precisions = np.cumsum(hits, axis=1, dtype=np.int32) / np.arange(1, hits.shape[1] + 1)
    return np.asarray(_total(hits, precisions) / np.minimum(k, held_out))


@metric
def mrr(hits: Hits, held_out: Counts, k: int) -> Floats:
    """MRR@K_u = 1 / min {r <= K: h_r = 1}, or 0 where there is none."""
    return np.asarray(hits.any(axis=1) / (1 + hits.argmax(axis=1)))


@metric
def hit(hits: Hits, held_out: Counts, k: int) -> Floats:
    """Hit@K_u = max_{r <= K} h_r."""
    return np.asarray(hits.any(axis=1), dtype=np.float64)


def _total(hits: Hits, gains: Floats) -> Floats:
    """sum_r h_r g_r of every user, added up in the order of ranks.

    The order makes the bits of a user's score independent of the other users, which those of
    `hits @ gains` are not: a matrix product adds up in an order that depends on the row.
    """
    users, _ = np.nonzero(hits)
    gained = np.broadcast_to(gains, hits.shape)[hits]
    return np.bincount(users, gained, len(hits)).astype(np.float64)
