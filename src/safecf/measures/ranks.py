"""Metrics over the whole ranking: one score per user, from the ranks of the held-out items.

In the equations r_1 < ... < r_n are the ranks of the n held-out items of a user among the N items
that can be recommended, all but those of the history; the best item has the rank 1. All are 1 if
the held-out items are the first n, so that r_j = j. `auc` and `log_rank` are 0 if they are the last
n, so that r_j = N - n + j. A new metric is one function with `@rank_metric`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.data.matrices.csr_from_scipy import check_matrix
from safecf.measures.hits import PADDING, Counts, check_items, checked_ranking
from safecf.measures.tails import Floats

RankMetric = Callable[["Ranks"], Floats]

RANK_METRICS: dict[str, RankMetric] = {}


@dataclass(frozen=True, eq=False)
class Ranks:
    """The ranks of all held-out items, user by user; made by `of` or `from_rankings`.

    Parameters
    ----------
    user, rank
        One entry per held-out item: its user and its rank, ascending within a user.
    place
        j, the place of the item among the held-out items of its user, from 1.
    held_out, candidates
        n and N of every user.
    """

    user: Counts
    rank: Counts
    place: Counts
    held_out: Counts
    candidates: Counts

    @classmethod
    def of(
        cls, user: NDArray[Any], rank: NDArray[Any], held_out: Counts, candidates: Counts
    ) -> "Ranks":
        """Complete the ranks, 0 for items that the model does not rank.

        These, and held-out items without an entry, take the user's last places.
        """
        ranked = rank > 0
        order = np.lexsort((rank[ranked], user[ranked]))
        known = np.bincount(user[ranked], minlength=held_out.size)
        first = np.cumsum(held_out) - held_out
        owner = np.repeat(np.arange(held_out.size), held_out)
        place = 1 + np.arange(owner.size) - first[owner]
        complete = (candidates - held_out)[owner] + place
        complete[place <= known[owner]] = rank[ranked][order]
        return cls(owner, complete, place, held_out, candidates)

    @classmethod
    def from_rankings(cls, ranked: NDArray[Any], target: Any, candidates: Counts) -> "Ranks":
        """Read the ranks from whole rankings, best first and padded with -1; see `find_hits`."""
        held_out = check_matrix(target, name="target", allow_empty=True)
        users, num_items = held_out.shape
        best = checked_ranking(ranked, users, np.shape(ranked)[-1])
        check_items(best, num_items)
        rank = np.zeros((users, num_items + 1), dtype=np.int64)  # the last column is for padding
        np.put_along_axis(rank, best, 1 + np.arange(best.shape[1])[None, :], axis=1)
        if np.count_nonzero(rank[:, :-1]) < np.count_nonzero(best != PADDING):
            check_items(np.sort(best, axis=1), num_items)  # raises: an item twice
        user = np.repeat(np.arange(users), np.diff(held_out.indptr))
        return cls.of(user, rank[user, held_out.indices], np.diff(held_out.indptr), candidates)

    def total(self, values: Floats) -> Floats:
        """Sum one value per held-out item over the items of each user."""
        return np.bincount(self.user, values, self.held_out.size).astype(np.float64)

    def scores(self, metric: RankMetric) -> Floats:
        """Return the users' scores, NaN without held-out items."""
        found = metric(self)
        found[self.held_out == 0] = np.nan
        return found


def rank_metric(formula: RankMetric) -> RankMetric:
    """Register a metric in `RANK_METRICS` under its own name."""
    RANK_METRICS[formula.__name__] = formula
    return formula


@rank_metric
def ndcg(ranks: Ranks) -> Floats:
    """nDCG_u = sum_j 1 / log2(r_j + 1)  /  sum_{j <= n} 1 / log2(j + 1), with no cutoff."""
    gained, ideal = (ranks.total(1 / np.log2(each + 1)) for each in (ranks.rank, ranks.place))
    return _ratio(gained, ideal)


@rank_metric
def auc(ranks: Ranks) -> Floats:
    """AUC_u = 1 - sum_j (r_j - j) / (n (N - n)).

    The share of pairs of a held-out item and any other item in which the held-out one is ranked
    higher, as r_j - j of the others are above the j-th. A random ranking scores 0.5 on average.
    """
    wrong = ranks.total((ranks.rank - ranks.place).astype(np.float64))
    pairs = ranks.held_out * (ranks.candidates - ranks.held_out)
    return np.asarray(1 - _ratio(wrong, pairs))


@rank_metric
def log_rank(ranks: Ranks) -> Floats:
    """LogRank_u = 1 - sum_j log(r_j / j)  /  sum_j log((N - n + j) / j).

    The mean logarithm of the ranks, scaled as `auc` is: from rank 10 to 20 costs as much as from
    1,000 to 2,000. With one held-out item it is 1 - log(r) / log(N).
    """
    last = (ranks.candidates - ranks.held_out)[ranks.user] + ranks.place
    lost, most = (ranks.total(np.log(each / ranks.place)) for each in (ranks.rank, last))
    return np.asarray(1 - _ratio(lost, most))


def _ratio(part: Floats, whole: NDArray[Any]) -> Floats:
    """Divide, and return 0 where the whole is 0: no item can be out of place."""
    return np.asarray(np.divide(part, whole, out=np.zeros(part.size), where=whole > 0))
