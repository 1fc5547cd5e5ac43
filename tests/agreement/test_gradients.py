"""Gradients: the slopes of the objective, and the same from every backend."""

import numpy as np
import pytest

from safecf.als.capabilities import Gradients
from safecf.als.optimizers import SGD
from safecf.als.rows import Rows
from safecf.als.solvers import Gradient
from tests.agreement.placed import TWIN, assert_same, fix, gram, placed_rows, with_threads
from tests.agreement.test_backends import FACTORS, LENGTHS, floats, half_steps
from tests.installed import backend_kinds
from tests.problems import LOSSES, gradient, matrix_of, objective, problem_of

BACKEND = pytest.mark.parametrize(
    "backend",
    [
        each
        for each in (kind(2) for kind in backend_kinds().values())
        if isinstance(each, Gradients)
    ],
    ids=repr,
)


def gradients(backend, rows, fixed, factors):
    """A x - b: what a step of size -1 along the plain gradient adds."""
    factors = backend.place(np.array(factors))
    new, _, _ = backend.descend(placed_rows(backend, rows), fixed, factors, None, STEP, 1)
    return backend.fetch(new) - backend.fetch(factors)


STEP = Gradient(-1.0, SGD())


def assert_twins_agree(native, rows, fixed, shared, factors):
    expected = gradients(TWIN, rows, fix(TWIN, fixed, shared), factors)
    actual = gradients(native, rows, fix(native, fixed, shared), factors)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
@BACKEND
def test_they_are_the_slopes_of_the_objective(backend, loss, weighted):
    rng = np.random.default_rng(0)
    users = matrix_of(rng.integers(0, 12, 20), 15, rng, weighted=weighted)
    problem = problem_of(users, LOSSES[loss](0.02))
    weights = np.round(rng.uniform(0, 1, 20), 1)
    x, y = rng.normal(0, 0.5, (20, 5)), rng.normal(0, 0.5, (15, 5))

    def slopes(rows, factors, others, weight):
        return gradients(
            backend, rows, fix(backend, others, 0.02 * gram(TWIN, others, weight)), factors
        )

    of_users = slopes(problem.user_rows(weights), x, y, None)
    of_items = slopes(problem.item_rows(weights), y, x, weights)
    close = {"rtol": 0, "atol": 1e-7 if backend.name == TWIN.name else 1e-5}
    wanted = gradient(lambda at: objective(problem, weights, at, y), x)
    np.testing.assert_allclose(of_users, wanted, **close)
    wanted = gradient(lambda at: objective(problem, weights, x, at), y)
    np.testing.assert_allclose(of_items, wanted, **close)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("risk", ["mean", "cvar"])
@pytest.mark.parametrize("loss", LOSSES)
def test_twins_agree(native, loss, risk, weighted):
    for half_step in half_steps(loss, risk, 33, weighted, np.random.default_rng(1)):
        assert_twins_agree(native, *half_step)


@pytest.mark.parametrize("factors", FACTORS)
def test_every_width_of_factors(native, factors):
    for half_step in half_steps("normalised", "cvar", factors, False, np.random.default_rng(2)):
        assert_twins_agree(native, *half_step)


@BACKEND
def test_users_of_weight_zero_have_the_slope_of_their_ridge(backend):
    rng = np.random.default_rng(3)
    users = matrix_of(LENGTHS, 420, rng)
    problem = problem_of(users, LOSSES["normalised"](0.02))
    x, y = rng.normal(size=(len(LENGTHS), 9)), rng.normal(size=(420, 9))
    rows = problem.user_rows(np.zeros(len(LENGTHS)))
    slopes = gradients(backend, rows, fix(backend, y, gram(TWIN, y)), x)
    np.testing.assert_allclose(slopes, rows.ridge[:, None] * x, rtol=1e-4, atol=1e-6)


def test_a_very_long_row_keeps_its_accuracy(native):
    rng = np.random.default_rng(0)
    count, factors = 60_000, 16
    one = np.array([1.0])
    rows = Rows(matrix_of([count], count, rng), one, rng.uniform(0, 1, count), one, one)
    y = rng.normal(0.1, 0.3, (count, factors))
    assert_twins_agree(native, rows, y, 0.01 * gram(TWIN, y), rng.normal(size=(1, factors)))


def test_the_number_of_threads_changes_no_bit(native):
    rng = np.random.default_rng(1)
    users = matrix_of(rng.integers(0, 60, 3000), 200, rng)
    rows = problem_of(users, LOSSES["normalised"](0.02)).user_rows(rng.uniform(0, 1, 3000))
    x, y = floats(rng.normal(size=(3000, 24))), floats(rng.normal(size=(200, 24)))
    found = []
    for threads in (1, 2, 3, 7):
        backend = with_threads(native, threads)
        found.append(gradients(backend, rows, fix(backend, y, gram(backend, y)), x))
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_a_row_does_not_depend_on_its_neighbours(native):
    rng = np.random.default_rng(2)
    users = matrix_of(rng.integers(0, 60, 500), 100, rng)
    rows = problem_of(users, LOSSES["normalised"](0.02)).unit_user_rows
    x, y = floats(rng.normal(size=(500, 20))), floats(rng.normal(size=(100, 20)))
    fixed = fix(native, y, gram(native, y))
    together = gradients(native, rows, fixed, x)
    for row in (0, 17, 499):
        alone = rows.part(users.part(row, row + 1), row, row + 1)
        assert_same(native, gradients(native, alone, fixed, x[[row]])[0], together[row])
