"""`check_matrix` keeps good matrices as they are, in memory of their own."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from safecf import SAFER2, free_memory
from safecf.data.limits import LARGEST_WEIGHT, SMALLEST_WEIGHT
from safecf.data.matrices import csr_from_scipy
from safecf.data.matrices.csr import Csr
from safecf.data.matrices.csr_from_scipy import check_matrix
from safecf.data.matrices.interactions import Interactions
from safecf.errors import ParameterWarning
from safecf.split import per_user_holdout
from tests.data.matrices.matrices import EXAMPLE, raw_csr
from tests.helpers import refused


def dense(matrix: Csr) -> np.ndarray:
    """Convert to a dense matrix, entry by entry."""
    result = np.zeros(matrix.shape, dtype=np.float32)
    for row in range(matrix.num_rows):
        for at in range(matrix.indptr[row], matrix.indptr[row + 1]):
            assert result[row, matrix.indices[at]] == 0
            result[row, matrix.indices[at]] = 1 if matrix.weights is None else matrix.weights[at]
    return result


MATRICES = [getattr(sp, f"{name}_matrix")(EXAMPLE) for name in ("csr", "csc", "bsr", "coo")]
MATRICES += [sp.csr_matrix(EXAMPLE > 0)]
MATRICES += [raw_csr(np.full(3, 2.0), np.int32([1, 1, 0]), np.int32([0, 3]), (1, 2))]  # twice


@pytest.mark.filterwarnings("ignore::safecf.ParameterWarning")
@pytest.mark.parametrize("number", range(len(MATRICES)))
def test_what_another_thread_writes_meanwhile_is_not_used_unchecked(monkeypatch, number):
    """Every check has such a write after it; an unchecked index would be found in the result."""
    first_outside = csr_from_scipy._first_outside
    for call in range(8):
        matrix, calls = MATRICES[number].copy(), []
        parts = [*vars(matrix).values(), *vars(matrix).get("coords", ())]
        arrays = [each for each in parts if isinstance(each, np.ndarray)]

        def check_and_write(*arguments, arrays=arrays, calls=calls, call=call):
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


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64, np.float32, np.float64])
def test_weights_of_any_type_unless_all_are_one(dtype):
    assert check_matrix(sp.csr_matrix(EXAMPLE > 0, dtype=dtype)).weights is None
    if dtype is not bool:
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


def test_a_wrong_sorted_flag_is_ignored():
    matrix = sp.csr_matrix(np.float32([[1, 2, 0]]))
    assert matrix.has_canonical_format
    matrix.indices[:] = [2, 0]
    np.testing.assert_array_equal(check_matrix(matrix).indices, [0, 2])


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


def test_unused_entries_after_the_last_row_are_ignored():
    matrix = raw_csr(np.float32([2, 9, 9]), np.int32([1, 77, -5]), np.int32([0, 1]), (1, 3))
    np.testing.assert_array_equal(dense(check_matrix(matrix)), [[0, 2, 0]])


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


@pytest.mark.parametrize("matrix", [sp.csr_matrix((4, 3)), raw_csr([0.0], [1], [0, 1], (1, 3))])
def test_no_interactions_are_allowed_where_there_may_be_none(matrix):
    checked = check_matrix(matrix, allow_empty=True)
    assert checked.nnz == 0
    np.testing.assert_array_equal(checked.row_mass(), np.zeros(matrix.shape[0]))
    np.testing.assert_array_equal(checked.row_mass(np.ones(3)), np.zeros(matrix.shape[0]))
    wide = check_matrix(sp.csr_matrix((2, 2**31 - 1)), allow_empty=True)
    assert wide.num_columns == 2**31 - 1


def test_another_number_of_columns_than_the_model_s_is_refused():
    with refused(ValueError, "has 3 columns, while the model knows 5 items; use the"):
        check_matrix(sp.csr_matrix(EXAMPLE), columns=5)
    with refused(ValueError, "has 3 columns", "knows 5 items", "try user_items.T"):
        check_matrix(sp.csr_matrix((5, 3)), columns=5)
    assert check_matrix(sp.csr_matrix(EXAMPLE), columns=3).num_columns == 3
