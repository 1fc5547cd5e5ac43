"""Every metric against a slow twin that reads like its definition, and identities."""

import math
import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from safecf.evaluation import METRICS

NUM_ITEMS = 9
recall = METRICS["recall"]


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
@pytest.mark.parametrize("k", [5, 20, 100])
def test_a_score_has_the_same_bits_whoever_else_is_scored(name, k):
    rng = np.random.default_rng(k)
    ranked = np.argsort(rng.random((400, 200)), axis=1)[:, :k]
    target = sp.csr_matrix((rng.random((400, 200)) < 0.3).astype(float))
    together = METRICS[name](ranked, target, k)
    for batch in (1, 7, 64):
        rows = [slice(at, at + batch) for at in range(0, 400, batch)]
        parts = [METRICS[name](ranked[each], target[each], k) for each in rows]
        np.testing.assert_array_equal(np.concatenate(parts), together)


def test_padding_is_not_the_last_item_of_the_user_before():
    target = sp.csr_matrix([[0, 1], [1, 0]])
    np.testing.assert_array_equal(recall(np.array([[-1], [-1]]), target, 1), [0, 0])


RANKED = np.array([[0, 1], [2, 1]])
BAD = [
    (RANKED, 3, ValueError, "k is 3, but ranked has 2 columns; rank more"),
    (RANKED, 0, ValueError, "k is 0, but ranked has 2 columns"),
    (RANKED[:1], 1, ValueError, "shape (1, 2); give one row for each of the 2"),
    (RANKED[0], 1, ValueError, "shape (2,); give one row"),
    (np.array([[0, 1], [2, 3]]), 2, ValueError, "item 3 in row 1, outside of 0 to 2; use"),
    (np.array([[0, -2], [2, 1]]), 2, ValueError, "item -2 in row 0, outside of 0 to 2; use"),
    (np.array([[0, 1], [2, 2]]), 2, ValueError, "item 2 more than once in row 1"),
    (RANKED.astype(float), 2, TypeError, "values of type float64; give item indices"),
]


@pytest.mark.parametrize(("ranked", "k", "error", "message"), BAD)
def test_bad_rankings_are_refused(ranked, k, error, message):
    with pytest.raises(error, match=re.escape(message)):
        recall(ranked, sp.csr_matrix([[1, 0, 1], [0, 1, 0]]), k)
