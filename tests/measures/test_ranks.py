"""Metrics over the whole ranking against slow references."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from safecf.evaluation import RANK_METRICS
from safecf.measures.ranks import Ranks

NUM_ITEMS = 9


def slow_ndcg(ranks, candidates):
    gain = sum(1 / math.log2(rank + 1) for rank in ranks)
    return gain / sum(1 / math.log2(rank + 1) for rank in range(1, len(ranks) + 1))


def slow_auc(ranks, candidates):
    others = set(range(1, candidates + 1)) - set(ranks)
    pairs = [rank < other for rank in ranks for other in others]
    return float(np.mean(pairs)) if pairs else 1.0


def slow_log_rank(ranks, candidates):
    def total(chosen):
        return sum(math.log(each) for each in chosen)

    count = len(ranks)
    best, last = range(1, count + 1), range(candidates - count + 1, candidates + 1)
    if best == last:
        return 1.0
    return 1 - (total(ranks) - total(best)) / (total(last) - total(best))


TWINS = {"ndcg": slow_ndcg, "auc": slow_auc, "log_rank": slow_log_rank}


@st.composite
def rankings(draw):
    """Whole rankings of the items that are not in the histories, and held-out items."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    users = draw(st.integers(1, 5))
    seen = rng.random((users, NUM_ITEMS)) < draw(st.sampled_from([0, 0.5, 1]))
    target = ~seen & (rng.random(seen.shape) < draw(st.sampled_from([0, 0.3, 1])))
    ranked = np.full(seen.shape, -1)
    for row, each in enumerate(seen):
        ranked[row, : np.count_nonzero(~each)] = rng.permutation(np.flatnonzero(~each))
    return ranked, target.astype(float), np.count_nonzero(~seen, axis=1)


def test_all_metrics_have_a_twin():
    assert TWINS.keys() == RANK_METRICS.keys()


@pytest.mark.parametrize("name", TWINS)
@given(rankings())
def test_metrics_agree_with_their_twins(name, example):
    ranked, target, candidates = example
    scores = Ranks.from_rankings(ranked, sp.csr_matrix(target), candidates).scores(
        RANK_METRICS[name]
    )
    for row, score in enumerate(scores):
        ranks = [place for place, item in enumerate(ranked[row], 1) if target[row, item] > 0]
        ranks = [place for place in ranks if ranked[row, place - 1] >= 0]
        if ranks:
            assert score == pytest.approx(TWINS[name](ranks, int(candidates[row])), abs=1e-12)
            assert 0 <= score <= 1
        else:
            assert math.isnan(score)


def test_items_that_are_not_ranked_come_last():
    target = sp.csr_matrix([[1, 1, 1, 0, 0, 0]])
    some = Ranks.from_rankings(np.array([[3, 1, -1]]), target, np.array([6]))
    assert some.rank.tolist() == [2, 5, 6]
    user, rank = np.array([0, 0, 0]), np.array([0, 2, 0])
    assert Ranks.of(user, rank, np.array([3]), np.array([6])).rank.tolist() == [2, 5, 6]
    unknown = Ranks.of(user[:1], rank[1:2], np.array([3]), np.array([6]))
    assert unknown.rank.tolist() == [2, 5, 6]


def test_bad_rankings_are_refused():
    target, size = sp.csr_matrix([[1, 0, 1], [0, 1, 0]]), np.array([3, 3])
    with pytest.raises(ValueError, match="item 3 in row 1, outside of 0 to 2"):
        Ranks.from_rankings(np.array([[0, 1], [2, 3]]), target, size)
    with pytest.raises(ValueError, match="item 2 more than once in row 1"):
        Ranks.from_rankings(np.array([[0, 1, 2], [2, 1, 2]]), target, size)
    with pytest.raises(ValueError, match=r"shape \(1, 2\); give one row for each of the 2"):
        Ranks.from_rankings(np.array([[0, 1]]), target, size)
