"""The subspace solver: backends and the float64 reference agree, and end at the solution."""

from contextlib import nullcontext

import numpy as np
import pytest

from safecf import SolveError
from safecf.als.solvers import Exact, Subspace
from safecf.als.state import State
from safecf.als.sweeps import Cyclic, blocks
from tests.agreement.placed import (
    KINDS,
    TWIN,
    WIDE_CASES,
    close,
    fix,
    gram,
    losses,
    make_case,
    placed_rows,
    solve,
    with_threads,
)

NEEDS = "updates of coordinate blocks"
MAIN = ("normalised", "cvar", False)
# d and the size of a block, each pair with two other kinds of problems
SIZES = [(33, 16), (40, 7), (16, 16), (5, 1), (33, 33), (17, 64)]
CASES = [(*size, kind) for size, kind in zip(2 * SIZES, KINDS, strict=True)]
WIDE = [pytest.param(*each.values[:1], 64, each.values[1], marks=each.marks) for each in WIDE_CASES]


def sweep(backend, problem, weights, x, y, size):
    """Update all blocks of users and items once; return X, Y, the scores and the reports."""
    cyclic = Cyclic(problem.place(backend), backend, Subspace(size))
    state = State(np.array(x), np.array(y), weights).map(backend.place, backend.place_vector)
    cyclic.prepare(state, nullcontext)
    scores = cyclic._scores
    reports = cyclic.run(state, backend.place_vector(weights), nullcontext)
    return *(backend.fetch(each) for each in (state.users, state.items, scores)), reports


@pytest.mark.parametrize(("d", "size", "kind"), CASES, ids=str)
def test_sweeps_agree(native, d, size, kind):
    problem, weights, x, y = make_case(d, kind)
    weights[7] = 0
    *wanted, expected = sweep(TWIN, problem, weights, x, y, size)
    *found, reports = sweep(native, problem, weights, x, y, size)
    for ours, theirs in zip(found, wanted, strict=True):
        close(ours, theirs, 1e-4)
    for ours, theirs, side in zip(reports, expected, (x, y), strict=True):
        ridge = np.arange(1.0, len(side) + 1)
        assert ours.change() == pytest.approx(theirs.change(), rel=1e-4)
        assert ours.penalty(ridge) == pytest.approx(theirs.penalty(ridge), rel=1e-4)
    if size >= d:  # one block is the exact solver
        for backend in (native, TWIN):
            fixed = fix(backend, y, 0.02 * gram(backend, y))
            exact_x, _ = solve(backend, problem.user_rows(weights), fixed, x, Exact())
            fixed = fix(backend, exact_x, 0.02 * gram(backend, exact_x, weights))
            exact_y, _ = solve(backend, problem.item_rows(weights), fixed, y, Exact())
            close(wanted[0], exact_x, 5e-5)
            close(wanted[1], exact_y, 5e-5)


@pytest.mark.parametrize(("d", "size", "kind"), [*CASES, *WIDE], ids=str)
def test_one_block_agrees_and_keeps_the_scores(native, d, size, kind):
    """And losses by scores are those by factors, with the ridge and without."""
    problem, weights, x, y = make_case(d, kind)
    rows, found = problem.user_rows(weights), []
    for backend in (native, TWIN):
        placed, items, users = (
            placed_rows(backend, rows),
            backend.place(y),
            backend.place(np.array(x)),
        )
        shared = backend.place(0.02 * gram(TWIN, y))
        block = slice(0, min(size, d))
        scores = backend.scores(placed.matrix, users, items)
        backend.update_block(placed, block, items, shared[:, block], users, scores)
        fresh = backend.scores(placed.matrix, users, items)
        close(backend.fetch(scores), backend.fetch(fresh), 2e-5)
        moved, side = backend.fetch(users), backend.fix(items, shared)
        for ridge in (None, rows.ridge):
            scored = backend.scored_losses(
                placed.matrix, problem.pair_weight, scores, users, shared, ridge
            )
            plain = losses(backend, rows.matrix, problem.pair_weight, moved, side, ridge)
            np.testing.assert_allclose(backend.fetch(scored), plain, rtol=1e-4)
        found.append((moved, backend.fetch(scores), plain))
    for ours, theirs in zip(*found, strict=True):
        close(ours, theirs, 1e-4)


@pytest.mark.parametrize("size", [4, 16])
def test_blocks_converge_to_the_exact_solution(native, size):
    problem, _, x, y = make_case(33, MAIN)
    for backend in (native, TWIN):
        rows, users = placed_rows(backend, problem.unit_user_rows), backend.place(np.array(x))
        items = backend.place(y)
        shared = 0.02 * backend.gram(items)
        side = backend.fix(items, shared)
        exact, _ = solve(backend, problem.unit_user_rows, side, np.zeros(x.shape), Exact())
        scores, errors = backend.scores(rows.matrix, users, items), []
        for _ in range(30):
            for block in blocks(33, size):
                backend.update_block(rows, block, items, shared[:, block], users, scores)
            errors.append(np.abs(backend.fetch(users) - exact).max() / np.abs(exact).max())
        assert errors[-1] < 3e-3
        assert errors[-1] < errors[0] / 30


def test_a_row_that_cannot_be_solved_is_named(native):
    problem, weights, x, y = make_case(33, ("normalised", "mean", False))
    rows = problem.user_rows(weights)
    rows.ridge[:], rows.gram_weight[:] = 0, 0
    rows, users, items = placed_rows(native, rows), native.place(np.array(x)), native.place(y)
    scores, shared = native.scores(rows.matrix, users, items), native.zeros(33, 16)
    with pytest.raises(SolveError, match="row 1:"):
        native.update_block(rows, slice(0, 16), items, shared, users, scores)


def test_threads_change_no_bit(native):
    results = []
    for threads in (1, 2, 5):
        *arrays, _ = sweep(with_threads(native, threads), *make_case(33, MAIN), 16)
        results.append(b"".join(array.tobytes() for array in arrays))
    assert len(set(results)) == 1
