"""Every metric against a slow twin that reads like its definition, and identities."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from safecf.measures.hits import find_hits
from safecf.measures.metrics import METRICS, recall

NUM_ITEMS = 9


def slow_recall(best, held_out, k):
    return len(held_out & set(best[:k])) / min(k, len(held_out))


def slow_ndcg(best, held_out, k):
    gain = sum(1 / math.log2(r + 2) for r, item in enumerate(best[:k]) if item in held_out)
    return gain / sum(1 / math.log2(r + 2) for r in range(min(k, len(held_out))))


def slow_precision(best, held_out, k):
    return len(held_out & set(best[:k])) / k


def slow_map(best, held_out, k):
    at_hits = [slow_precision(best, held_out, r + 1) for r in range(k) if best[r] in held_out]
    return sum(at_hits) / min(k, len(held_out))


def slow_mrr(best, held_out, k):
    return next((1 / (r + 1) for r in range(k) if best[r] in held_out), 0)


def slow_hit(best, held_out, k):
    return float(bool(held_out & set(best[:k])))


TWINS = {
    "recall": slow_recall,
    "ndcg": slow_ndcg,
    "precision": slow_precision,
    "map": slow_map,
    "mrr": slow_mrr,
    "hit": slow_hit,
}


@st.composite
def rankings(draw):
    """Rankings, some of them padded, held-out items, possibly none, and a cutoff."""
    length = draw(st.integers(1, 7))
    user = st.tuples(
        st.lists(st.integers(0, NUM_ITEMS - 1), unique=True, max_size=length),
        st.sets(st.integers(0, NUM_ITEMS - 1)),
    )
    users = draw(st.lists(user, min_size=1, max_size=6))
    ranked = np.full((len(users), length), -1)
    target = np.zeros((len(users), NUM_ITEMS))
    for row, (best, held_out) in enumerate(users):
        ranked[row, : len(best)] = best
        target[row, list(held_out)] = 1
    return ranked, target, draw(st.integers(1, length))


def test_every_metric_has_a_twin():
    assert METRICS.keys() == TWINS.keys()
    assert all("@K_u = " in metric.__doc__ for metric in METRICS.values())


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=50)
@given(rankings())
def test_a_metric_is_its_definition(name, example):
    ranked, target, k = example
    scores = METRICS[name](ranked, sp.csr_matrix(target), k)
    expected = [
        TWINS[name](list(best), held_out, k) if held_out else np.nan
        for best, held_out in zip(ranked, map(set, map(np.flatnonzero, target)), strict=True)
    ]
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=50)
@given(rankings())
def test_scores_lie_between_0_and_1_and_nan_means_nothing_held_out(name, example):
    ranked, target, k = example
    scores = METRICS[name](ranked, sp.csr_matrix(target), k)
    np.testing.assert_array_equal(np.isnan(scores), target.sum(axis=1) == 0)
    known = scores[~np.isnan(scores)]
    assert ((known >= 0) & (known <= 1 + 1e-12)).all()


@given(rankings())
def test_more_ranks_find_no_less(example):
    ranked, target, _ = example
    hits, held_out = find_hits(ranked, sp.csr_matrix(target), ranked.shape[1])
    for k in range(1, ranked.shape[1]):
        for name in ("mrr", "hit"):
            at_k, beyond = (METRICS[name].of_hits(hits, held_out, each) for each in (k, k + 1))
            assert (at_k <= beyond)[held_out > 0].all()
        for name in ("recall", "ndcg", "map"):
            # their denominators grow with K until all held-out items fit
            at_k, beyond = (METRICS[name].of_hits(hits, held_out, each) for each in (k, k + 1))
            assert (at_k <= beyond + 1e-12)[(held_out > 0) & (held_out <= k)].all()


@given(rankings())
def test_a_perfect_ranking_scores_1_except_for_precision(example):
    _, target, k = example
    best = np.argsort(-target, axis=1, kind="stable")
    for name in METRICS.keys() - {"precision"}:
        scores = METRICS[name](best, sp.csr_matrix(target), k)
        np.testing.assert_allclose(scores[target.sum(axis=1) > 0], 1, atol=1e-12)


@given(rankings())
def test_hits_are_found_where_they_are(example):
    ranked, target, k = example
    hits, held_out = find_hits(ranked, sp.csr_matrix(target), k)
    for row, rank in np.ndindex(hits.shape):
        item = ranked[row, rank]
        assert hits[row, rank] == (item >= 0 and target[row, item] > 0)
    np.testing.assert_array_equal(held_out, target.sum(axis=1))


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("k", [5, 20, 100])
def test_a_score_has_the_same_bits_whoever_else_is_scored(name, k):
    rng = np.random.default_rng(k)
    hits, held_out = rng.random((400, k)) < 0.3, rng.integers(30, 60, 400)
    together = METRICS[name].of_hits(hits, held_out, k)
    for batch in (1, 7, 64):
        parts = np.split(np.arange(400), range(batch, 400, batch))
        apart = [METRICS[name].of_hits(hits[part], held_out[part], k) for part in parts]
        np.testing.assert_array_equal(np.concatenate(apart), together)


def test_a_worked_example():
    ranked = np.array([[0, 1, 2], [3, 2, 1], [4, -1, -1], [0, 1, 2]], dtype=np.int32)
    target = sp.csr_array([[1, 1, 1, 1, 1], [0, 1, 0, 0, 1], [0, 0, 0, 0, 1], [0, 0, 0, 0, 0]])
    np.testing.assert_array_equal(recall(ranked, target, 3), [1, 0.5, 1, np.nan])
    np.testing.assert_array_equal(recall(ranked, target, 2), [1, 0, 1, np.nan])
    np.testing.assert_array_equal(METRICS["mrr"](ranked, target, 3), [1, 1 / 3, 1, np.nan])
    np.testing.assert_array_equal(METRICS["map"](ranked, target, 3), [1, 1 / 6, 1, np.nan])
    np.testing.assert_array_equal(
        METRICS["precision"](ranked, target, 3), [1, 1 / 3, 1 / 3, np.nan]
    )
    ideal = 1 + 1 / np.log2(3)
    np.testing.assert_allclose(METRICS["ndcg"](ranked, target, 3), [1, 0.5 / ideal, 1, np.nan])


def test_padding_is_not_the_last_item_of_the_user_before():
    target = sp.csr_matrix([[0, 1], [1, 0]])
    np.testing.assert_array_equal(recall(np.array([[-1], [-1]]), target, 1), [0, 0])


def test_bad_rankings_are_refused():
    target = sp.csr_matrix([[1, 0, 1], [0, 1, 0]])
    ranked = np.array([[0, 1], [2, 1]])
    with pytest.raises(ValueError, match="k is 3, but ranked has 2 columns; rank more"):
        recall(ranked, target, 3)
    with pytest.raises(ValueError, match="k is 0"):
        recall(ranked, target, 0)
    with pytest.raises(ValueError, match=r"shape \(1, 2\); give one row for each of the 2"):
        recall(ranked[:1], target, 1)
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        recall(ranked[0], target, 1)
    with pytest.raises(ValueError, match="item 3 in row 1, outside of 0 to 2"):
        recall(np.array([[0, 1], [2, 3]]), target, 2)
    with pytest.raises(ValueError, match="item -2 in row 0, outside of 0 to 2"):
        recall(np.array([[0, -2], [2, 1]]), target, 2)
    with pytest.raises(ValueError, match="item 2 more than once in row 1"):
        recall(np.array([[0, 1], [2, 2]]), target, 2)
    with pytest.raises(TypeError, match="values of type float64; give item indices"):
        recall(ranked.astype(float), target, 2)
