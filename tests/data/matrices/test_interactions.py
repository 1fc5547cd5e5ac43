"""`Interactions` holds the same interactions by user and by item."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from safecf import Interactions

dense_matrices = arrays(
    np.float32,
    st.tuples(st.integers(1, 8), st.integers(1, 8)),
    elements=st.sampled_from([0, 0, 1, 1, 2.5]),
).filter(np.any)


def check_both_sides(values):
    matrix = sp.csr_matrix(values)
    found, expected = Interactions.from_csr(matrix), matrix.T.tocsr()
    expected.sort_indices()
    assert (found.num_users, found.num_items, found.nnz) == (*matrix.shape, matrix.nnz)
    for side, wanted in ((found.users, matrix), (found.items, expected)):
        assert side.shape == wanted.shape
        assert (side.indptr.dtype, side.indices.dtype) == (np.int64, np.int32)
        np.testing.assert_array_equal(side.indptr, wanted.indptr)
        np.testing.assert_array_equal(side.indices, wanted.indices)
        if (matrix.data == 1).all():
            assert side.weights is None
        else:
            assert side.weights.dtype == np.float32
            np.testing.assert_array_equal(side.weights, wanted.data)


@given(dense_matrices)
def test_items_are_the_transpose_of_users(values):
    check_both_sides(values)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_larger_matrix_with_long_and_short_rows(weighted):
    rng = np.random.default_rng(0)
    liked = rng.random((500, 300)) < 1 / np.arange(1, 301)
    weights = rng.random((500, 300)) + 0.5 if weighted else 1
    check_both_sides((liked * weights).astype(np.float32))


def test_interactions_have_their_own_memory():
    matrix, ids = sp.csr_matrix([[0, 2.0, 1], [3, 0, 0]]), np.array([5, 6])
    names = np.array(["a", "b", "c"], dtype=object)
    interactions = Interactions.from_csr(matrix, user_ids=ids, item_ids=names)
    before = matrix.toarray()
    written = interactions.to_csr()
    for each in (matrix, written):
        each.indices[:], each.indptr[:], each.data[:] = 2**31 - 1, 9, np.nan
    ids[:], names[:] = 0, "z"
    np.testing.assert_array_equal(interactions.to_csr().toarray(), before)
    assert interactions.user_ids.tolist() == [5, 6]
    assert interactions.item_ids.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    "again", [lambda found: pickle.loads(pickle.dumps(found)), copy.deepcopy, copy.copy, replace]
)
def test_copies_of_interactions_can_only_be_read(again):
    frame = {"user": ["ann", "bob"], "item": np.array([7, 9]), "w": [1.0, 2.0]}
    interactions = Interactions.from_frame(frame, weight="w")
    found = again(interactions)
    assert found.to_csr().toarray().tolist() == [[1, 0], [0, 2]]
    for array in (found.user_ids, found.item_ids, found.users.indices, found.items.weights):
        with pytest.raises(ValueError, match="read-only"):
            array[:1] = array[-1:]


def test_the_constructor_is_internal():
    matrix = sp.csr_matrix([[1.0]])
    with pytest.raises(TypeError, match=r"not of a csr_matrix .*; try Interactions\.from_csr"):
        Interactions(matrix, matrix.T)


@pytest.mark.parametrize("role", ["user", "item", "weight"])
def test_a_frame_may_be_changed_afterwards(role):
    columns = {"user": np.array([3, 5]), "item": np.array([7, 9]), "weight": np.array([2.0, 4])}
    found = Interactions.from_frame(columns, weight="weight")
    columns[role][:] = 10**6
    assert found.to_csr().toarray().tolist() == [[2, 0], [0, 4]]
    assert (found.user_ids.tolist(), found.item_ids.tolist()) == ([3, 5], [7, 9])
