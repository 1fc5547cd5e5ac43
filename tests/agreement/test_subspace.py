"""The subspace solver: native and float64 twins agree, and both end where the exact solver is."""

from contextlib import nullcontext

import numpy as np
import pytest

from safecf import SolveError
from safecf.als.capabilities import Blocks
from safecf.als.solvers import Exact, Subspace
from safecf.als.state import State
from safecf.als.sweeps import Cyclic, blocks
from tests.agreement.placed import TWIN, fix, gram, losses, placed_rows, solve, with_threads
from tests.agreement.test_backends import LENGTHS, weights_of
from tests.installed import backend_kinds
from tests.problems import LOSSES, matrix_of, problem_of

BACKEND = pytest.mark.parametrize(
    "backend",
    [each for each in (kind(2) for kind in backend_kinds().values()) if isinstance(each, Blocks)],
    ids=repr,
)


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
    """Update all blocks of users and items once; return X, Y, the scores and the reports."""
    cyclic = Cyclic(problem.place(backend), backend, Subspace(size))
    state = State(np.array(x), np.array(y), weights).map(backend.place, backend.place_vector)
    cyclic.prepare(state, nullcontext)
    scores = cyclic._scores
    reports = cyclic.run(state, backend.place_vector(weights), nullcontext)
    return *(backend.fetch(each) for each in (state.users, state.items, scores)), reports


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("risk", ["mean", "cvar"])
@pytest.mark.parametrize("loss", LOSSES)
def test_twins_agree(native, loss, risk, weighted):
    for factors, size in ((33, 16), (40, 7), (16, 16), (5, 1)):
        problem, weights, x, y = make_case(loss, risk, factors, weighted)
        *wanted, wanted_reports = sweep(TWIN, problem, weights, x, y, size)
        *found, reports = sweep(native, problem, weights, x, y, size)
        for actual, expected in zip(found, wanted, strict=True):
            np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-4 * np.abs(expected).max())
        for actual, expected, side in zip(reports, wanted_reports, (x, y), strict=True):
            ridge = np.arange(1.0, len(side) + 1)
            assert actual.change() == pytest.approx(expected.change(), rel=1e-4)
            assert actual.penalty(ridge) == pytest.approx(expected.penalty(ridge), rel=1e-4)


@BACKEND
@pytest.mark.parametrize("size", [1, 7, 16, 33])
def test_scores_stay_those_of_the_factors(backend, size):
    problem, weights, x, y = make_case()
    users = problem.interactions.users
    x, y, scores, _ = sweep(backend, problem, weights, x, y, size)
    placed, sides = backend.place_matrix(users), (backend.place(x), backend.place(y))
    fresh = backend.scores(placed, *sides)
    np.testing.assert_allclose(scores, backend.fetch(fresh), atol=1e-5)
    shared = 0.02 * backend.gram(sides[1])
    scored = backend.scored_losses(placed, problem.pair_weight, fresh, sides[0], shared)
    np.testing.assert_allclose(
        backend.fetch(scored),
        losses(backend, users, problem.pair_weight, x, backend.fix(sides[1], shared)),
        rtol=1e-4,
    )


@BACKEND
@pytest.mark.parametrize("loss", LOSSES)
def test_one_block_is_the_exact_solver(backend, loss):
    problem, weights, x, y = make_case(loss)
    fixed = fix(backend, y, 0.02 * gram(backend, y))
    exact_x, _ = solve(backend, problem.user_rows(weights), fixed, x, Exact())
    fixed = fix(backend, exact_x, 0.02 * gram(backend, exact_x, weights))
    exact_y, _ = solve(backend, problem.item_rows(weights), fixed, y, Exact())
    x, y, _, _ = sweep(backend, problem, weights, x, y, x.shape[1])
    np.testing.assert_allclose(x, exact_x, rtol=0, atol=5e-5 * np.abs(exact_x).max())
    np.testing.assert_allclose(y, exact_y, rtol=0, atol=5e-5 * np.abs(exact_y).max())


@BACKEND
@pytest.mark.parametrize("size", [4, 16])
def test_fold_in_converges_to_the_exact_one(backend, size):
    problem, _, x, y = make_case()
    rows, x, y = placed_rows(backend, problem.unit_user_rows), backend.place(x), backend.place(y)
    shared = 0.02 * backend.gram(y)
    zero = np.zeros(x.shape)
    exact, _ = solve(backend, problem.unit_user_rows, backend.fix(y, shared), zero, Exact())
    scores = backend.scores(rows.matrix, x, y)
    errors = []
    for _ in range(60):
        for block in blocks(x.shape[1], size):
            backend.update_block(rows, block, y, shared[:, block], x, scores)
        errors.append(np.abs(backend.fetch(x) - exact).max() / np.abs(exact).max())
    assert errors[-1] < 1e-3
    assert errors[-1] < errors[0] / 100


def test_a_row_that_cannot_be_solved_is_named(native):
    problem, weights, x, y = make_case(risk="mean")
    rows = problem.user_rows(weights)
    rows.ridge[:], rows.gram_weight[:] = 0, 0
    rows, x, y = placed_rows(native, rows), native.place(x), native.place(y)
    scores, shared = native.scores(rows.matrix, x, y), native.zeros(33, 16)
    with pytest.raises(SolveError, match="row 1:"):
        native.update_block(rows, slice(0, 16), y, shared, x, scores)


@pytest.mark.parametrize("count", [1, 50, 3000])
def test_columns_of_the_gramian(native, count):
    rng = np.random.default_rng(count)
    factors, weight = rng.normal(size=(count, 37)).astype(np.float32), rng.random(count)
    for given in (None, weight):
        whole = gram(TWIN, factors, given)
        for block in (slice(0, 37), slice(5, 21), slice(36, 37)):
            np.testing.assert_allclose(
                gram(native, factors, given, block), whole[:, block], rtol=1e-4, atol=1e-4 * count
            )


def test_threads_do_not_change_a_bit(native):
    results = []
    for threads in (1, 2, 5):
        *arrays, _ = sweep(with_threads(native, threads), *make_case(), 16)
        results.append(b"".join(array.tobytes() for array in arrays))
    assert len(set(results)) == 1
