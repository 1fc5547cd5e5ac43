"""Fast and slow twins agree: every native verb against the float64 backend, all combinations."""

import functools

import numpy as np
import pytest

from safecf.als.rows import Rows
from safecf.als.solvers import CG, Exact, SpectralCG
from tests.agreement.placed import TWIN, assert_same, fix, gram, losses, solve, with_threads
from tests.problems import LOSSES, matrix_of, problem_of

# around the widths of vectors, groups, tiles and chunks, and both sides of the primal-dual switch
LENGTHS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 48, 49, 127, 128, 129, 255, 257, 400]
FACTORS = [1, 3, 8, 15, 16, 17, 32, 33, 64, 100, 129, 300]
# the iterative ones are ended by the number of iterations: the same iterates, step by step
SOLVERS = [Exact(), CG(4, 1e-6), SpectralCG(1e-6, 3)]
# float32 against float64: plain CG amplifies rounding in rows of tiny weight
CLOSE = {"exact": 2e-5, "cg": 1e-3, "spectral-cg": 1e-4}


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
    yield problem.user_rows(weights), y, 0.02 * gram(TWIN, y), x
    yield problem.item_rows(weights), x, 0.02 * gram(TWIN, x, weights), y


def floats(values):
    return values.astype(np.float32)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("factors", [16, 33])
@pytest.mark.parametrize("risk", ["mean", "cvar"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_solvers_agree(native, solver, loss, risk, factors, weighted):
    rng = np.random.default_rng(factors)
    for rows, fixed, shared, start in half_steps(loss, risk, factors, weighted, rng):
        expected, wanted = solve(TWIN, rows, fix(TWIN, fixed, shared), start, solver)
        actual, found = solve(native, rows, fix(native, fixed, shared), start, solver)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(actual, expected, rtol=0, atol=CLOSE[solver.name] * scale)
        assert found.change() == pytest.approx(wanted.change(), rel=1e-4)
        assert found.change() == pytest.approx(np.sum((actual - start) ** 2), rel=1e-4)
        norms = [found.penalty(row) for row in np.eye(len(start))]
        np.testing.assert_allclose(norms, np.sum(actual**2, axis=1), rtol=1e-4, atol=1e-10)
        ridge, count = rng.random(len(start)), rng.integers(0, 3, len(start)).astype(float)
        assert found.penalty(ridge) == pytest.approx(wanted.penalty(ridge), rel=1e-4)
        assert found.largest() == pytest.approx(wanted.largest(), rel=1e-4)
        bound = 0.3 * wanted.largest()
        assert found.below(bound, count) == wanted.below(bound, count)


@pytest.mark.parametrize("scale", [0, 1e-38, 1e-20, 1e-17, 1e-3, -1, 1e3])
@pytest.mark.parametrize("factors", [1, 16])
def test_spectral_cg_ends_at_the_solution_from_any_start(native, factors, scale):
    """The start is its first direction, however short, long or wrong it is."""
    rng = np.random.default_rng(factors)
    for rows, fixed, shared, start in half_steps("normalised", "cvar", factors, True, rng):
        exact, _ = solve(TWIN, rows, fix(TWIN, fixed, shared), start, Exact())
        for backend in (native, TWIN):
            side = fix(backend, fixed, shared)
            found, _ = solve(backend, rows, side, scale * start, SpectralCG(1e-6))
            np.testing.assert_allclose(found, exact, rtol=0, atol=1e-4 * np.abs(exact).max())
            again, _ = solve(backend, rows, side, exact, SpectralCG(1e-5))
            np.testing.assert_allclose(again, exact, rtol=0, atol=1e-4 * np.abs(exact).max())


@pytest.mark.parametrize("solver", [CG(500, 1e-4), SpectralCG(1e-3), SpectralCG(1e-5)], ids=str)
@pytest.mark.parametrize("risk", ["mean", "cvar"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_tolerance_bounds_the_residual(native, solver, loss, risk):
    rng = np.random.default_rng(3)
    for rows, fixed, shared, start in half_steps(loss, risk, 33, True, rng):
        factors, _ = solve(native, rows, fix(native, fixed, shared), start, solver)
        for row, x in enumerate(factors.astype(np.float64)):
            columns, confidence = rows.matrix.row(row)
            pairs = rows.row_weight[row] * rows.col_weight[columns] * confidence
            y = fixed[columns]
            common = rows.gram_weight[row] * (shared @ x) + rows.ridge[row] * x
            residual = y.T @ pairs - common - y.T @ (pairs * (y @ x))
            limit = 1.01 * solver.tolerance + 1e-5
            assert np.linalg.norm(residual) <= limit * np.linalg.norm(y.T @ pairs)


@functools.cache
def exact_half_steps(factors):
    """The half-steps of one width with the twin's exact solutions, which take a while."""
    rng = np.random.default_rng(factors)
    found = []
    for rows, fixed, shared, start in half_steps("normalised", "cvar", factors, False, rng):
        expected, _ = solve(TWIN, rows, fix(TWIN, fixed, shared), start, Exact())
        found.append((rows, fixed, shared, start, expected))
    return found


@pytest.mark.parametrize("factors", FACTORS)
@pytest.mark.parametrize("solver", [Exact(), SpectralCG(1e-6, 500)], ids=str)
def test_every_width_of_factors(native, solver, factors):
    for rows, fixed, shared, start, expected in exact_half_steps(factors):
        actual, _ = solve(native, rows, fix(native, fixed, shared), start, solver)
        np.testing.assert_allclose(actual, expected, atol=2e-5 * np.abs(expected).max(), rtol=0)


@pytest.mark.parametrize("factors", FACTORS)
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_agree(native, factors, weighted):
    rng = np.random.default_rng(factors)
    users = matrix_of(LENGTHS, 420, rng, weighted=weighted)
    x, y = rng.normal(size=(users.num_rows, factors)), rng.normal(size=(420, factors))
    x, y = x / factors, y / factors
    pair_weight, shared = rng.uniform(0.1, 1, users.num_rows), 0.1 * gram(TWIN, y)
    expected = losses(TWIN, users, pair_weight, x, fix(TWIN, y, shared))
    actual = losses(native, users, pair_weight, x, fix(native, y, shared))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("factors", FACTORS)
@pytest.mark.parametrize("count", [1, 2, 11, 12, 13, 255, 256, 257, 2049, 3001, 5003])
def test_gramians_agree(native, factors, count):
    rng = np.random.default_rng(count)
    rows, weight = rng.normal(size=(count, factors)), rng.uniform(0, 1, count)
    for w in (None, weight):
        expected, actual = gram(TWIN, floats(rows), w), gram(native, rows, w)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
        assert_same(native, actual, actual.T)


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
    shared, start = 0.01 * gram(TWIN, y), np.zeros((1, factors))
    expected, _ = solve(TWIN, rows, fix(TWIN, y, shared), start, Exact())
    for solver in (Exact(), SpectralCG(1e-6)):
        actual, _ = solve(native, rows, fix(native, y, shared), start, solver)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_the_number_of_threads_changes_no_bit(native, solver):
    results = []
    for threads in (1, 2, 3, 7):
        backend = with_threads(native, threads)
        rng = np.random.default_rng(1)
        users = matrix_of(rng.integers(0, 60, 3000), 200, rng)
        problem = problem_of(users, LOSSES["normalised"](0.02))
        x, y = floats(rng.normal(0, 0.1, (3000, 24))), floats(rng.normal(0, 0.1, (200, 24)))
        weights = rng.uniform(0, 1, 3000)
        shared = gram(backend, x, weights)
        fixed = fix(backend, x, shared)
        y, report = solve(backend, problem.item_rows(weights), fixed, y, solver)
        lost = losses(backend, users.transpose(), np.ones(200), y, fixed)
        ids, scores = backend.index(y).search(x, 10)
        sums = report.change(), report.penalty(np.arange(200.0))
        results.append([shared, y, sums, lost, ids, scores])
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
    fixed, rows = fix(native, y, gram(native, y)), problem.unit_user_rows
    together, _ = solve(native, rows, fixed, np.zeros((500, 20)), solver)
    for row in (0, 17, 499):
        one = rows.part(users.part(row, row + 1), row, row + 1)
        single, _ = solve(native, one, fixed, np.zeros((1, 20)), solver)
        assert_same(native, single[0], together[row])


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
    shared, zeros = gram(TWIN, y), np.zeros((200, 16))
    expected, _ = solve(TWIN, rows, fix(TWIN, y, shared), zeros, Exact())
    factors, _ = solve(native, rows, fix(native, y, shared), zeros + start, solver)
    np.testing.assert_allclose(factors, expected, atol=5e-3 * np.abs(expected).max(), rtol=0)
