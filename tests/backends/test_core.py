"""The binding of the native core: what it refuses, and its stub."""

from pathlib import Path

import numpy as np
import pytest
from nanobind.stubgen import StubGen

import safecf
from safecf import _core

EXECUTION = _core.Execution(1)
EXACT = "exact", 0, 0.0, EXECUTION
ROWS, OTHERS, FACTORS = 3, 4, 2
INDPTR, INDICES = np.array([0, 2, 2, 3]), np.array([0, 3, 1], dtype=np.int32)


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype=dtype)


def matrix(weights=None):
    return _core.Matrix(INDPTR, INDICES, weights)


def rows(others=OTHERS):
    return _core.Rows(matrix(), ones(ROWS), ones(others), ones(ROWS), ones(ROWS))


def fixed(dtype=np.float32):
    return _core.Fixed(ones(OTHERS, 16, dtype=dtype), ones(FACTORS), ones(FACTORS, FACTORS))


def report():
    return _core.Report(ones(ROWS), ones(ROWS))


# By function: its arguments, and which of them are outputs.
CALLS = {
    "solve_rows": ((rows(), fixed(), ones(ROWS, FACTORS), report(), *EXACT), [2]),
    "gradients": ((rows(), fixed(), ones(ROWS, FACTORS), ones(ROWS, FACTORS), EXECUTION), [3]),
    "losses": (
        (matrix(), ones(ROWS), None, fixed(), ones(ROWS, FACTORS), ones(ROWS), EXECUTION),
        [5],
    ),
    "update_block": (
        (rows(), fixed(), ones(5, FACTORS), 1, ones(ROWS, 5), report(), ones(3), None, EXECUTION),
        [4, 6],
    ),
    "scores": ((matrix(), ones(ROWS, 16), ones(OTHERS, 16), ones(3), EXECUTION), [3]),
    "scored_losses": (
        (matrix(), ones(ROWS), None, ones(3), ones(ROWS, 16), ones(2, 2), ones(ROWS), EXECUTION),
        [6],
    ),
    "gram": ((ones(ROWS, FACTORS), None, ones(FACTORS, FACTORS), EXECUTION), [2]),
    "gram_block": ((ones(ROWS, FACTORS), None, 1, ones(FACTORS, 1), EXECUTION), [3]),
    "rotate": ((ones(ROWS, FACTORS), 0, ones(FACTORS, FACTORS), ones(ROWS, 16), EXECUTION), [3]),
    "eigen": ((np.eye(3), np.ones(3), np.ones((3, 3)), EXECUTION), [1, 2]),
    "to_bfloat16": ((ones(ROWS, FACTORS), ones(ROWS, 16, dtype=np.uint32), EXECUTION), [1]),
    "transpose": (
        (matrix(ones(3)), np.zeros(5, np.int64), np.zeros(3, np.int32), ones(3)),
        [1, 2, 3],
    ),
    "positions": ((matrix(), OTHERS, np.zeros(3, np.uint32)), [2]),
    "Report": ((ones(ROWS), ones(ROWS)), [0, 1]),
    "kernel_weights": (
        (np.ones(3), "gaussian", 1.0, 0.0, np.ones(3), EXECUTION),
        [4],
    ),
}


def search(ids, scores, width=FACTORS):
    queries = ones(ROWS, width)
    catalogue = _core.Catalogue(ones(OTHERS, FACTORS), EXECUTION)
    asked = ones(ROWS, FACTORS) if queries is None else queries
    catalogue.search(asked, None, None, ids, scores, EXECUTION)


@pytest.mark.parametrize("name", CALLS)
def test_outputs_are_never_written_into_a_copy(name):
    """An output of another type or order is refused; a silent conversion would lose the result."""
    arguments, outputs = CALLS[name]
    function = getattr(_core, name)
    function(*arguments)
    for place in outputs:
        right = arguments[place]
        other = np.float64 if right.dtype == np.float32 else np.float32
        spread = np.repeat(right, 2, axis=-1)[..., ::2]
        frozen = right.copy()
        frozen.flags.writeable = False
        for wrong in (right.astype(other), spread, frozen, right[None], None, right.tolist()):
            if wrong is not None or name != "transpose":
                with pytest.raises(TypeError, match="incompatible function arguments"):
                    function(*arguments[:place], wrong, *arguments[place + 1 :])


def test_the_results_of_a_search_are_never_written_into_a_copy():
    ids, scores = np.zeros((ROWS, 1), np.int32), ones(ROWS, 1)
    search(ids, scores)
    for wrong in ((ids.astype(np.int64), scores), (ids, scores.astype(np.float64))):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            search(*wrong)


def test_arrays_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="gram is not factors x factors"):
        _core.gram(ones(3, 2), None, ones(3, 3), EXECUTION)
    with pytest.raises(ValueError, match="one weight per row"):
        _core.gram(ones(3, 2), ones(2), ones(2, 2), EXECUTION)
    with pytest.raises(ValueError, match="one column weight per fixed row"):
        _core.solve_rows(rows(OTHERS + 1), fixed(), ones(ROWS, FACTORS), report(), *EXACT)
    with pytest.raises(ValueError, match="one row of factors per row"):
        _core.solve_rows(rows(), fixed(), ones(ROWS + 1, FACTORS), report(), *EXACT)
    with pytest.raises(ValueError, match="factors differ"):
        _core.solve_rows(rows(), fixed(), ones(ROWS, FACTORS + 1), report(), *EXACT)
    short = _core.Report(ones(1), ones(1))
    with pytest.raises(ValueError, match="one change and norm per row"):
        _core.solve_rows(rows(), fixed(), ones(ROWS, FACTORS), short, *EXACT)
    with pytest.raises(ValueError, match="change and norm differ"):
        _core.Report(ones(1), ones(2))
    with pytest.raises(ValueError, match="one weight and one ridge per row"):
        _core.Rows(matrix(), ones(2), ones(OTHERS), ones(ROWS), ones(ROWS))
    with pytest.raises(ValueError, match="not padded"):
        _core.Fixed(ones(OTHERS, FACTORS), ones(FACTORS))
    with pytest.raises(ValueError, match="basis is not"):
        _core.Fixed(ones(OTHERS, 16), ones(FACTORS), ones(3, 3))


def test_a_fixed_side_of_another_type_is_refused():
    with pytest.raises(TypeError, match="neither float32 nor uint32"):
        fixed(np.float64)
    words = _core.Fixed(ones(OTHERS, 16, dtype=np.uint32), ones(FACTORS))
    with pytest.raises(ValueError, match="solver needs rotated in float32"):
        _core.solve_rows(rows(), words, ones(ROWS, FACTORS), report(), *EXACT)


@pytest.mark.parametrize(
    ("indptr", "message"),
    [
        ([], "indptr is empty"),
        ([0, 2], "indptr does not end"),
        ([0, 5], "indptr does not end"),
        ([1, 3], "indptr does not start"),
        ([0, 3, 2, 3], "indptr decreases"),
        ([0, 2**40, 3], "indptr decreases"),
    ],
)
def test_offsets_that_are_no_rows_are_refused(indptr, message):
    with pytest.raises(ValueError, match=message):
        _core.Matrix(np.array(indptr, dtype=np.int64), INDICES)
    with pytest.raises(ValueError, match="weights and indices differ"):
        _core.Matrix(INDPTR, INDICES, ones(2))


def test_a_search_needs_arrays_of_its_size():
    ids, scores = np.zeros((ROWS, 1), np.int32), ones(ROWS, 1)
    with pytest.raises(ValueError, match="differ in width"):
        search(ids, scores, FACTORS + 1)
    with pytest.raises(ValueError, match="not queries x k"):
        search(ids, ones(ROWS, 2))
    with pytest.raises(ValueError, match="k is less than 1"):
        search(ids[:, :0].copy(), scores[:, :0].copy())
    catalogue = _core.Catalogue(ones(OTHERS, FACTORS), EXECUTION)
    with pytest.raises(ValueError, match="one row per query"):
        catalogue.search(ones(2, FACTORS), matrix(), None, ids[:2], scores[:2], EXECUTION)


def test_ranks_need_arrays_of_their_size():
    catalogue, queries = _core.Catalogue(ones(OTHERS, FACTORS), EXECUTION), ones(ROWS, FACTORS)
    ranks = np.zeros(len(INDICES), np.int32)
    catalogue.ranks(queries, matrix(), None, None, ranks, EXECUTION)
    with pytest.raises(ValueError, match="differ in width"):
        catalogue.ranks(ones(ROWS, 3), matrix(), None, None, ranks, EXECUTION)
    with pytest.raises(ValueError, match="targets needs one row per query"):
        catalogue.ranks(ones(1, FACTORS), matrix(), None, None, ranks, EXECUTION)
    empty = _core.Matrix(np.zeros(1, np.int64), INDICES[:0])
    with pytest.raises(ValueError, match="exclude needs one row per query"):
        catalogue.ranks(queries, matrix(), empty, None, ranks, EXECUTION)
    with pytest.raises(ValueError, match="one rank per target"):
        catalogue.ranks(queries, matrix(), None, None, ranks[:1], EXECUTION)
    few = _core.Catalogue(ones(1, FACTORS), EXECUTION)
    with pytest.raises(ValueError, match="column 3, where the catalogue has 1 rows"):
        few.ranks(queries, matrix(), None, None, ranks, EXECUTION)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        catalogue.ranks(queries, matrix(), None, None, ranks.astype(np.int64), EXECUTION)


def test_records_keep_their_arrays_alive():
    systems, side = rows(), fixed()  # whose arrays nobody else holds
    catalogue = _core.Catalogue(np.full((OTHERS, FACTORS), 2, np.float32), EXECUTION)
    np.full(10_000, -1.0)
    found = ones(ROWS, FACTORS)
    assert _core.solve_rows(systems, side, found, report(), *EXACT) == -1
    assert np.isfinite(found).all()
    ids, scores = np.zeros((1, 1), np.int32), ones(1, 1)
    catalogue.search(ones(1, FACTORS), None, None, ids, scores, EXECUTION)
    assert scores == 4


def test_the_stub_is_that_of_the_built_core():
    """`python -m nanobind.stubgen -m safecf._core -o src/safecf/_core.pyi` brings it up to date."""
    generator = StubGen(module=_core, quiet=True)
    generator.put(_core)
    committed = Path(safecf.__file__).with_name("_core.pyi").read_text()
    assert generator.get() == committed
