"""`Interactions` holds the same interactions by user and by item."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from safecf.data.matrices.interactions import Interactions

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
