"""Gradients: the slopes of the objective, and the same from every backend."""

import dataclasses

import numpy as np
import pytest

from safecf.als.rows import Rows
from safecf.backends import CpuBackend, NumpyBackend
from tests.agreement.test_backends import FACTORS, LENGTHS, floats, half_steps
from tests.problems import LOSSES, gradient, matrix_of, objective, problem_of

TWIN = NumpyBackend()


def assert_twins_agree(native, rows, fixed, gram, factors):
    expected = TWIN.gradients(rows, TWIN.prepare(fixed, gram), factors)
    given = floats(factors)
    actual = native.gradients(rows, native.prepare(floats(fixed), floats(gram)), given)
    assert actual.dtype == np.float32
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    np.testing.assert_array_equal(given, floats(factors))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("backend", [TWIN, CpuBackend()], ids=lambda backend: backend.name)
def test_they_are_the_slopes_of_the_objective(backend, loss, weighted):
    rng = np.random.default_rng(0)
    users = matrix_of(rng.integers(0, 12, 20), 15, rng, weighted=weighted)
    problem = problem_of(users, LOSSES[loss](0.02))
    weights = np.round(rng.uniform(0, 1, 20), 1)
    x, y = rng.normal(0, 0.5, (20, 5)), rng.normal(0, 0.5, (15, 5))

    def slopes(rows, factors, others, weight):
        others = others.astype(backend.dtype)
        fixed = backend.prepare(others, 0.02 * backend.gram(others, weight))
        return backend.gradients(rows, fixed, factors.astype(backend.dtype))

    of_users = slopes(problem.user_rows(weights), x, y, None)
    of_items = slopes(problem.item_rows(weights), y, x, weights)
    close = {"rtol": 0, "atol": 1e-7 if backend is TWIN else 1e-5}
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


@pytest.mark.parametrize("backend", [TWIN, CpuBackend()], ids=lambda backend: backend.name)
def test_users_of_weight_zero_have_the_slope_of_their_ridge(backend):
    rng = np.random.default_rng(3)
    users = matrix_of(LENGTHS, 420, rng)
    problem = problem_of(users, LOSSES["normalised"](0.02))
    x = rng.normal(size=(len(LENGTHS), 9)).astype(backend.dtype)
    y = rng.normal(size=(420, 9)).astype(backend.dtype)
    rows = problem.user_rows(np.zeros(len(LENGTHS)))
    slopes = backend.gradients(rows, backend.prepare(y, backend.gram(y)), x)
    np.testing.assert_allclose(slopes, rows.ridge[:, None] * x, rtol=1e-4, atol=1e-6)


def test_a_very_long_row_keeps_its_accuracy(native):
    rng = np.random.default_rng(0)
    count, factors = 60_000, 16
    one = np.array([1.0])
    rows = Rows(matrix_of([count], count, rng), one, rng.uniform(0, 1, count), one, one)
    y = rng.normal(0.1, 0.3, (count, factors))
    assert_twins_agree(native, rows, y, 0.01 * TWIN.gram(y), rng.normal(size=(1, factors)))


def test_the_number_of_threads_changes_no_bit():
    rng = np.random.default_rng(1)
    users = matrix_of(rng.integers(0, 60, 3000), 200, rng)
    rows = problem_of(users, LOSSES["normalised"](0.02)).user_rows(rng.uniform(0, 1, 3000))
    x, y = floats(rng.normal(size=(3000, 24))), floats(rng.normal(size=(200, 24)))
    found = []
    for threads in (1, 2, 3, 7):
        backend = CpuBackend(threads)
        found.append(backend.gradients(rows, backend.prepare(y, backend.gram(y)), x))
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_a_row_does_not_depend_on_its_neighbours(native):
    rng = np.random.default_rng(2)
    users = matrix_of(rng.integers(0, 60, 500), 100, rng)
    rows = problem_of(users, LOSSES["normalised"](0.02)).unit_user_rows
    x, y = floats(rng.normal(size=(500, 20))), floats(rng.normal(size=(100, 20)))
    prepared = native.prepare(y, native.gram(y))
    together = native.gradients(rows, prepared, x)
    for row in (0, 17, 499):
        columns, _ = users.row(row)
        alone = dataclasses.replace(
            rows,
            matrix=type(users)(np.array([0, len(columns)]), columns.copy(), None, (1, 100)),
            row_weight=rows.row_weight[[row]],
            gram_weight=rows.gram_weight[[row]],
            ridge=rows.ridge[[row]],
        )
        np.testing.assert_array_equal(native.gradients(alone, prepared, x[[row]])[0], together[row])
