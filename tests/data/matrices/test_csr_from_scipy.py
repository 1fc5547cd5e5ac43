"""`check_matrix` keeps good matrices as they are and refuses bad ones with a remedy."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from safecf import SAFER2, free_memory
from safecf.data.limits import LARGEST_WEIGHT, SMALLEST_WEIGHT
from safecf.data.matrices import csr_from_scipy
from safecf.data.matrices.csr import Csr
from safecf.data.matrices.csr_from_scipy import check_matrix
from safecf.data.matrices.interactions import Interactions
from safecf.errors import ParameterWarning
from safecf.split import per_user_holdout
from tests.problems import N_DIMENSIONAL

dense_matrices = arrays(
    np.float32,
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    elements=st.one_of(st.just(0.0), st.just(1.0), st.floats(0.125, 4.0, width=32)),
)
EXAMPLE = np.array([[0, 2, 1], [0, 0, 0], [3, 0, 0]], dtype=np.float32)


def dense(matrix: Csr) -> np.ndarray:
    """Convert to a dense matrix, entry by entry."""
    result = np.zeros(matrix.shape, dtype=np.float32)
    for row in range(matrix.num_rows):
        for at in range(matrix.indptr[row], matrix.indptr[row + 1]):
            assert result[row, matrix.indices[at]] == 0
            result[row, matrix.indices[at]] = 1 if matrix.weights is None else matrix.weights[at]
    return result


def raw_csr(data, indices, indptr, shape, container=sp.csr_matrix):
    """Return a CSR matrix with these arrays, without any check."""
    matrix = container(shape, dtype=np.asarray(data).dtype)
    matrix.data, matrix.indices, matrix.indptr = map(np.asarray, (data, indices, indptr))
    return matrix


@given(dense_matrices)
def test_check_matrix_keeps_all_entries(values):
    checked = check_matrix(sp.csr_matrix(values), allow_empty=True)
    np.testing.assert_array_equal(dense(checked), values)
    assert checked.indptr.dtype == np.int64
    assert checked.indices.dtype == np.int32
    assert checked.nnz == np.count_nonzero(values)
    assert (checked.num_rows, checked.num_columns) == values.shape
    ones = set(values.ravel()) <= {0, 1}
    assert checked.weights is None if ones else checked.weights.dtype == np.float32


@given(dense_matrices, st.data())
def test_the_order_of_entries_does_not_matter(values, data):
    rows, columns = values.nonzero()
    order = np.array(data.draw(st.permutations(range(rows.size))), dtype=int)
    order = order[np.argsort(rows[order], kind="stable")]
    indptr = np.append(0, np.cumsum((values != 0).sum(axis=1)))
    shuffled = raw_csr(values[rows, columns][order], columns[order], indptr, values.shape)
    np.testing.assert_array_equal(dense(check_matrix(shuffled, allow_empty=True)), values)


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("values", [EXAMPLE, EXAMPLE > 0])
def test_what_is_written_to_the_matrix_later_changes_nothing(container, values):
    matrix = container(values.astype(np.float32))
    checked = check_matrix(matrix)
    matrix.indices[:], matrix.indptr[:], matrix.data[:] = 2**31 - 1, 77, np.nan
    np.testing.assert_array_equal(dense(checked), values)


def duplicate_entries() -> sp.csr_matrix:
    return raw_csr(np.full(3, 2.0), np.int32([1, 1, 0]), np.int32([0, 3]), (1, 2))


@pytest.mark.filterwarnings("ignore::safecf.ParameterWarning")
@pytest.mark.parametrize(
    "make",
    [
        lambda: sp.csr_matrix(EXAMPLE),
        lambda: sp.csr_matrix(EXAMPLE > 0),
        duplicate_entries,
        lambda: sp.csc_matrix(EXAMPLE),
        lambda: sp.bsr_matrix(EXAMPLE),
        lambda: sp.coo_matrix(EXAMPLE),
    ],
)
@pytest.mark.parametrize("call", range(8))
def test_what_another_thread_writes_meanwhile_is_not_used_unchecked(monkeypatch, make, call):
    """Every check has such a write after it; an unchecked index would be found in the result."""
    matrix, calls = make(), []
    arrays = [each for each in vars(matrix).values() if isinstance(each, np.ndarray)]
    arrays += [each for each in vars(matrix).get("coords", ()) if isinstance(each, np.ndarray)]
    first_outside = csr_from_scipy._first_outside

    def check_and_write(*arguments):
        found = first_outside(*arguments)
        calls.append(found)
        if len(calls) == call + 1:
            for array in arrays:
                array[:] = 120 if array.dtype.kind in "iu" else 1
        return found

    monkeypatch.setattr(csr_from_scipy, "_first_outside", check_and_write)
    found = check_matrix(matrix)
    assert found.indptr[0] == 0
    assert (np.diff(found.indptr) >= 0).all()
    assert found.indptr[-1] == found.indices.size
    assert ((found.indices >= 0) & (found.indices < found.num_columns)).all()
    assert found.weights is None or (found.weights > 0).all()


def test_a_csr_can_only_be_read_however_it_was_made():
    checked = check_matrix(sp.csr_matrix(EXAMPLE))
    copies = [pickle.loads(pickle.dumps(checked)), copy.copy(checked), copy.deepcopy(checked)]
    for found in (checked, checked.transpose(), checked.part(0, 2), replace(checked), *copies):
        for name in ("indptr", "indices", "weights"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(found, name)[:1] = 0
    for found in copies:
        np.testing.assert_array_equal(dense(found), EXAMPLE)


@pytest.mark.parametrize("write", ["sort_indices", "sum_duplicates", "eliminate_zeros"])
def test_scipy_does_not_write_to_a_csr(write):
    shared = check_matrix(sp.csr_matrix(EXAMPLE)).to_scipy()
    shared.has_sorted_indices = shared.has_canonical_format = False
    with pytest.raises(ValueError, match="read-only"):
        getattr(shared, write)()


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
def test_64_bit_indices(container):
    clean = sp.csr_matrix(EXAMPLE)
    indices, indptr = clean.indices.astype(np.int64), clean.indptr.astype(np.int64)
    wide = raw_csr(clean.data, indices, indptr, clean.shape, container)
    checked = check_matrix(wide)
    assert checked.indices.dtype == np.int32
    np.testing.assert_array_equal(dense(checked), EXAMPLE)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64, np.float32, np.float64])
def test_equal_ones_of_any_type_need_no_weights(dtype):
    assert check_matrix(sp.csr_matrix(EXAMPLE > 0, dtype=dtype)).weights is None


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float64])
def test_weights_of_any_type(dtype):
    checked = check_matrix(sp.csr_matrix(EXAMPLE, dtype=dtype))
    np.testing.assert_array_equal(checked.weights, np.float32([2, 1, 3]))
    assert checked.weights.dtype == np.float32


@pytest.mark.parametrize("name", ["coo", "csc", "bsr", "lil", "dok", "dia"])
@pytest.mark.parametrize("kind", ["matrix", "array"])
def test_other_formats_are_converted_with_a_warning(name, kind):
    container = getattr(sp, f"{name}_{kind}")
    matrix = container(EXAMPLE)
    with pytest.warns(ParameterWarning, match=rf"user_items is a {name}_{kind} .* CSR; try"):
        checked = check_matrix(matrix)
    np.testing.assert_array_equal(dense(checked), EXAMPLE)


def test_unsorted_rows_are_sorted_on_a_copy():
    matrix = raw_csr(np.float32([1, 2, 3]), np.int32([2, 0, 1]), np.int32([0, 2, 3]), (2, 3))
    checked = check_matrix(matrix)
    np.testing.assert_array_equal(checked.indices, [0, 2, 1])
    np.testing.assert_array_equal(checked.weights, [2, 1, 3])
    np.testing.assert_array_equal(matrix.indices, [2, 0, 1])
    np.testing.assert_array_equal(matrix.data, [1, 2, 3])


def test_a_wrong_sorted_flag_is_ignored():
    matrix = sp.csr_matrix(np.float32([[1, 2, 0]]))
    assert matrix.has_canonical_format
    matrix.indices[:] = [2, 0]
    np.testing.assert_array_equal(check_matrix(matrix).indices, [0, 2])


def test_duplicates_are_summed_on_a_copy_with_a_warning():
    values = np.array([100, 100, 1, 1], dtype=np.int8)
    matrix = raw_csr(values, np.int32([1, 1, 1, 0]), np.int32([0, 3, 4]), (2, 3))
    with pytest.warns(ParameterWarning, match="holds 2 duplicate entries"):
        checked = check_matrix(matrix)
    np.testing.assert_array_equal(dense(checked), [[0, 201, 0], [1, 0, 0]])
    np.testing.assert_array_equal(matrix.data, values)
    np.testing.assert_array_equal(matrix.indices, [1, 1, 1, 0])


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float32])
def test_duplicates_of_a_coo_matrix_are_counted(dtype):
    positions = ([0, 0, 1], [2, 2, 0])
    matrix = sp.coo_matrix((np.ones(3, dtype=dtype), positions), shape=(2, 3))
    with (
        pytest.warns(ParameterWarning, match="coo_matrix"),
        pytest.warns(ParameterWarning, match="holds 1 duplicate entries"),
    ):
        checked = check_matrix(matrix)
    np.testing.assert_array_equal(dense(checked), [[0, 0, 2], [1, 0, 0]])
    assert matrix.nnz == 3


def test_explicit_zeros_are_dropped_on_a_copy():
    matrix = raw_csr(np.float32([1, 0, 1]), np.int32([0, 1, 2]), np.int32([0, 2, 3]), (2, 3))
    checked = check_matrix(matrix)
    np.testing.assert_array_equal(checked.indices, [0, 2])
    np.testing.assert_array_equal(checked.indptr, [0, 1, 2])
    assert checked.weights is None
    assert matrix.nnz == 3


def test_values_that_underflow_in_float32_are_zeros():
    checked = check_matrix(sp.csr_matrix([[1.0, 1e-60]]))
    np.testing.assert_array_equal(checked.indices, [0])


def test_unused_entries_after_the_last_row_are_ignored():
    matrix = raw_csr(np.float32([2, 9, 9]), np.int32([1, 77, -5]), np.int32([0, 1]), (1, 3))
    np.testing.assert_array_equal(dense(check_matrix(matrix)), [[0, 2, 0]])


@pytest.mark.parametrize(
    ("matrix", "kind"), [(EXAMPLE, "ndarray"), (EXAMPLE.tolist(), "list"), (None, "NoneType")]
)
def test_dense_and_foreign_types_are_refused(matrix, kind):
    expected = rf"history is of type {kind}, .*try scipy.sparse.csr_matrix\(history\)"
    with pytest.raises(TypeError, match=expected):
        check_matrix(matrix, name="history")


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


@pytest.mark.parametrize("weight", [LARGEST_WEIGHT, SMALLEST_WEIGHT])
def test_the_limits_of_weights_train(weight):
    matrix = sp.csr_matrix(np.where(np.eye(40, 30) + np.eye(40, 30, k=3) > 0, weight, 0))
    model = SAFER2(factors=4, iterations=3, random_state=0).fit(matrix, show_progress=False)
    assert all(np.isfinite(record.objective) for record in model.history)
    assert np.isfinite(model.user_factors).all()
    with pytest.raises(ValueError, match=r"weights are at most 1e\+12: clip or scale them"):
        check_matrix(sp.csr_matrix([[np.nextafter(LARGEST_WEIGHT, np.inf)]]))
    tiny = check_matrix(sp.csr_matrix([[1, SMALLEST_WEIGHT / 2]]))
    assert tiny.indices.tolist() == [0]


def test_a_matrix_that_does_not_fit_into_memory_is_refused(monkeypatch):
    raw_ids = raw_csr(np.ones(2), np.int32([7, 2**31 - 2]), np.int32([0, 1, 2]), (2, 2**31 - 1))
    monkeypatch.setattr(free_memory, "available_bytes", lambda: 10**10)
    for make in (Interactions.from_csr, per_user_holdout):
        told = r"by column, 2,147,483,647 x 2, needs 51\.5 GB of memory, while 10\.0 GB are free"
        with pytest.raises(MemoryError, match=f"{told}; if raw ids are used as"):
            make(raw_ids)
    tall = Csr(np.zeros(1), np.zeros(0, np.int32), None, (1, 1))
    many_rows = sp.csr_matrix((1, 1))
    many_rows._shape, many_rows.indptr = (2**31 - 1, 1), tall.indptr
    with pytest.raises(MemoryError, match="a copy of user_items, 2,147,483,647 x 1, needs 17"):
        check_matrix(many_rows)


def test_a_large_catalogue_fits(monkeypatch):
    monkeypatch.setattr(free_memory, "available_bytes", lambda: 2 * 10**9)
    items = 10**7
    matrix = sp.csr_matrix((np.ones(2), ([0, 1], [7, items - 1])), shape=(2, items))
    assert Interactions.from_csr(matrix).num_items == items
    monkeypatch.setattr(free_memory, "available_bytes", lambda: None)
    assert Interactions.from_csr(matrix).num_items == items
