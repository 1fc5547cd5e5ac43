"""Rows and row sums of a `Csr`."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from safecf.data.matrices import csr
from safecf.data.matrices.csr_from_scipy import check_matrix

dense_matrices = arrays(
    np.float32,
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    elements=st.one_of(st.just(0.0), st.just(1.0), st.floats(0.125, 4.0, width=32)),
)


@given(dense_matrices)
def test_a_row_is_its_columns_and_confidences(values):
    checked = check_matrix(sp.csr_matrix(values), allow_empty=True)
    for row, expected in enumerate(values):
        columns, confidences = checked.row(row)
        np.testing.assert_array_equal(columns, np.flatnonzero(expected))
        np.testing.assert_array_equal(confidences, expected[expected != 0])
        assert confidences.dtype == np.float64


@pytest.mark.parametrize("block", [1, 2, 7, 50])
@pytest.mark.parametrize("weighted", [False, True])
def test_row_mass_is_the_weighted_sum_of_each_row(monkeypatch, block, weighted):
    rng = np.random.default_rng(1)
    values = sp.random(40, 30, density=0.1, format="lil", random_state=rng)
    values[7] = rng.random(30)
    values[[0, 20, 21, 22, 39]] = 0
    matrix = values.tocsr().astype(np.float32)
    if not weighted:
        matrix.data[:] = 1
    monkeypatch.setattr(csr, "BLOCK", block)
    checked, dense = check_matrix(matrix), matrix.toarray().astype(np.float64)
    for column_weight in (None, rng.random(30)):
        mass = checked.row_mass(column_weight)
        expected = dense @ (np.ones(30) if column_weight is None else column_weight)
        assert mass.dtype == np.float64
        np.testing.assert_allclose(mass, expected, rtol=1e-12)


@given(dense_matrices, st.data())
def test_rows_are_taken_in_any_order(values, data):
    matrix = check_matrix(sp.csr_matrix(values), allow_empty=True)
    numbers = st.integers(-1, len(values) - 1)
    rows = np.array(data.draw(st.lists(numbers, min_size=1)))
    taken = matrix.take(rows)
    expected = np.where(rows[:, None] < 0, 0, np.asarray(values)[rows])
    np.testing.assert_array_equal(taken.to_scipy().toarray(), expected)
    assert matrix.take(rows[:0]).shape == (0, matrix.num_columns)
