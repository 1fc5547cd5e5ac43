"""The binding of the native core: what it refuses, whatever arrays hold and whenever they change.

Every call is tried with each of its arrays too long, of another type, overlapping an output, or
changed after it was checked.
"""

import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from nanobind.stubgen import StubGen

import safecf
from safecf import _core

ROWS, OTHERS, FACTORS, WIDTH = 40, 30, 20, 32
ENTRIES = 5 * ROWS
RUN = _core.Execution(2)
CHANGED = "changed after it was checked, or is damaged"
HOSTILE = [OTHERS, -1, 2**31 - 1, -(2**31)]


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype=dtype)


def fresh():
    """Arrays that fit each other, by name; x are the rows to solve, y the fixed side."""
    return {
        "indptr": np.arange(ROWS + 1, dtype=np.int64) * 5,
        "indices": np.tile(np.arange(5, dtype=np.int32) * 6, ROWS),
        "positions": np.arange(ENTRIES, dtype=np.uint32),
        "everywhere": np.array([3, 4], dtype=np.int32),
        "row_weight": ones(ROWS),
        "col_weight": ones(OTHERS),
        "gram_weight": ones(ROWS),
        "ridge": ones(ROWS),
        "y": ones(OTHERS, WIDTH),
        "words": ones(OTHERS, 16, dtype=np.uint32),
        "values": ones(FACTORS),
        "basis": np.eye(FACTORS, dtype=np.float32),
        "gram": ones(FACTORS, FACTORS),
        "block": ones(FACTORS, 7),
        "x": ones(ROWS, FACTORS),
        "wide": ones(ROWS, WIDTH),
        "out": ones(ROWS, FACTORS),
        "change": ones(ROWS),
        "norm": ones(ROWS),
        "scores": ones(ENTRIES),
        "losses": ones(ROWS),
        "ids": np.zeros((ROWS, 3), np.int32),
        "found": ones(ROWS, 3),
        "ranks": np.zeros(ENTRIES, np.int32),
        "down": np.zeros(OTHERS + 1, np.int64),
        "rows": np.zeros(ENTRIES, np.int32),
        "moved": ones(ENTRIES),
        "items": ones(OTHERS, FACTORS),
        "square": np.eye(9),
        "eigenvalues": np.ones(9),
        "vectors": np.ones((9, 9)),
        "doubles": np.linspace(0, 1, 50),
        "counts": np.ones(50),
        "weights": np.ones(50),
        "out_words": ones(ROWS, 16, dtype=np.uint32),
    }


class Arrays(dict):
    """Arrays that note which of them are asked for, and records of them, each made once."""

    def __init__(self, **changed):
        super().__init__(fresh() | changed)
        self.used, self.records = set(), {}

    def __getitem__(self, name):
        self.used.add(name)
        return super().__getitem__(name)

    def record(self, kind, *names):
        if (kind, names) not in self.records:
            given = [each if not isinstance(each, str) else self[each] for each in names]
            self.records[kind, names] = kind(*given)
        return self.records[kind, names]

    @property
    def matrix(self):
        return self.record(_core.Matrix, "indptr", "indices")

    @property
    def systems(self):
        weights = "row_weight", "col_weight", "gram_weight", "ridge"
        return self.record(_core.Rows, self.matrix, *weights)

    @property
    def fixed(self):
        return self.record(_core.Fixed, "y", "values", "basis")

    @property
    def report(self):
        return self.record(_core.Report, "change", "norm")

    @property
    def catalogue(self):
        return self.record(_core.Catalogue, "items", RUN)


def solve(a, solver):
    _core.solve_rows(a.systems, a.fixed, a["x"], a.report, solver, 3, 1e-4, RUN)


def losses(a, fixed):
    _core.losses(a.matrix, a["row_weight"], a["ridge"], fixed, a["x"], a["losses"], RUN)


# By name: the call, and its outputs.
REPORT = ["change", "norm"]
CALLS = {
    "spectral-cg": (lambda a: solve(a, "spectral-cg"), ["x", *REPORT]),
    "exact": (lambda a: solve(a, "exact"), ["x", *REPORT]),
    "gradients": (lambda a: _core.gradients(a.systems, a.fixed, a["x"], a["out"], RUN), ["out"]),
    "losses": (lambda a: losses(a, a.fixed), ["losses"]),
    "losses of words": (
        lambda a: losses(a, a.record(_core.Fixed, "words", "values", "basis")),
        ["losses"],
    ),
    "update_block": (
        lambda a: _core.update_block(
            a.systems, a.fixed, a["gram"], 0, a["x"], a.report, a["scores"], a["positions"], RUN
        ),
        ["x", "scores", *REPORT],
    ),
    "scores": (lambda a: _core.scores(a.matrix, a["wide"], a["y"], a["scores"], RUN), ["scores"]),
    "scored_losses": (
        lambda a: _core.scored_losses(
            a.matrix,
            a["row_weight"],
            a["ridge"],
            a["scores"],
            a["wide"],
            a["gram"],
            a["losses"],
            RUN,
        ),
        ["losses"],
    ),
    "gram": (lambda a: _core.gram(a["x"], a["row_weight"], a["gram"], RUN), ["gram"]),
    "gram_block": (lambda a: _core.gram_block(a["x"], a["ridge"], 2, a["block"], RUN), ["block"]),
    "rotate": (lambda a: _core.rotate(a["x"], 0, a["basis"], a["wide"], RUN), ["wide"]),
    "eigen": (
        lambda a: _core.eigen(a["square"], a["eigenvalues"], a["vectors"], RUN),
        ["eigenvalues", "vectors"],
    ),
    "to_bfloat16": (lambda a: _core.to_bfloat16(a["x"], a["out_words"], RUN), ["out_words"]),
    "transpose": (
        lambda a: _core.transpose(
            a.record(_core.Matrix, "indptr", "indices", "scores"), a["down"], a["rows"], a["moved"]
        ),
        ["down", "rows", "moved"],
    ),
    "positions": (lambda a: _core.positions(a.matrix, OTHERS, a["positions"]), ["positions"]),
    "search": (
        lambda a: a.catalogue.search(a["x"], a.matrix, a["everywhere"], a["ids"], a["found"], RUN),
        ["ids", "found"],
    ),
    "ranks": (
        lambda a: a.catalogue.ranks(a["x"], a.matrix, None, a["everywhere"], a["ranks"], RUN),
        ["ranks"],
    ),
    "loss_summary": (lambda a: _core.loss_summary(a["doubles"], a["counts"], RUN), []),
    "quantile_sums": (
        lambda a: _core.quantile_sums(a["doubles"], a["counts"], "uniform", 1.0, 0.3, 0.5, RUN),
        [],
    ),
    "kernel_weights": (
        lambda a: _core.kernel_weights(a["doubles"], "gaussian", 1.0, 0.0, a["weights"], RUN),
        ["weights"],
    ),
}
# Those that read indices and offsets.
OF_COLUMNS = [*list(CALLS)[:7], "transpose", "positions", "search", "ranks"]
every_call = pytest.mark.parametrize("name", CALLS)
every_call_of_columns = pytest.mark.parametrize("name", OF_COLUMNS)
# Sizes that the caller chooses: (call, array, axis).
FREE = {
    *[(name, "y", 0) for name in ("losses", "scores")],
    ("losses of words", "words", 0),
    ("gram_block", "block", 1),
    ("rotate", "x", 1),
    ("rotate", "wide", 1),
    ("to_bfloat16", "x", 1),
    ("transpose", "down", 0),
    *[(name, array, 0) for name in ("search", "ranks") for array in ("items", "everywhere")],
}


def used_by(name):
    arrays = Arrays()
    CALLS[name][0](arrays)
    return sorted(arrays.used)


@every_call
def test_arrays_that_do_not_fit_are_refused(name):
    for array in used_by(name):
        was = fresh()[array]
        for axis in range(was.ndim):
            for more in (-1, 1):
                shape = [size + more * (axis == at) for at, size in enumerate(was.shape)]
                wrong = Arrays(**{array: np.resize(was, shape)})
                if (name, array, axis) in FREE:
                    with suppress(ValueError):
                        CALLS[name][0](wrong)
                    continue
                with pytest.raises(ValueError, match=r"^[^\n]{10,300}$"):
                    CALLS[name][0](wrong)


@every_call
def test_outputs_are_never_written_into_a_copy(name):
    """An output of another type or order is refused; a silent conversion would lose the result."""
    call, outputs = CALLS[name]
    for output in outputs:
        right = fresh()[output]
        other = np.float64 if right.dtype == np.float32 else np.float32
        spread = np.repeat(right, 2, axis=-1)[..., ::2]
        frozen = right.copy()
        frozen.flags.writeable = False
        for wrong in (right.astype(other), spread, frozen, right[None], right.tolist()):
            with pytest.raises(TypeError, match="incompatible function arguments"):
                call(Arrays(**{output: wrong}))


@every_call
def test_an_output_that_overlaps_another_array_is_refused(name):
    call, outputs = CALLS[name]
    for output in outputs:
        for other in used_by(name):
            if other in {output, "items"}:  # of the items, a catalogue may have copies
                continue
            first, second = fresh()[output], fresh()[other]
            memory = np.zeros(first.nbytes + second.nbytes, np.uint8)
            shared = memory[first.nbytes - 8 :][: second.nbytes].view(second.dtype)
            shared = shared.reshape(second.shape)
            shared[:] = second
            both = {output: memory[: first.nbytes].view(first.dtype).reshape(first.shape)}
            with pytest.raises(ValueError, match="overlap"):
                call(Arrays(**both, **{other: shared}))


def test_arrays_that_are_not_aligned_are_refused():
    shifted = np.zeros(4 * ROWS * FACTORS + 1, np.uint8)[1:].view(np.float32)
    with pytest.raises(ValueError, match="not aligned"):
        CALLS["gram"][0](Arrays(x=shifted.reshape(ROWS, FACTORS)))


@every_call_of_columns
def test_a_column_that_was_changed_is_refused(name):
    for place in (0, 4):
        for column in HOSTILE:
            arrays = Arrays()
            CALLS[name][0](arrays)
            arrays["indices"][place] = column
            with pytest.raises(ValueError, match=CHANGED) as error:
                CALLS[name][0](arrays)
            assert str(column) in str(error.value) or column < 0


@pytest.mark.parametrize("name", [*OF_COLUMNS, "scored_losses"])
def test_an_offset_that_was_changed_is_refused(name):
    for row in (0, 3, ROWS):
        for offset in (2**62, -1, -(2**63), 2**63 - 1, ENTRIES + 1):
            arrays = Arrays()
            CALLS[name][0](arrays)
            arrays["indptr"][row] = offset
            with pytest.raises(ValueError, match=CHANGED):
                CALLS[name][0](arrays)


@pytest.mark.parametrize("name", ["transpose", "positions"])
def test_rows_that_overlap_are_refused(name):
    arrays = Arrays()
    CALLS[name][0](arrays)
    arrays["indptr"][1:4] = 7, 7, 5
    with pytest.raises(ValueError, match=CHANGED):
        CALLS[name][0](arrays)


@pytest.mark.parametrize("position", [ENTRIES, 2**32 - 1])
def test_a_position_that_was_changed_is_refused(position):
    arrays = Arrays()
    arrays["positions"][11] = position
    with pytest.raises(ValueError, match=f"not among the {ENTRIES} scores"):
        CALLS["update_block"][0](arrays)


@pytest.mark.parametrize("name", ["search", "ranks"])
def test_columns_excluded_everywhere_are_checked(name):
    for column in HOSTILE:
        with pytest.raises(ValueError, match=CHANGED):
            CALLS[name][0](Arrays(everywhere=np.array([2, column], dtype=np.int32)))


@pytest.mark.parametrize("name", ["search", "ranks"])
def test_columns_that_do_not_ascend_are_never_missed(name):
    """In one tile the order does not matter to excluded columns; over several it does."""
    arrays = Arrays(items=ones(3000, FACTORS))
    arrays["indices"][:5] = [2999, 5, 1030, 0, 2]
    with pytest.raises(ValueError, match=CHANGED):
        CALLS[name][0](arrays)


@pytest.mark.parametrize("name", ["exact", "losses", *OF_COLUMNS[5:]])
def test_arrays_may_change_during_the_call(name):
    """Each call ends with a result or an error while another thread overwrites its arrays."""
    arrays, stop = Arrays(), threading.Event()
    CALLS[name][0](arrays)
    indices, indptr, positions = (arrays[each] for each in ("indices", "indptr", "positions"))

    def scribble():
        rng = np.random.default_rng(0)
        while not stop.is_set():
            for _ in range(100):
                indices[rng.integers(ENTRIES)] = rng.choice([0, 7, OTHERS - 1, *HOSTILE])
                indptr[rng.integers(ROWS + 1)] = rng.choice([0, 5, ENTRIES, 2**62, -1])
                positions[rng.integers(ENTRIES)] = rng.integers(2**32)
            indices[:], indptr[:] = 3, np.arange(ROWS + 1) * 5

    def outcome():
        try:
            CALLS[name][0](arrays)
        except ValueError as error:
            return str(error)
        return "done"

    thread = threading.Thread(target=scribble)
    thread.start()
    try:
        outcomes = {outcome() for _ in range(300)}
    finally:
        stop.set()
        thread.join()
    known = CHANGED, "done", "indptr", "not among"
    assert all(any(part in each for part in known) for each in outcomes)


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
        _core.Matrix(np.array(indptr, dtype=np.int64), np.zeros(3, np.int32))


def test_sizes_of_zero_are_refused_or_give_nothing():
    none = "there are no factors"
    for call in (
        lambda: _core.gram(ones(3, 0), None, ones(0, 0), RUN),
        lambda: _core.Fixed(ones(3, 0), ones(0)),
        lambda: _core.Catalogue(ones(3, 0), RUN),
        lambda: _core.to_bfloat16(ones(3, 0), ones(3, 0, dtype=np.uint32), RUN),
    ):
        with pytest.raises(ValueError, match=none):
            call()
    with pytest.raises(ValueError, match="not factors x block"):
        _core.gram_block(ones(3, 2), None, 0, ones(2, 0), RUN)
    with pytest.raises(ValueError, match="factors are too many"):
        _core.to_bfloat16(ones(0, 2**40), ones(0, 2**39, dtype=np.uint32), RUN)
    with pytest.raises(ValueError, match="k is less than 1"):
        CALLS["search"][0](Arrays(ids=np.zeros((ROWS, 0), np.int32), found=ones(ROWS, 0)))
    for name in ("loss_summary", "quantile_sums"):
        with pytest.raises(ValueError, match="there are no losses"):
            CALLS[name][0](Arrays(doubles=np.empty(0), counts=np.empty(0)))
    catalogue = _core.Catalogue(ones(100, FACTORS), RUN)
    for queries in (0, 50, 0):  # the packed copy is made by the second one
        ids, scores = np.zeros((queries, 2), np.int32), ones(queries, 2)
        catalogue.search(ones(queries, FACTORS), None, None, ids, scores, RUN)
    empty = _core.Matrix(np.zeros(1, np.int64), np.zeros(0, np.int32))
    catalogue.ranks(ones(0, FACTORS), empty, None, None, np.zeros(0, np.int32), RUN)
    ids, scores = np.zeros((2, 1000), np.int32), ones(2, 1000)
    for items, expected in ((0, [-1] * 4), (3, [0, 1, 2, -1])):
        for _ in range(3):
            few = _core.Catalogue(ones(items, FACTORS), RUN)
            few.search(ones(2, FACTORS), None, None, ids, scores, RUN)
            assert ids[:, :4].tolist() == [expected] * 2
            assert (ids[:, 3:] == -1).all()


def test_parameters_out_of_range_are_refused():
    a = Arrays()
    with pytest.raises(ValueError, match="number of threads is negative"):
        _core.Execution(-1)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _core.Execution(2**40)
    with pytest.raises(ValueError, match="no kernels 'mmx'; it has 'auto', '"):
        _core.Execution(isa="mmx")
    with pytest.raises(ValueError, match="there is no row solver 'lu'"):
        solve(a, "lu")
    for iterations, tolerance in ((-1, 0.1), (3, -0.1), (3, np.nan)):
        with pytest.raises(ValueError, match="max_iterations or tolerance is negative"):
            _core.solve_rows(a.systems, a.fixed, a["x"], a.report, "cg", iterations, tolerance, RUN)
    for columns in (-1, 2**40, 2**63 - 1):
        with pytest.raises(ValueError, match="num_columns is negative or more than"):
            _core.positions(a.matrix, columns, a["positions"])
    for first in (-1, FACTORS - 6, 2**63 - 1):
        with pytest.raises(ValueError, match="block is not among"):
            _core.gram_block(a["x"], None, first, a["block"], RUN)
    for first in (-1, 1, 2**63 - 1):
        with pytest.raises(ValueError, match="block is not among"):
            _core.rotate(a["x"], first, a["basis"], a["wide"], RUN)
    for bandwidth in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="bandwidth is not positive and finite"):
            _core.quantile_sums(a["doubles"], None, "uniform", bandwidth, 0.1, 0.0, RUN)
    with pytest.raises(ValueError, match="no native kernel 'cosine'; there are 'gaussian'"):
        _core.quantile_sums(a["doubles"], None, "cosine", 1.0, 0.3, 0.0, RUN)


def test_a_fixed_side_of_another_type_is_refused():
    with pytest.raises(TypeError, match="neither float32 nor uint32"):
        _core.Fixed(ones(OTHERS, WIDTH, dtype=np.float64), ones(FACTORS))
    a = Arrays()
    words = a.record(_core.Fixed, "words", "values", "basis")
    with pytest.raises(ValueError, match="solver needs rotated in float32"):
        _core.solve_rows(a.systems, words, a["x"], a.report, "exact", 0, 0.0, RUN)


def test_records_keep_their_arrays_alive():
    arrays = Arrays()
    systems, fixed, report, catalogue = (
        arrays.systems,
        arrays.fixed,
        arrays.report,
        arrays.catalogue,
    )
    del arrays
    np.full(10_000, -1.0)
    x = ones(ROWS, FACTORS)
    assert _core.solve_rows(systems, fixed, x, report, "exact", 0, 0.0, RUN) == -1
    assert np.isfinite(x).all()
    ids, scores = np.zeros((1, 1), np.int32), ones(1, 1)
    catalogue.search(ones(1, FACTORS), None, None, ids, scores, RUN)
    assert scores == FACTORS


def test_an_index_is_searched_with_the_kernels_it_was_made_with():
    best, *others = _core.isas()
    for other in others:
        with pytest.raises(ValueError, match=f"made with the kernels '{best}'"):
            Arrays().catalogue.search(
                ones(1, FACTORS),
                None,
                None,
                np.zeros((1, 1), np.int32),
                ones(1, 1),
                _core.Execution(1, other),
            )


def test_the_stub_is_that_of_the_built_core():
    """`python -m nanobind.stubgen -m safecf._core -o src/safecf/_core.pyi` brings it up to date."""
    generator = StubGen(module=_core, quiet=True)
    generator.put(_core)
    committed = Path(safecf.__file__).with_name("_core.pyi").read_text()
    assert generator.get() == committed
