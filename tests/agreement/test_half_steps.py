"""Both half-steps on every backend against the float64 reference: method by method."""

import numpy as np
import pytest

from safecf.als.optimizers import SGD
from safecf.als.solvers import CG, Exact, Gradient, SpectralCG
from tests.agreement.placed import (
    TWIN,
    WIDE,
    WIDTHS,
    close,
    every_case,
    fix,
    floats,
    gradients,
    gram,
    half_steps,
    losses,
    solve,
    solved,
)

# Ended by their number of iterations: the same iterates, step by step; and how close float32 is.
SOLVERS = {Exact(): 2e-5, CG(4, 1e-6): 1e-3, SpectralCG(1e-6, 3): 1e-4}
ROUGH, TIGHT, STEP = SpectralCG(1e-3), SpectralCG(1e-6, 500), Gradient(-1.0, SGD())


@every_case
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: s.name)
def test_rows_are_solved_alike(native, d, kind, solver):
    if solver.name == "spectral-cg" and d in WIDE:
        pytest.skip("the reference takes an eigenbasis for each row")
    for rows, fixed, shared, start, wanted, expected in solved(d, kind, solver):
        found, actual = solve(native, rows, fix(native, fixed, shared), start, solver)
        close(found, wanted, SOLVERS[solver])
        ridge, count = 1 + np.arange(len(start)), np.arange(len(start)) % 3.0
        assert actual.change() == pytest.approx(expected.change(), rel=1e-4)
        assert actual.change() == pytest.approx(np.sum((found - start) ** 2), rel=1e-4)
        assert actual.penalty(ridge) == pytest.approx(expected.penalty(ridge), rel=1e-4)
        norms = [actual.penalty(row) for row in np.eye(len(start))]
        np.testing.assert_allclose(norms, np.sum(found**2, axis=1), rtol=1e-4, atol=1e-10)
        assert actual.largest() == pytest.approx(expected.largest(), rel=1e-4)
        bound = 0.3 * expected.largest()
        assert actual.below(bound, count) == expected.below(bound, count)


@every_case
def test_spectral_cg_ends_at_the_solution(native, d, kind):
    for rows, fixed, shared, start, exact, _ in solved(d, kind, Exact()):
        found, _ = solve(native, rows, fix(native, fixed, shared), start, TIGHT)
        close(found, exact, 1e-4 if d in WIDE else 2e-5)


@every_case
def test_gramians_losses_and_gradients_agree(native, d, kind):
    for rows, fixed, shared, start in half_steps(d, kind):
        weight = np.random.default_rng(0).random(len(start))
        for given in (None, weight):
            close(gram(native, start, given), gram(TWIN, start, given), 1e-5)
        close(gram(native, fixed, None, None, ROUGH), gram(TWIN, fixed), 4e-3)
        sides = fix(native, fixed, shared), fix(TWIN, fixed, shared)
        both = native, TWIN
        for ridge in (None, rows.ridge):
            found = [
                losses(each, rows.matrix, weight, start, side, ridge)
                for each, side in zip(both, sides, strict=True)
            ]
            np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-7)
        slopes = [
            gradients(b, rows, side, start, STEP) for b, side in zip(both, sides, strict=True)
        ]
        close(*slopes, 2e-5)


COUNTS = (1, 2, 11, 12, 13, 255, 256, 257, 2049, 3001, 5003, 7)


def test_gramians_of_few_and_many_rows_agree(native):
    for d, count in zip(2 * WIDTHS, COUNTS + COUNTS[::-1], strict=True):
        rng = np.random.default_rng(count)
        rows, weight = floats(rng.normal(size=(count, d))), rng.uniform(0, 1, count)
        for given in (None, weight):
            actual, whole = gram(native, rows, given), gram(TWIN, rows, given)
            close(actual, whole, 1e-5)
            if native.same_bits:
                np.testing.assert_array_equal(actual, actual.T)
            for block in (slice(0, d), slice(d // 3, d // 2 + 1), slice(d - 1, d)):
                close(gram(native, rows, given, block), whole[:, block], 1e-4)


# In the eigenbasis of G


def rotated(fixed, shared, start):
    """Return both sides in the eigenbasis of G, its eigenvalues, and the basis."""
    values, basis = np.linalg.eigh(shared)
    return fixed @ basis, start @ basis, values, basis


def fix_rotated(backend, fixed, spectrum, solver):
    return backend.fix_rotated(backend.place(fixed), spectrum, solver)


@every_case
def test_rotated_sides_have_the_same_scores_and_a_diagonal_gramian(native, d, kind):
    _, fixed, _, start = next(half_steps(d, kind))
    for backend, solver, bound in (
        (TWIN, TIGHT, 1e-9),
        (native, TIGHT, 2e-5),
        (native, ROUGH, 4e-3),
    ):
        items, users = (backend.place(np.array(each)) for each in (fixed, start))
        spectrum = backend.rotate(items, users, backend.gram(items), solver)
        close(backend.fetch(users) @ backend.fetch(items).T, start @ fixed.T, max(bound, 1e-6))
        values = backend.fetch(spectrum)
        close(gram(TWIN, backend.fetch(items)), np.diag(values), max(bound, 1e-6))


@every_case
def test_low_precision_agrees_up_to_its_rounding(native, d, kind):
    """A backend may read the fixed side in low precision at a loose tolerance."""
    rng = np.random.default_rng(d)
    for rows, *sides, exact, _ in solved(d, kind, Exact()):
        fixed, start, spectrum, basis = rotated(*sides)
        wanted, exact_side = exact @ basis, fix_rotated(TWIN, fixed, spectrum, Exact())
        side = fix_rotated(native, fixed, spectrum, ROUGH)
        found, _ = solve(native, rows, side, start, SpectralCG(1e-6))
        assert np.linalg.norm(found - wanted) <= 8e-3 * np.linalg.norm(exact)
        weight = rng.random(len(start))
        np.testing.assert_allclose(
            losses(native, rows.matrix, weight, found, side),
            losses(TWIN, rows.matrix, weight, found, exact_side),
            rtol=8e-3,
            atol=4e-4,
        )


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: s.name)
def test_a_diagonal_is_as_good_as_the_gramian_that_has_it(native, solver):
    for rows, *both in half_steps(33, ("normalised", "cvar", True)):
        fixed, start, spectrum, _ = rotated(*both)
        sides = fix_rotated(native, fixed, spectrum, solver), fix(native, fixed, np.diag(spectrum))
        found = [solve(native, rows, side, start, solver)[0] for side in sides]
        np.testing.assert_allclose(*found, rtol=1e-3, atol=1e-4 * np.abs(start).max())
