"""Recall@K against a twin that reads like its definition."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from safecf.evaluation.metrics import recall

NUM_ITEMS = 9


def slow_recall(ranked, target, k):
    scores = []
    for row, best in enumerate(ranked):
        held_out = set(np.flatnonzero(target[row]))
        hits = held_out & set(best[:k])
        scores.append(len(hits) / min(k, len(held_out)) if held_out else np.nan)
    return scores


@st.composite
def rankings(draw):
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


@given(rankings())
def test_recall_is_its_definition(example):
    ranked, target, k = example
    scores = recall(ranked, sp.csr_matrix(target), k)
    assert scores.dtype == np.float64
    np.testing.assert_array_equal(scores, slow_recall(ranked, target, k))


def test_a_worked_example():
    ranked = np.array([[0, 1, 2], [3, 2, 1], [4, -1, -1], [0, 1, 2]], dtype=np.int32)
    target = sp.csr_array([[1, 1, 1, 1, 1], [0, 1, 0, 0, 1], [0, 0, 0, 0, 1], [0, 0, 0, 0, 0]])
    np.testing.assert_array_equal(recall(ranked, target, 3), [1, 0.5, 1, np.nan])
    np.testing.assert_array_equal(recall(ranked, target, 2), [1, 0, 1, np.nan])


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
