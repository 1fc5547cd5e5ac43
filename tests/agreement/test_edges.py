"""Slopes, residuals, long rows, tiny weights, threads, and neighbours on every backend."""

import numpy as np
import pytest

from safecf.als.capabilities import Gradients
from safecf.als.optimizers import SGD
from safecf.als.rows import Rows
from safecf.als.solvers import CG, Exact, Gradient, SpectralCG
from tests.agreement.placed import (
    KINDS,
    TWIN,
    assert_same,
    close,
    fix,
    floats,
    gradients,
    gram,
    half_steps,
    losses,
    solve,
    solved,
    with_threads,
)
from tests.problems import LOSSES, matrix_of, problem_of
from tests.reference import gradient, objective

STEP = Gradient(-1.0, SGD())
SOLVERS = [Exact(), CG(4, 1e-6), SpectralCG(1e-6, 3)]
every_solver = pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: s.name)


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_are_the_slopes_of_the_objective(native, loss):
    rng = np.random.default_rng(0)
    users = matrix_of(rng.integers(0, 12, 20), 15, rng, weighted=True)
    problem = problem_of(users, LOSSES[loss](0.02))
    weights = np.round(rng.uniform(0, 1, 20), 1)
    x, y = rng.normal(0, 0.5, (20, 5)), rng.normal(0, 0.5, (15, 5))
    for backend, bound in ((TWIN, 1e-7), (native, 1e-5)):
        for rows, own, others, weight, total in (
            (problem.user_rows(weights), x, y, None, lambda at: objective(problem, weights, at, y)),
            (
                problem.item_rows(weights),
                y,
                x,
                weights,
                lambda at: objective(problem, weights, x, at),
            ),
        ):
            side = fix(backend, others, 0.02 * gram(TWIN, others, weight))
            found = gradients(backend, rows, side, own, STEP)
            np.testing.assert_allclose(found, gradient(total, own), rtol=0, atol=bound)


def test_users_of_weight_zero_have_the_slope_of_their_ridge(native):
    rng = np.random.default_rng(3)
    rows, y, shared, x = next(half_steps(9, ("normalised", "mean", False)))
    rows = rows.map(lambda values: values.copy())
    rows.row_weight[:], rows.gram_weight[:] = 0, 0
    for backend in (TWIN, native):
        slopes = gradients(backend, rows, fix(backend, y, shared), x, STEP)
        np.testing.assert_allclose(slopes, rows.ridge[:, None] * x, rtol=1e-4, atol=1e-6)
        factors, _ = solve(
            backend, rows, fix(backend, y, shared), rng.normal(size=x.shape), Exact()
        )
        assert not factors.any()


@pytest.mark.parametrize("scale", [0, 1e-38, 1e-20, 1e-17, 1e-3, -1, 1e3])
def test_spectral_cg_ends_at_the_solution_from_any_start(native, scale):
    """The start is its first direction, however short, long or wrong it is."""
    for d in (1, 16):
        for rows, fixed, shared, start in half_steps(d, ("normalised", "cvar", True)):
            exact, _ = solve(TWIN, rows, fix(TWIN, fixed, shared), start, Exact())
            for backend in (native, TWIN):
                side = fix(backend, fixed, shared)
                close(solve(backend, rows, side, scale * start, SpectralCG(1e-6))[0], exact, 1e-4)
                close(solve(backend, rows, side, exact, SpectralCG(1e-5))[0], exact, 1e-4)


@pytest.mark.parametrize("solver", [CG(500, 1e-4), SpectralCG(1e-3), SpectralCG(1e-5)], ids=str)
def test_the_tolerance_bounds_the_residual(native, solver):
    for kind in KINDS[1::2]:
        rows, fixed, shared, start = next(half_steps(33, kind))
        factors, _ = solve(native, rows, fix(native, fixed, shared), start, solver)
        for row, x in enumerate(factors.astype(np.float64)):
            columns, confidence = rows.matrix.row(row)
            pairs = rows.row_weight[row] * rows.col_weight[columns] * confidence
            y = fixed[columns]
            common = rows.gram_weight[row] * (shared @ x) + rows.ridge[row] * x
            residual = y.T @ pairs - common - y.T @ (pairs * (y @ x))
            limit = 1.01 * solver.tolerance + 1e-5
            assert np.linalg.norm(residual) <= limit * np.linalg.norm(y.T @ pairs)


@pytest.mark.parametrize("solver", [CG(500, 0.3), SpectralCG(0.3)], ids=lambda s: s.name)
def test_the_tolerance_ends_the_iterations(native, solver):
    """With the step that reaches it, and before the first one if the start is good enough."""
    for rows, fixed, shared, start, wanted, _ in solved(33, ("normalised", "cvar", True), solver):
        side = fix(native, fixed, shared)
        close(solve(native, rows, side, start, solver)[0], wanted, 1e-3)
        enough = floats(1.01 * solve(TWIN, rows, fix(TWIN, fixed, shared), start, Exact())[0])
        close(solve(native, rows, side, enough, solver)[0], enough, 1e-5)


def test_a_very_long_row_keeps_its_accuracy(native):
    rng = np.random.default_rng(0)
    count, one = 60_000, np.array([1.0])
    rows = Rows(matrix_of([count], count, rng), one, rng.uniform(0, 1, count), one, one)
    y, start = floats(rng.normal(0.1, 0.3, (count, 16))), floats(rng.normal(size=(1, 16)))
    shared = 0.01 * gram(TWIN, y)
    sides = fix(native, y, shared), fix(TWIN, y, shared)
    expected, _ = solve(TWIN, rows, sides[1], start, Exact())
    for solver in (Exact(), SpectralCG(1e-6)):
        close(solve(native, rows, sides[0], start, solver)[0], expected, 1e-4)
    slopes = [
        gradients(b, rows, s, start, STEP) for b, s in zip((native, TWIN), sides, strict=True)
    ]
    close(*slopes, 2e-5)


@pytest.mark.parametrize("solver", [CG(50), SpectralCG(), SpectralCG(1e-25), Exact()], ids=str)
def test_vanishing_weights_are_no_failure(native, solver):
    """Weights down to 1e-45 leave residuals whose squares underflow."""
    rng = np.random.default_rng(0)
    weight = np.logspace(0, -45, 200)
    matrix, y = matrix_of(rng.integers(1, 30, 200), 100, rng), floats(rng.normal(0, 0.3, (100, 16)))
    shared, zeros = gram(TWIN, y), np.zeros((200, 16))
    for ridge in (1e-3, 0.05, 10.0, 100.0):
        rows = Rows(matrix, weight, np.ones(100), weight, np.full(200, ridge))
        expected, _ = solve(TWIN, rows, fix(TWIN, y, shared), zeros, Exact())
        for start in (zeros, zeros + 0.1):
            close(solve(native, rows, fix(native, y, shared), start, solver)[0], expected, 5e-3)


@every_solver
def test_the_number_of_threads_changes_no_bit(native, solver):
    rng = np.random.default_rng(1)
    users = matrix_of(rng.integers(0, 60, 3000), 200, rng)
    problem, weights = problem_of(users, LOSSES["normalised"](0.02)), rng.uniform(0, 1, 3000)
    x, y = floats(rng.normal(0, 0.1, (3000, 24))), floats(rng.normal(0, 0.1, (200, 24)))
    results = []
    for threads in (1, 2, 3, 7):
        backend = with_threads(native, threads)
        shared = gram(backend, x, weights)
        side = fix(backend, x, shared)
        found, report = solve(backend, problem.item_rows(weights), side, y, solver)
        lost = losses(backend, users.transpose(), np.ones(200), found, side)
        sums = report.change(), report.penalty(np.arange(200.0))
        results.append([shared, found, sums, lost, *backend.index(found).search(x, 10)])
        if isinstance(backend, Gradients):
            results[-1].append(gradients(backend, problem.item_rows(weights), side, y, STEP))
    for other in results[1:]:
        for ours, theirs in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@every_solver
def test_a_row_does_not_depend_on_its_neighbours(native, solver):
    rng = np.random.default_rng(2)
    users = matrix_of(rng.integers(0, 60, 500), 100, rng)
    rows = problem_of(users, LOSSES["normalised"](0.02)).unit_user_rows
    x, y = floats(rng.normal(size=(500, 20))), floats(rng.normal(0, 0.3, (100, 20)))
    side = fix(native, y, gram(native, y))
    together, _ = solve(native, rows, side, np.zeros((500, 20)), solver)
    slopes = gradients(native, rows, side, x, STEP)
    for row in (0, 17, 499):
        one = rows.part(users.part(row, row + 1), row, row + 1)
        single, _ = solve(native, one, side, np.zeros((1, 20)), solver)
        assert_same(native, single[0], together[row])
        assert_same(native, gradients(native, one, side, x[[row]], STEP)[0], slopes[row])
