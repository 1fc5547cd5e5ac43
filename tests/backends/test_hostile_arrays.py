"""Arrays that lie to the native core: refused, whatever they hold and whenever they change."""

import threading

import numpy as np
import pytest

from safecf import _core

ROWS, OTHERS, FACTORS = 40, 30, 20
WIDTH = 32
HOSTILE = [OTHERS, -1, 2**31 - 1, -(2**31)]
CHANGED = "changed after it was checked, or is damaged"


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype=dtype)


class Problem:
    """Arrays that fit each other, and every native call that takes indices."""

    def __init__(self, threads=2):
        self.execution = _core.Execution(threads)
        self.indptr = np.arange(ROWS + 1, dtype=np.int64) * 5
        self.indices = np.tile(np.arange(5, dtype=np.int32) * 6, ROWS)
        self.positions = np.arange(self.indices.size, dtype=np.uint32)
        self.matrix = _core.Matrix(self.indptr, self.indices)
        weights = ones(ROWS), ones(OTHERS), ones(ROWS), ones(ROWS)
        self.rows = _core.Rows(self.matrix, *weights)
        self.fixed = _core.Fixed(ones(OTHERS, WIDTH), ones(FACTORS), np.eye(FACTORS, dtype="f4"))
        words = ones(OTHERS, 16, dtype=np.uint32)
        self.words = _core.Fixed(words, ones(FACTORS), np.eye(FACTORS, dtype="f4"))
        self.catalogue = _core.Catalogue(ones(OTHERS, FACTORS), self.execution)

    def solve_rows(self, solver="spectral-cg"):
        report = _core.Report(ones(ROWS), ones(ROWS))
        options = solver, 3, 1e-4, self.execution
        _core.solve_rows(self.rows, self.fixed, ones(ROWS, FACTORS), report, *options)

    def exact(self):
        self.solve_rows("exact")

    def gradients(self):
        both = ones(ROWS, FACTORS), ones(ROWS, FACTORS)
        _core.gradients(self.rows, self.fixed, *both, self.execution)

    def losses(self):
        arrays = ones(ROWS), None, self.fixed, ones(ROWS, FACTORS), ones(ROWS)
        _core.losses(self.matrix, *arrays, self.execution)

    def losses_of_words(self):
        arrays = ones(ROWS), None, self.words, ones(ROWS, FACTORS), ones(ROWS)
        _core.losses(self.matrix, *arrays, self.execution)

    def update_block(self):
        report = _core.Report(ones(ROWS), ones(ROWS))
        arrays = ones(ROWS, FACTORS), report, ones(self.indices.size), self.positions
        gram = ones(FACTORS, FACTORS)
        _core.update_block(self.rows, self.fixed, gram, 0, *arrays, self.execution)

    def scores(self):
        sides = ones(ROWS, WIDTH), ones(OTHERS, WIDTH)
        _core.scores(self.matrix, *sides, ones(self.indices.size), self.execution)

    def scored_losses(self):
        arrays = ones(self.indices.size), ones(ROWS, WIDTH), ones(FACTORS, FACTORS), ones(ROWS)
        _core.scored_losses(self.matrix, ones(ROWS), None, *arrays, self.execution)

    def transpose(self):
        indptr, indices = np.zeros(OTHERS + 1, np.int64), np.zeros_like(self.indices)
        _core.transpose(self.matrix, indptr, indices, None)

    def find_positions(self):
        _core.positions(self.matrix, OTHERS, np.zeros(self.indices.size, np.uint32))

    def search(self, queries=ROWS):
        exclude = (
            self.matrix if queries == ROWS else _core.Matrix(self.indptr[:2], self.indices[:5])
        )
        ids, scores = np.zeros((queries, 3), np.int32), ones(queries, 3)
        asked = ones(queries, FACTORS)
        self.catalogue.search(asked, exclude, None, ids, scores, self.execution)
        assert set(ids.ravel()) <= set(range(-1, OTHERS))

    def search_for_one(self):
        self.search(1)

    def ranks(self):
        found = np.zeros(self.indices.size, np.int32)
        queries = ones(ROWS, FACTORS)
        self.catalogue.ranks(queries, self.matrix, None, None, found, self.execution)

    def ranks_without(self):
        targets = _core.Matrix(np.zeros(ROWS + 1, np.int64), np.zeros(0, np.int32))
        found = np.zeros(0, np.int32)
        queries = ones(ROWS, FACTORS)
        self.catalogue.ranks(queries, targets, self.matrix, None, found, self.execution)


OF_OFFSETS = [
    "solve_rows",
    "exact",
    "gradients",
    "losses",
    "losses_of_words",
    "update_block",
    "scores",
    "scored_losses",
    "transpose",
    "find_positions",
    "search",
    "ranks",
    "ranks_without",
]
OF_COLUMNS = [name for name in OF_OFFSETS if name != "scored_losses"] + ["search_for_one"]


@pytest.mark.parametrize("index", HOSTILE)
@pytest.mark.parametrize("name", OF_COLUMNS)
def test_a_column_that_was_changed_is_refused(name, index):
    for place in (0, 4):
        problem = Problem()
        getattr(problem, name)()
        problem.indices[place] = index
        with pytest.raises(ValueError, match=CHANGED):
            getattr(problem, name)()


def test_the_message_names_the_column_and_the_other_side():
    problem = Problem()
    problem.indices[7] = 2**31 - 1
    message = f"the matrix has column 2147483647, where the fixed side has {OTHERS} rows; it was"
    with pytest.raises(ValueError, match=message):
        problem.losses()


@pytest.mark.parametrize("offset", [2**62, -1, -(2**63), 2**63 - 1, ROWS * 5 + 1])
@pytest.mark.parametrize("name", OF_OFFSETS)
def test_an_offset_that_was_changed_is_refused(name, offset):
    for row in (0, 3, ROWS):
        problem = Problem()
        problem.indptr[row] = offset
        with pytest.raises(ValueError, match=CHANGED):
            getattr(problem, name)()


@pytest.mark.parametrize("position", [ROWS * 5, 2**32 - 1])
def test_a_position_that_was_changed_is_refused(position):
    problem = Problem()
    problem.positions[11] = position
    with pytest.raises(ValueError, match=f"not among the {ROWS * 5} scores"):
        problem.update_block()


@pytest.mark.parametrize("name", ["transpose", "find_positions"])
def test_rows_that_overlap_are_refused(name):
    problem = Problem()
    problem.indptr[1] = 7
    problem.indptr[2] = 7
    problem.indptr[3] = 5
    with pytest.raises(ValueError, match=CHANGED):
        getattr(problem, name)()


@pytest.mark.parametrize("name", ["search", "ranks", "ranks_without"])
def test_columns_that_do_not_ascend_are_never_missed(name):
    """In one tile the order does not matter to excluded columns; over several it does."""
    problem = Problem()
    problem.catalogue = _core.Catalogue(ones(3000, FACTORS), problem.execution)
    problem.indices[:5] = [2999, 5, 1030, 0, 2]
    if name == "search":
        ids, scores = np.zeros((ROWS, 3), np.int32), ones(ROWS, 3)
        call = problem.catalogue.search
        arguments = ones(ROWS, FACTORS), problem.matrix, None, ids, scores, problem.execution
    else:
        call, arguments = getattr(problem, name), ()
    with pytest.raises(ValueError, match=CHANGED):
        call(*arguments)


@pytest.mark.parametrize("index", HOSTILE)
def test_columns_excluded_everywhere_are_checked(index):
    problem = Problem()
    ids, scores = np.zeros((ROWS, 3), np.int32), ones(ROWS, 3)
    excluded = np.array([2, index], dtype=np.int32)
    with pytest.raises(ValueError, match=CHANGED):
        problem.catalogue.search(
            ones(ROWS, FACTORS), None, excluded, ids, scores, problem.execution
        )


@pytest.mark.parametrize("name", OF_COLUMNS)
def test_arrays_may_change_during_the_call(name):
    """Each call ends with a result or an error while another thread overwrites its arrays."""
    problem, stop = Problem(), threading.Event()
    values = [0, 7, OTHERS - 1, *HOSTILE]
    offsets = [0, 5, ROWS * 5, 2**62, -1]

    def scribble():
        rng = np.random.default_rng(0)
        while not stop.is_set():
            for _ in range(100):
                problem.indices[rng.integers(problem.indices.size)] = rng.choice(values)
                problem.indptr[rng.integers(ROWS + 1)] = rng.choice(offsets)
                problem.positions[rng.integers(problem.positions.size)] = rng.integers(2**32)
            problem.indices[:] = 3
            problem.indptr[:] = np.arange(ROWS + 1) * 5

    def call():
        try:
            getattr(problem, name)()
        except ValueError as error:
            return str(error)
        return "done"

    thread = threading.Thread(target=scribble)
    thread.start()
    try:
        outcomes = {call() for _ in range(300)}
    finally:
        stop.set()
        thread.join()
    known = CHANGED, "done", "indptr", "not among"
    assert all(any(part in outcome for part in known) for outcome in outcomes)


def test_sizes_of_zero_are_refused_or_give_nothing():
    run = _core.Execution(1)
    with pytest.raises(ValueError, match="there are no factors"):
        _core.gram(ones(3, 0), None, ones(0, 0), run)
    with pytest.raises(ValueError, match="not factors x block"):
        _core.gram_block(ones(3, 2), None, 0, ones(2, 0), run)
    with pytest.raises(ValueError, match="there are no factors"):
        _core.Fixed(ones(3, 0), ones(0))
    with pytest.raises(ValueError, match="there are no factors"):
        _core.Catalogue(ones(3, 0), run)
    with pytest.raises(ValueError, match="there are no factors"):
        _core.to_bfloat16(ones(3, 0), ones(3, 0, dtype=np.uint32), run)
    with pytest.raises(ValueError, match="factors are too many"):
        _core.to_bfloat16(ones(0, 2**40), ones(0, 2**39, dtype=np.uint32), run)
    catalogue = _core.Catalogue(ones(100, FACTORS), run)
    none = _core.Matrix(np.zeros(1, np.int64), np.zeros(0, np.int32))
    for queries in (0, 50, 0):  # the packed copy is made by the second one
        ids, scores = np.zeros((queries, 2), np.int32), ones(queries, 2)
        catalogue.search(ones(queries, FACTORS), None, None, ids, scores, run)
    catalogue.ranks(ones(0, FACTORS), none, None, None, np.zeros(0, np.int32), run)
    empty = _core.Catalogue(ones(0, FACTORS), run)
    for _ in range(3):
        ids, scores = np.zeros((1, 2), np.int32), ones(1, 2)
        empty.search(ones(1, FACTORS), None, None, ids, scores, run)
        assert (ids == -1).all()


def test_more_than_the_catalogue_may_be_wanted():
    run = _core.Execution(1)
    catalogue = _core.Catalogue(ones(3, FACTORS), run)
    ids, scores = np.zeros((2, 1000), np.int32), ones(2, 1000)
    catalogue.search(ones(2, FACTORS), None, None, ids, scores, run)
    np.testing.assert_array_equal(ids[:, :4], [[0, 1, 2, -1]] * 2)
    assert (ids[:, 3:] == -1).all()


def test_parameters_out_of_range_are_refused():
    problem = Problem()
    with pytest.raises(ValueError, match="number of threads is negative"):
        _core.Execution(-1)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _core.Execution(2**40)
    for iterations, tolerance in ((-1, 0.1), (3, -0.1), (3, np.nan)):
        report = _core.Report(ones(ROWS), ones(ROWS))
        factors, options = ones(ROWS, FACTORS), ("cg", iterations, tolerance, problem.execution)
        with pytest.raises(ValueError, match="max_iterations or tolerance is negative"):
            _core.solve_rows(problem.rows, problem.fixed, factors, report, *options)
    for columns in (-1, 2**40, 2**63 - 1):
        with pytest.raises(ValueError, match="num_columns is negative or more than"):
            _core.positions(problem.matrix, columns, np.zeros(ROWS * 5, np.uint32))
    for first in (-1, 2, 2**63 - 1):
        with pytest.raises(ValueError, match="block is not among"):
            _core.gram_block(ones(3, 2), None, first, ones(2, 1), problem.execution)
        with pytest.raises(ValueError, match="block is not among"):
            _core.rotate(ones(3, 2), first, ones(1, 1), ones(3, 16), problem.execution)
    for bandwidth in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="bandwidth is not positive"):
            _core.quantile_sums(np.ones(3), None, "uniform", bandwidth, 0.1, 0.0, problem.execution)


def test_an_output_that_overlaps_another_array_is_refused():
    problem, run = Problem(), _core.Execution(1)
    losses = ones(ROWS)
    arrays = losses, None, problem.fixed, ones(ROWS, FACTORS), losses
    square, rows, doubles = ones(FACTORS, FACTORS), ones(ROWS, FACTORS), np.ones(3)
    change = ones(ROWS)
    same = _core.Report(change, change)
    calls = [
        lambda: _core.losses(problem.matrix, *arrays, run),
        lambda: _core.gram(square, None, square, run),
        lambda: _core.positions(problem.matrix, OTHERS, problem.indices.view(np.uint32)),
        lambda: _core.kernel_weights(doubles, "uniform", 1.0, 0.0, doubles, run),
        lambda: _core.solve_rows(
            problem.rows, problem.fixed, ones(ROWS, FACTORS), same, "cg", 1, 0.1, run
        ),
        lambda: problem.catalogue.ranks(
            ones(ROWS, FACTORS), problem.matrix, None, None, problem.indices, problem.execution
        ),
        lambda: _core.rotate(rows[:-1], 0, square, rows[1:], run),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="an output overlaps another array"):
            call()


def test_arrays_that_are_not_aligned_are_refused():
    bytes_ = np.zeros(4 * 6 + 1, np.uint8)[1:]
    with pytest.raises(ValueError, match="not aligned"):
        _core.gram(bytes_.view(np.float32).reshape(3, 2), None, ones(2, 2), _core.Execution(1))
