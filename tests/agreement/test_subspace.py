"""The subspace solver: native and float64 twins agree, and both end where the exact solver is."""

from contextlib import nullcontext

import numpy as np
import pytest

from safecf import SolveError
from safecf.als.solvers import Exact, Subspace
from safecf.als.sweeps import Cyclic, State, blocks
from safecf.backends import CpuBackend, NumpyBackend
from tests.agreement.test_backends import LENGTHS, floats, weights_of
from tests.problems import LOSSES, matrix_of, problem_of

TWIN = NumpyBackend()


def make_case(loss="normalised", risk="cvar", factors=33, weighted=False):
    """Return (problem, weights, X, Y) with rows of all lengths, some of weight zero."""
    rng = np.random.default_rng(factors)
    users = matrix_of(LENGTHS, 420, rng, weighted=weighted)
    problem = problem_of(users, LOSSES[loss](0.02))
    weights = weights_of(risk, users.num_rows, rng)
    weights[7] = 0
    x = rng.normal(0, 1 / np.sqrt(factors), (users.num_rows, factors))
    y = rng.normal(0, 1 / np.sqrt(factors), (users.num_columns, factors))
    return problem, weights, x, y


def sweep(backend, problem, weights, x, y, size):
    """Update all blocks of users and items once; return the scores and the reports."""
    cyclic, state = Cyclic(problem, backend, Subspace(size)), State(x, y, weights)
    cyclic.losses(state, nullcontext)
    scores = cyclic._scores
    return scores, cyclic.run(state, weights, nullcontext)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("risk", ["mean", "cvar"])
@pytest.mark.parametrize("loss", LOSSES)
def test_twins_agree(native, loss, risk, weighted):
    for factors, size in ((33, 16), (40, 7), (16, 16), (5, 1)):
        problem, weights, x, y = make_case(loss, risk, factors, weighted)
        x32, y32 = floats(x), floats(y)
        wanted_scores, wanted = sweep(TWIN, problem, weights, x, y, size)
        scores, found = sweep(native, problem, weights, x32, y32, size)
        for actual, expected in ((x32, x), (y32, y), (scores, wanted_scores)):
            np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-4 * np.abs(expected).max())
        for actual, expected in zip(found, wanted, strict=True):
            np.testing.assert_allclose(actual.change, expected.change, rtol=1e-3, atol=1e-5)
            np.testing.assert_allclose(actual.norm, expected.norm, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("backend", [TWIN, CpuBackend(2)], ids=lambda backend: backend.name)
@pytest.mark.parametrize("size", [1, 7, 16, 33])
def test_scores_stay_those_of_the_factors(backend, size):
    problem, weights, x, y = make_case()
    x, y = x.astype(backend.dtype), y.astype(backend.dtype)
    users = problem.interactions.users
    scores, _ = sweep(backend, problem, weights, x, y, size)
    np.testing.assert_allclose(scores, backend.scores(users, x, y), atol=1e-5)
    gram = 0.02 * backend.gram(y)
    np.testing.assert_allclose(
        backend.scored_losses(users, problem.pair_weight, scores, x, gram),
        backend.losses(users, problem.pair_weight, x, backend.prepare(y, gram)),
        rtol=1e-4,
    )


@pytest.mark.parametrize("backend", [TWIN, CpuBackend(2)], ids=lambda backend: backend.name)
@pytest.mark.parametrize("loss", LOSSES)
def test_one_block_is_the_exact_solver(backend, loss):
    problem, weights, x, y = make_case(loss)
    x, y = x.astype(backend.dtype), y.astype(backend.dtype)
    exact_x, exact_y = x.copy(), y.copy()
    fixed = backend.prepare(exact_y, 0.02 * backend.gram(exact_y))
    backend.solve_rows(problem.user_rows(weights), fixed, exact_x, Exact())
    fixed = backend.prepare(exact_x, 0.02 * backend.gram(exact_x, weights))
    backend.solve_rows(problem.item_rows(weights), fixed, exact_y, Exact())
    sweep(backend, problem, weights, x, y, x.shape[1])
    np.testing.assert_allclose(x, exact_x, rtol=0, atol=5e-5 * np.abs(exact_x).max())
    np.testing.assert_allclose(y, exact_y, rtol=0, atol=5e-5 * np.abs(exact_y).max())


@pytest.mark.parametrize("backend", [TWIN, CpuBackend(2)], ids=lambda backend: backend.name)
@pytest.mark.parametrize("size", [4, 16])
def test_fold_in_converges_to_the_exact_one(backend, size):
    problem, _, x, y = make_case()
    x, y = x.astype(backend.dtype), y.astype(backend.dtype)
    rows, gram = problem.unit_user_rows, 0.02 * backend.gram(y)
    exact = np.zeros_like(x)
    backend.solve_rows(rows, backend.prepare(y, gram), exact, Exact())
    scores = backend.scores(rows.matrix, x, y)
    errors = []
    for _ in range(60):
        for block in blocks(x.shape[1], size):
            backend.update_block(rows, block, y, gram[:, block], x, scores)
        errors.append(np.abs(x - exact).max() / np.abs(exact).max())
    assert errors[-1] < 1e-3
    assert errors[-1] < errors[0] / 100


def test_a_row_that_cannot_be_solved_is_named(native):
    problem, weights, x, y = make_case(risk="mean")
    rows = problem.user_rows(weights)
    rows.ridge[:], rows.gram_weight[:] = 0, 0
    scores = native.scores(rows.matrix, floats(x), floats(y))
    with pytest.raises(SolveError, match="row 1:"):
        native.update_block(
            rows, slice(0, 16), floats(y), np.zeros((33, 16), np.float32), floats(x), scores
        )


@pytest.mark.parametrize("count", [1, 50, 3000])
def test_columns_of_the_gramian(native, count):
    rng = np.random.default_rng(count)
    factors, weight = rng.normal(size=(count, 37)).astype(np.float32), rng.random(count)
    for given in (None, weight):
        whole = TWIN.gram(factors, given)
        for block in (slice(0, 37), slice(5, 21), slice(36, 37)):
            np.testing.assert_allclose(
                native.gram(factors, given, block), whole[:, block], rtol=1e-4, atol=1e-4 * count
            )


def test_threads_do_not_change_a_bit():
    results = []
    for threads in (1, 2, 5):
        problem, weights, x, y = make_case()
        x, y = floats(x), floats(y)
        scores, _ = sweep(CpuBackend(threads), problem, weights, x, y, 16)
        results.append(b"".join(array.tobytes() for array in (x, y, scores)))
    assert len(set(results)) == 1
