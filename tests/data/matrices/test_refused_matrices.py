"""`check_matrix` refuses bad matrices with a remedy."""

import numpy as np
import pandas
import polars
import pyarrow
import pytest
import scipy.sparse as sp

from safecf.data.matrices.csr_from_scipy import check_matrix
from safecf.models.queries import check_rows
from tests.data.matrices.matrices import EXAMPLE, raw_csr
from tests.problems import N_DIMENSIONAL


@pytest.mark.parametrize(
    ("matrix", "kind"), [(EXAMPLE, "ndarray"), (EXAMPLE.tolist(), "list"), (None, "NoneType")]
)
def test_dense_and_foreign_types_are_refused(matrix, kind):
    expected = rf"history is of type {kind}, .*try scipy.sparse.csr_matrix\(history\)"
    with pytest.raises(TypeError, match=expected):
        check_matrix(matrix, name="history")


FRAMES = [pandas.DataFrame, polars.DataFrame, polars.LazyFrame, pyarrow.table, dict]


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_are_sent_to_from_frame(kind):
    frame = kind({"user": [1, 2], "item": [3, 4]})
    with pytest.raises(TypeError, match=r"try Interactions\.from_frame\(user_items, user="):
        check_matrix(frame)
    with pytest.raises(ValueError, match=r"user_items has to be a sparse .*; try recommend_frame"):
        check_rows(frame, 2, "user", "item", range(3))


def test_weights_that_are_too_small_are_told():
    with pytest.raises(ValueError, match=r"has no weight above 1e-45; below 1\.2e-38 .*scale them"):
        check_matrix(sp.csr_matrix([[1e-45, 0], [0, 1e-45]]))


def test_complex_values_are_refused():
    with pytest.raises(TypeError, match=r"values of type complex128.*astype\('float32'\)"):
        check_matrix(sp.csr_matrix(EXAMPLE.astype(complex)))


@pytest.mark.skipif(not N_DIMENSIONAL, reason="scipy has only 2-D sparse arrays before 1.15")
def test_one_dimension_is_refused():
    with pytest.raises(ValueError, match=r"has 1 dimension\(s\).*reshape\(1, -1\)"):
        check_matrix(sp.coo_array(np.array([0.0, 1.0])))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("container", [sp.csr_matrix, sp.coo_matrix])
def test_empty_shapes_are_refused(shape, container):
    with pytest.raises(ValueError, match=rf"its shape is {shape[0]} x {shape[1]}; give"):
        check_matrix(container(shape), allow_empty=True)


@pytest.mark.parametrize("matrix", [sp.csr_matrix((4, 3)), raw_csr([0.0], [1], [0, 1], (1, 3))])
def test_no_interactions_are_refused_unless_allowed(matrix):
    with pytest.raises(ValueError, match=rf"any of its {matrix.shape[0]} rows; check the filter"):
        check_matrix(matrix)
    checked = check_matrix(matrix, allow_empty=True)
    assert checked.nnz == 0
    np.testing.assert_array_equal(checked.row_mass(), np.zeros(matrix.shape[0]))
    np.testing.assert_array_equal(checked.row_mass(np.ones(3)), np.zeros(matrix.shape[0]))


def test_too_many_columns_are_refused():
    with pytest.raises(ValueError, match="number the users and items"):
        check_matrix(sp.csr_matrix((2, 2**31)), allow_empty=True)
    assert check_matrix(sp.csr_matrix((2, 2**31 - 1)), allow_empty=True).num_columns == 2**31 - 1


BAD_VALUES = [
    (np.nan, "holds nan at row 2, column 0; drop the entry"),
    (np.inf, "holds inf at row 2, column 0; .*clip"),
    (-np.inf, "holds -inf at row 2, column 0; .*drop negative"),
    (-0.5, "holds -0.5 at row 2, column 0; .*drop negative"),
    (1e39, r"holds 1e\+39 at row 2, column 0; .*clip or scale"),
]


@pytest.mark.parametrize(("value", "message"), BAD_VALUES)
def test_bad_values_are_refused(value, message):
    matrix = sp.csr_matrix(EXAMPLE.astype(np.float64))
    matrix[2, 0] = value
    with pytest.raises(ValueError, match=message):
        check_matrix(matrix)


@pytest.mark.parametrize("name", ["coo", "csc", "bsr", "lil", "dok", "dia"])
@pytest.mark.parametrize(("value", "message"), BAD_VALUES)
@pytest.mark.filterwarnings("ignore::safecf.errors.ParameterWarning")
def test_bad_values_of_other_formats_are_refused(name, value, message):
    values = EXAMPLE.astype(np.float64)
    values[2, 0] = value
    with pytest.raises(ValueError, match=message):
        check_matrix(getattr(sp, f"{name}_matrix")(values))


@pytest.mark.filterwarnings("ignore::safecf.errors.ParameterWarning")
@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csc_matrix, sp.coo_matrix])
def test_a_negative_duplicate_with_a_positive_sum_is_refused(container):
    if container is sp.coo_matrix:
        matrix = container((np.array([3.0, -1.0]), ([0, 0], [0, 0])), shape=(1, 1))
    else:
        matrix = container((np.array([3.0, -1.0]), [0, 0], [0, 2]), shape=(1, 1))
    with pytest.raises(ValueError, match=r"holds -1.0 at row 0, column 0"):
        check_matrix(matrix)


@pytest.mark.filterwarnings("ignore::safecf.errors.ParameterWarning")
def test_a_sum_that_overflows_is_refused():
    matrix = raw_csr(np.float32([9e11, 9e11]), np.int32([0, 0]), np.int32([0, 2]), (1, 1))
    with pytest.raises(
        ValueError, match=r"holds 17.*\.0 at row 0, column 0; .*at most 1e\+12: clip"
    ):
        check_matrix(matrix)


@pytest.mark.parametrize("column", [3, -1, 2**40])
def test_columns_out_of_range_are_refused(column):
    matrix = raw_csr(np.ones(3), np.int64([0, 1, column]), np.int64([0, 1, 1, 3]), (3, 3))
    with pytest.raises(ValueError, match=rf"row 2 holds column {column}, outside of 0 to 2; check"):
        check_matrix(matrix)


BAD_STRUCTURES = [
    ([0, 2, 1, 3], [0, 1, 2], [1, 1, 1], "indptr falls from 2 to 1 at row 1"),
    ([0, 1, 3], [0, 1, 2], [1, 1, 1], r"indptr has shape \(3,\), where 3 rows need \(4,\)"),
    ([[0, 1, 2, 3]], [0, 1, 2], [1, 1, 1], r"indptr has shape \(1, 4\)"),
    ([1, 1, 2, 3], [0, 1, 2], [1, 1, 1], "indptr starts at 1, not at 0"),
    ([-1, 1, 2, 3], [0, 1, 2], [1, 1, 1], "indptr starts at -1, not at 0"),
    ([0, 1, 2, 4], [0, 1, 2], [1, 1, 1], r"indptr ends at 4, but indices have shape \(3,\)"),
    ([0, 1, 2, 3], [0, 1, 2], [1, 1], r"indices have shape \(3,\) and data \(2,\)"),
    ([0, 1, 2, 3], [0, 1], [1, 1, 1], r"indices have shape \(2,\) and data \(3,\)"),
    ([0, 1, 2, 3], [[0, 1, 2]], [[1, 1, 1]], r"indices have shape \(1, 3\)"),
    ([0, 1, 2, 3], [0.0, 1.0, 2.0], [1, 1, 1], "have to hold integers"),
]


@pytest.mark.parametrize(("indptr", "indices", "data", "message"), BAD_STRUCTURES)
def test_inconsistent_arrays_are_refused(indptr, indices, data, message):
    with pytest.raises(ValueError, match=rf"user_items: .*{message}.*; build it anew"):
        check_matrix(raw_csr(data, indices, indptr, (3, 3)))


@pytest.mark.filterwarnings("ignore::safecf.errors.ParameterWarning")
@pytest.mark.parametrize("container", [sp.csc_matrix, sp.bsr_matrix])
@pytest.mark.parametrize("index", [7, -1])
def test_damaged_arrays_of_other_formats_are_refused(container, index):
    matrix = container(EXAMPLE)
    matrix.indices = matrix.indices.copy()
    matrix.indices[-1] = index
    with pytest.raises(ValueError, match=r"user_items is damaged: .*; build it anew"):
        check_matrix(matrix)


@pytest.mark.filterwarnings("ignore::safecf.errors.ParameterWarning")
@pytest.mark.parametrize(("axis", "bound"), [("row", 1), ("column", 2)])
@pytest.mark.parametrize("index", [7, -1])
def test_coordinates_out_of_range_are_refused(axis, bound, index):
    matrix = sp.coo_matrix(([1.0, 1.0], ([0, 1], [0, 2])), shape=(2, 3))
    {"row": matrix.row, "column": matrix.col}[axis][1] = index
    message = rf"entry 1 lies in {axis} {index}, outside of 0 to {bound}; check the ids"
    with pytest.raises(ValueError, match=message):
        check_matrix(matrix)


def test_another_number_of_columns_than_the_model_s_is_refused():
    with pytest.raises(ValueError, match=r"has 3 columns, while the model knows 5 items; use the"):
        check_matrix(sp.csr_matrix(EXAMPLE), columns=5)
    transposed = sp.csr_matrix((5, 3))
    with pytest.raises(ValueError, match=r"has 3 columns.*knows 5 items.*try user_items\.T"):
        check_matrix(transposed, columns=5)
    assert check_matrix(sp.csr_matrix(EXAMPLE), columns=3).num_columns == 3
