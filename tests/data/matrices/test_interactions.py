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


def assert_is_transpose(interactions: Interactions, matrix: sp.csr_matrix) -> None:
    expected = matrix.T.tocsr()
    expected.sort_indices()
    items = interactions.items
    assert items.shape == expected.shape
    assert (items.indptr.dtype, items.indices.dtype) == (np.int64, np.int32)
    np.testing.assert_array_equal(items.indptr, expected.indptr)
    np.testing.assert_array_equal(items.indices, expected.indices)
    if (matrix.data == 1).all():
        assert items.weights is None
    else:
        assert items.weights.dtype == np.float32
        np.testing.assert_array_equal(items.weights, expected.data)


@given(dense_matrices)
def test_items_are_the_transpose_of_users(values):
    matrix = sp.csr_matrix(values)
    interactions = Interactions.from_csr(matrix)
    assert_is_transpose(interactions, matrix)
    np.testing.assert_array_equal(interactions.users.indices, matrix.indices)
    assert (interactions.num_users, interactions.num_items) == matrix.shape
    assert interactions.nnz == matrix.nnz


@pytest.mark.parametrize("weighted", [False, True])
def test_a_larger_matrix_with_long_and_short_rows(weighted):
    rng = np.random.default_rng(0)
    popularity = 1 / np.arange(1, 301)
    values = (rng.random((500, 300)) < popularity) * (rng.random((500, 300)) + 0.5)
    matrix = sp.csr_matrix(values.astype(np.float32))
    if not weighted:
        matrix.data[:] = 1
    assert_is_transpose(Interactions.from_csr(matrix), matrix)


def test_empty_matrices_are_refused():
    with pytest.raises(ValueError, match="no interactions"):
        Interactions.from_csr(sp.csr_matrix((3, 2)))


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


def test_a_copy_may_be_changed_freely():
    interactions = Interactions.from_csr(sp.csr_matrix([[1, 2.0], [3, 1]]))
    copied = interactions.to_csr()
    copied.data[copied.data < 2] = 0
    copied.eliminate_zeros()
    copied[0, 1] = 7
    assert interactions.to_csr().toarray().tolist() == [[1, 2], [3, 1]]


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


@given(dense_matrices, st.sampled_from(["user", "item", "weight"]))
def test_a_frame_may_be_changed_afterwards(values, role):
    users, items = np.nonzero(values)
    columns = {"user": users, "item": items, "weight": values[users, items].astype(np.float64)}
    found = Interactions.from_frame(columns, weight="weight")
    before = found.to_csr().toarray(), found.user_ids.tolist(), found.item_ids.tolist()
    columns[role][:] = 10**6
    after = found.to_csr().toarray(), found.user_ids.tolist(), found.item_ids.tolist()
    np.testing.assert_array_equal(before[0], after[0])
    assert before[1:] == after[1:]
