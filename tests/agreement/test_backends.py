"""Fast and slow twins agree: every native verb against the float64 backend, all combinations."""

import functools

import numpy as np
import pytest

from safecf import _core
from safecf.als.rows import Rows
from safecf.als.solvers import CG, Exact, SpectralCG
from safecf.backends import CpuBackend, NumpyBackend
from safecf.backends.cpu import Sketch
from tests.problems import LOSSES, matrix_of, problem_of

# around the widths of vectors, groups, tiles and chunks, and both sides of the primal-dual switch
LENGTHS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 48, 49, 127, 128, 129, 255, 257, 400]
FACTORS = [1, 3, 8, 15, 16, 17, 32, 33, 64, 100, 129, 300]
# the iterative ones are ended by the number of iterations: the same iterates, step by step
SOLVERS = [Exact(), CG(4, 1e-6), SpectralCG(1e-6, 3)]
# float32 against float64: plain CG amplifies rounding in rows of tiny weight
CLOSE = {"exact": 2e-5, "cg": 1e-3, "spectral-cg": 1e-4}
TWIN = NumpyBackend()


@pytest.fixture(params=_core.isas())
def native(request):
    return CpuBackend(num_threads=2, isa=request.param)


def weights_of(risk, count, rng):
    """Weights as a risk leaves them: all the same, or spread from 0 to 1 with exact zeros."""
    if risk == "mean":
        return np.full(count, 0.3)
    return np.clip(rng.normal(0.3, 0.4, count), 0, 1)


def half_steps(loss, risk, factors, weighted, rng):
    """Yield (rows, fixed factors, gram, own factors) for the users' and the items' half-step."""
    users = matrix_of(LENGTHS, 420, rng, weighted=weighted)
    problem = problem_of(users, LOSSES[loss](0.02))
    weights = weights_of(risk, users.num_rows, rng)
    x = rng.normal(0, 1 / np.sqrt(factors), (users.num_rows, factors))
    y = rng.normal(0, 1 / np.sqrt(factors), (users.num_columns, factors))
    yield problem.user_rows(weights), y, 0.02 * TWIN.gram(y), x
    yield problem.item_rows(weights), x, 0.02 * TWIN.gram(x, weights), y


def floats(values):
    return values.astype(np.float32)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("factors", [16, 33])
@pytest.mark.parametrize("risk", ["mean", "cvar"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_solvers_agree(native, solver, loss, risk, factors, weighted):
    rng = np.random.default_rng(factors)
    for rows, fixed, gram, start in half_steps(loss, risk, factors, weighted, rng):
        expected, actual = start.copy(), floats(start)
        wanted = TWIN.solve_rows(rows, TWIN.prepare(fixed, gram), expected, solver)
        prepared = native.prepare(floats(fixed), floats(gram))
        solved = native.solve_rows(rows, prepared, actual, solver)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(actual, expected, rtol=0, atol=CLOSE[solver.name] * scale)
        np.testing.assert_allclose(solved.change, wanted.change, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(solved.norm, wanted.norm, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("solver", [CG(500, 1e-4), SpectralCG(1e-3), SpectralCG(1e-5)], ids=str)
@pytest.mark.parametrize("risk", ["mean", "cvar"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_tolerance_bounds_the_residual(native, solver, loss, risk):
    rng = np.random.default_rng(3)
    for rows, fixed, gram, start in half_steps(loss, risk, 33, True, rng):
        factors = floats(start)
        prepared = native.prepare(floats(fixed), floats(gram))
        native.solve_rows(rows, prepared, factors, solver)
        for row, x in enumerate(factors.astype(np.float64)):
            columns, confidence = rows.matrix.row(row)
            pairs = rows.row_weight[row] * rows.col_weight[columns] * confidence
            y = fixed[columns]
            shared = rows.gram_weight[row] * (gram @ x) + rows.ridge[row] * x
            residual = y.T @ pairs - shared - y.T @ (pairs * (y @ x))
            limit = 1.01 * solver.tolerance + 1e-5
            assert np.linalg.norm(residual) <= limit * np.linalg.norm(y.T @ pairs)


@functools.cache
def exact_half_steps(factors):
    """The half-steps of one width with the twin's exact solutions, which take a while."""
    rng = np.random.default_rng(factors)
    found = []
    for rows, fixed, gram, start in half_steps("normalised", "cvar", factors, False, rng):
        expected = start.copy()
        TWIN.solve_rows(rows, TWIN.prepare(fixed, gram), expected, Exact())
        found.append((rows, fixed, gram, start, expected))
    return found


@pytest.mark.parametrize("factors", FACTORS)
@pytest.mark.parametrize("solver", [Exact(), SpectralCG(1e-6, 500)], ids=str)
def test_every_width_of_factors(native, solver, factors):
    for rows, fixed, gram, start, expected in exact_half_steps(factors):
        actual = floats(start)
        prepared = native.prepare(floats(fixed), floats(gram))
        native.solve_rows(rows, prepared, actual, solver)
        np.testing.assert_allclose(actual, expected, atol=2e-5 * np.abs(expected).max(), rtol=0)


@pytest.mark.parametrize("factors", FACTORS)
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_agree(native, factors, weighted):
    rng = np.random.default_rng(factors)
    users = matrix_of(LENGTHS, 420, rng, weighted=weighted)
    x, y = rng.normal(size=(users.num_rows, factors)), rng.normal(size=(420, factors))
    x, y = x / factors, y / factors
    pair_weight, gram = rng.uniform(0.1, 1, users.num_rows), 0.1 * TWIN.gram(y)
    expected = TWIN.losses(users, pair_weight, x, TWIN.prepare(y, gram))
    prepared = native.prepare(floats(y), floats(gram))
    actual = native.losses(users, pair_weight, floats(x), prepared)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("factors", FACTORS)
@pytest.mark.parametrize("count", [1, 2, 11, 12, 13, 255, 256, 257, 2049, 3001, 5003])
def test_gramians_agree(native, factors, count):
    rng = np.random.default_rng(count)
    rows, weight = rng.normal(size=(count, factors)), rng.uniform(0, 1, count)
    for w in (None, weight):
        expected, actual = TWIN.gram(floats(rows), w), native.gram(floats(rows), w)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
        np.testing.assert_array_equal(actual, actual.T)


@pytest.mark.parametrize("num_items", [1, 31, 32, 33, 1023, 1025, 3000])
@pytest.mark.parametrize("k", [1, 10, 40])
@pytest.mark.parametrize("count", [1, 3, 100])
def test_topk_agrees_on_whole_numbers(native, num_items, k, count):
    """Small integers are exact in float32, and full of ties."""
    rng = np.random.default_rng(num_items)
    queries = rng.integers(-2, 3, (count, 21)).astype(np.float32)
    items = rng.integers(-2, 3, (num_items, 21)).astype(np.float32)
    seen = matrix_of(rng.integers(0, min(num_items, 30) + 1, count), num_items, rng)
    banned = rng.choice(num_items, min(num_items, 5), replace=False)
    options = [{}, {"exclude": seen}, {"exclude_all": banned}]
    for option in (*options, {"exclude": seen, "exclude_all": banned}):
        expected = TWIN.topk(queries, items, k, **option)
        actual = native.topk(queries, items, k, **option)
        np.testing.assert_array_equal(actual[0], expected[0])
        np.testing.assert_array_equal(actual[1], expected[1])


@pytest.mark.parametrize("count", [2, 97])
@pytest.mark.parametrize("factors", [1, 17, 32, 300])
def test_topk_scores_agree(native, factors, count):
    rng = np.random.default_rng(factors)
    queries = floats(rng.normal(size=(count, factors)))
    items = floats(rng.normal(size=(701, factors)))
    ids, scores = native.topk(queries, items, 20)
    wanted = queries.astype(np.float64) @ items.T.astype(np.float64)
    np.testing.assert_allclose(scores, np.take_along_axis(wanted, ids, axis=1), atol=1e-4)
    np.testing.assert_allclose(scores, -np.sort(-wanted, axis=1)[:, :20], atol=1e-4)


def test_a_very_long_row_keeps_its_accuracy(native):
    rng = np.random.default_rng(0)
    count, factors = 60_000, 16
    rows = Rows(
        matrix_of([count], count, rng),
        row_weight=np.array([1.0]),
        col_weight=rng.uniform(0, 1, count),
        gram_weight=np.array([1.0]),
        ridge=np.array([1.0]),
    )
    y = rng.normal(0.1, 0.3, (count, factors))
    gram, expected = 0.01 * TWIN.gram(y), np.zeros((1, factors))
    TWIN.solve_rows(rows, TWIN.prepare(y, gram), expected, Exact())
    for solver in (Exact(), SpectralCG(1e-6)):
        actual = np.zeros((1, factors), dtype=np.float32)
        prepared = native.prepare(floats(y), floats(gram))
        native.solve_rows(rows, prepared, actual, solver)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_the_number_of_threads_changes_no_bit(solver):
    rng = np.random.default_rng(1)
    results = []
    for threads in (1, 2, 3, 7):
        backend = CpuBackend(threads)
        rng = np.random.default_rng(1)
        users = matrix_of(rng.integers(0, 60, 3000), 200, rng)
        problem = problem_of(users, LOSSES["normalised"](0.02))
        x, y = floats(rng.normal(0, 0.1, (3000, 24))), floats(rng.normal(0, 0.1, (200, 24)))
        weights = rng.uniform(0, 1, 3000)
        gram = backend.gram(x, weights)
        prepared = backend.prepare(x, gram)
        solved = backend.solve_rows(problem.item_rows(weights), prepared, y, solver)
        losses = backend.losses(users.transpose(), np.ones(200), y, prepared)
        ids, scores = backend.topk(x, y, 10)
        results.append([gram, y, solved.change, solved.norm, losses, ids, scores])
    for other in results[1:]:
        for ours, theirs in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_a_row_does_not_depend_on_its_neighbours(native, solver):
    rng = np.random.default_rng(2)
    lengths = rng.integers(0, 60, 500)
    users = matrix_of(lengths, 100, rng)
    problem = problem_of(users, LOSSES["normalised"](0.02))
    y = floats(rng.normal(0, 0.3, (100, 20)))
    prepared = native.prepare(y, native.gram(y))
    together = np.zeros((500, 20), dtype=np.float32)
    rows = problem.unit_user_rows
    native.solve_rows(rows, prepared, together, solver)
    for row in (0, 17, 499):
        columns, _ = users.row(row)
        alone = type(users)(np.array([0, len(columns)]), columns.copy(), None, (1, 100))
        single = np.zeros((1, 20), dtype=np.float32)
        one = Rows(
            alone,
            rows.row_weight[[row]],
            rows.col_weight,
            rows.gram_weight[[row]],
            rows.ridge[[row]],
        )
        native.solve_rows(one, prepared, single, solver)
        np.testing.assert_array_equal(single[0], together[row])


@pytest.mark.parametrize("solver", [CG(50), SpectralCG(), SpectralCG(1e-25), Exact()], ids=str)
@pytest.mark.parametrize("ridge", [1e-3, 0.05, 10.0, 100.0])
@pytest.mark.parametrize("start", [0.0, 0.1])
def test_vanishing_weights_are_no_failure(native, solver, ridge, start):
    """Weights down to 1e-45 leave residuals whose squares underflow."""
    rng = np.random.default_rng(0)
    weight = np.logspace(0, -45, 200)
    matrix = matrix_of(rng.integers(1, 30, 200), 100, rng)
    rows = Rows(matrix, weight, np.ones(100), weight, np.full(200, ridge))
    y = rng.normal(0, 0.3, (100, 16))
    expected = np.zeros((200, 16))
    TWIN.solve_rows(rows, TWIN.prepare(y, TWIN.gram(y)), expected, Exact())
    factors = np.full((200, 16), start, dtype=np.float32)
    native.solve_rows(rows, native.prepare(floats(y), native.gram(floats(y))), factors, solver)
    np.testing.assert_allclose(factors, expected, atol=5e-3 * np.abs(expected).max(), rtol=0)


@pytest.mark.parametrize("factors", [5, 16, 31, 64])
@pytest.mark.parametrize("count", [1, 7, 40])
def test_equal_items_tie_wherever_they_stand(native, factors, count):
    rng = np.random.default_rng(0)
    items = np.repeat(floats(rng.normal(size=(1, factors))), 61, axis=0)
    ids, scores = native.topk(floats(rng.normal(size=(count, factors))), items, 61)
    np.testing.assert_array_equal(ids, np.tile(np.arange(61), (count, 1)))
    assert (scores == scores[:, :1]).all()


@pytest.mark.parametrize("count", [1, 40])
def test_scores_that_are_no_numbers_are_never_returned(native, count):
    items = np.array([[np.nan], [1.0], [-np.inf], [2.0]], dtype=np.float32)
    queries = np.ones((count, 1), dtype=np.float32)
    for backend in (native, TWIN):
        ids, _ = backend.topk(queries, items, 4)
        np.testing.assert_array_equal(ids, np.tile([3, 1, -1, -1], (count, 1)))


def sketched_items(kind, factors, rng):
    """Items among which a sketch might go wrong."""
    items = rng.normal(size=(2500, factors)) * rng.lognormal(size=(2500, 1))
    if kind == "near-ties":
        items = rng.normal(size=factors) * (1 + rng.integers(-40, 41, (2500, factors)) * 2.0**-16)
    elif kind == "rounded apart":  # the better ones down, the others up, nearly by the margin
        small = 2.0**-12 * rng.integers(1, 41, (2500, 1))
        steps = np.where(np.arange(factors) % 2, 3, -1.5) + small
        steps[::2] = 1 - small[::2]
        items = 1 + 2.0**-8 * steps
    elif kind == "equal":
        items = np.repeat(items[:7], 100, axis=0)
    elif kind == "whole numbers":
        items = rng.integers(-1, 2, (2500, factors))
    elif kind == "zeros":
        items[rng.random(items.shape) < 0.7] = 0
        items[::3] = 0
    elif kind == "all zero":
        items[:] = 0
    elif kind == "any size":
        items *= 2.0 ** rng.integers(-140, 20, items.shape)
    elif kind == "no numbers":
        items[5], items[70, 0], items[300:310, -1] = np.nan, -np.inf, np.inf
    elif kind == "one is far longer":
        items[123] *= -1e6
    return items


@pytest.mark.parametrize(
    "kind",
    [
        *("plain", "near-ties", "equal", "whole numbers", "zeros", "all zero", "any size"),
        *("rounded apart", "no numbers", "one is far longer"),
    ],
)
@pytest.mark.parametrize("factors", [1, 3, 16, 33, 64, 256, 300])
def test_a_sketch_changes_no_bit_of_the_best(native, factors, kind):
    rng = np.random.default_rng(factors)
    base = sketched_items(kind, factors, rng)
    for scale in (1, 1e-38, 1e-12, 1e12, 1e38):
        with np.errstate(over="ignore"):
            items = floats(base * scale)
        with np.errstate(over="ignore", invalid="ignore"):
            longest = np.linalg.norm(items, axis=1).max()
        sketch = Sketch(native._rough(items), float(longest))
        queries = floats(rng.normal(size=(5, factors)) * [[1], [1e-40], [1e-15], [1e9], [1e30]])
        queries[0] = 1
        assert_same_best(native, queries, items, sketch, rng)


def assert_same_best(native, queries, items, sketch, rng):
    count = len(items)
    seen = matrix_of(rng.integers(0, 60, len(queries)), count, rng)
    banned = rng.choice(count, 30, replace=False)
    for k in (1, 20, 86, count):
        for option in ({}, {"exclude": seen}, {"exclude": seen, "exclude_all": banned}):
            plain = native.topk(queries, items, k, **option)
            found = native.topk(queries, items, k, sketch=sketch, **option)
            np.testing.assert_array_equal(found[0], plain[0])
            np.testing.assert_array_equal(found[1], plain[1])


def test_a_sketch_is_enough_where_few_columns_are_left(native):
    rng = np.random.default_rng(0)
    items, queries = floats(rng.normal(size=(2500, 64))), floats(rng.normal(size=(2, 64)))
    sketch = native.sketch(items)
    for left in (0, 1, 19, 20, 21):
        banned = np.setdiff1d(np.arange(2500), rng.choice(2500, left, replace=False))
        plain = native.topk(queries, items, 20, exclude_all=banned)
        found = native.topk(queries, items, 20, sketch=sketch, exclude_all=banned)
        np.testing.assert_array_equal(found, plain)


def test_narrow_factors_have_no_sketch(native):
    assert native.sketch(np.ones((5, 16), dtype=np.float32)) is None
    rough, longest = native.sketch(np.ones((5, 64), dtype=np.float32))
    assert rough.nbytes == 5 * 2 * 64
    assert longest == 8


def words_of(native, values):
    """The rough form of values whose number is a multiple of 32, and the numbers in its words."""
    rough = np.empty((len(values), values.shape[1] // 2), dtype=np.uint32)
    _core.roughen(values, rough, 2, native.isa)
    lanes = {"avx512": 16, "avx2": 8}.get(native.isa, 4)
    blocks = rough.reshape(len(values), -1, 1, lanes)
    pairs = np.concatenate([blocks << 16, blocks], axis=2)
    return rough, pairs.view(np.float32).reshape(values.shape)


def test_rough_factors_are_off_by_the_last_of_eight_bits_at_most(native):
    rng = np.random.default_rng(0)
    sizes = 2.0 ** rng.integers(-100, 60, (300, 64)).astype(np.float32)
    values = floats(rng.normal(size=(300, 64)) * sizes)
    _, found = words_of(native, values)
    assert (np.abs(found - values) <= 2.0**-8 * np.abs(values)).all()
    assert (np.abs(found - values) > 2.0**-9 * np.abs(values)).any()


def test_zeros_are_zeros_in_rough_factors(native):
    """Beside anything: the upper number of a word has the lower one's bits behind its own."""
    values = floats(np.random.default_rng(0).normal(size=(40, 64)))
    values[::2, 16:48] = 0
    values[1] = 0
    _, found = words_of(native, values)
    assert (np.abs(found[values == 0]) < np.finfo(np.float32).tiny).all()
    assert (found[1] == 0).all()


@pytest.mark.parametrize("factors", [5, 16, 33, 300])
@pytest.mark.parametrize("loss", LOSSES)
def test_rough_factors_agree_up_to_their_rounding(native, loss, factors):
    rng = np.random.default_rng(factors)
    for rows, fixed, gram, start in half_steps(loss, "cvar", factors, True, rng):
        values = TWIN.turn(fixed, start, gram)
        exact = start.copy()
        TWIN.solve_rows(rows, TWIN.prepare(fixed, values), exact, Exact())
        found, pair_weight = floats(start), rng.random(len(start))
        prepared = native.prepare(floats(fixed), values, rough=True)
        assert prepared.rotated.dtype == np.uint32
        native.solve_rows(rows, prepared, found, SpectralCG(1e-6))
        assert np.linalg.norm(found - exact) <= 4e-3 * np.linalg.norm(exact)
        np.testing.assert_allclose(
            native.losses(rows.matrix, pair_weight, found, prepared),
            TWIN.losses(rows.matrix, pair_weight, found, TWIN.prepare(fixed, values)),
            rtol=8e-3,
            atol=4e-4,
        )


@pytest.mark.parametrize("factors", FACTORS)
def test_turned_sides_have_the_same_scores_and_a_diagonal_gramian(native, factors):
    for backend in (native, TWIN):
        assert_turned(backend, factors)


def assert_turned(backend, factors):
    rng = np.random.default_rng(factors)
    items, users = (rng.normal(size=(count, factors)).astype(backend.dtype) for count in (40, 30))
    scores = users @ items.T
    size = np.abs(scores).max()
    values = backend.turn(items, users, backend.gram(items))
    np.testing.assert_allclose(users @ items.T, scores, atol=1e-5 * size)
    gram = items.T @ items
    np.testing.assert_allclose(gram, np.diag(values), atol=1e-5 * gram.max())


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)
def test_a_diagonal_is_as_good_as_the_gramian_that_has_it(native, solver):
    rng = np.random.default_rng(7)
    for rows, fixed, gram, start in half_steps("normalised", "cvar", 33, True, rng):
        values = TWIN.turn(fixed, start, gram)
        found = [floats(start), floats(start)]
        for factors, given in zip(found, (values, np.diag(values)), strict=True):
            prepared = native.prepare(floats(fixed), given)
            assert (prepared.basis is None) == (given.ndim == 1)
            native.solve_rows(rows, prepared, factors, solver)
        np.testing.assert_allclose(*found, rtol=1e-3, atol=1e-4 * np.abs(start).max())


def test_only_rough_solvers_ask_for_rough_factors():
    assert SpectralCG(1e-3).rough
    assert not any(solver.rough for solver in (SpectralCG(9e-4), CG(5, 1e-2), Exact()))
