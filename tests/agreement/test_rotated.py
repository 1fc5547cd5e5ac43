"""Factors in the eigenbasis of G: rotated, fixed by its diagonal alone, in low precision."""

import numpy as np
import pytest

from safecf.als.solvers import Exact, SpectralCG
from tests.agreement.placed import TWIN, fix, losses, solve
from tests.agreement.test_backends import FACTORS, SOLVERS, half_steps
from tests.problems import LOSSES


def rotated(fixed, shared, start):
    """Return both sides in the eigenbasis of G, and its eigenvalues."""
    fixed, start = TWIN.place(np.array(fixed)), TWIN.place(np.array(start))
    return fixed, start, TWIN.rotate(fixed, start, TWIN.place(shared), SpectralCG())


def fix_rotated(backend, fixed, spectrum, solver):
    return backend.fix_rotated(backend.place(fixed), spectrum, solver)


@pytest.mark.parametrize("factors", [5, 16, 33, 300])
@pytest.mark.parametrize("loss", LOSSES)
def test_low_precision_agrees_up_to_its_rounding(native, loss, factors):
    """A backend may read the fixed side in low precision at this tolerance."""
    rng, loose = np.random.default_rng(factors), SpectralCG(1e-3)
    for rows, *sides in half_steps(loss, "cvar", factors, True, rng):
        fixed, start, spectrum = rotated(*sides)
        exact_side = fix_rotated(TWIN, fixed, spectrum, Exact())
        exact, _ = solve(TWIN, rows, exact_side, start, Exact())
        side = fix_rotated(native, fixed, spectrum, loose)
        found, _ = solve(native, rows, side, start, SpectralCG(1e-6))
        assert np.linalg.norm(found - exact) <= 4e-3 * np.linalg.norm(exact)
        pair_weight = rng.random(len(start))
        np.testing.assert_allclose(
            losses(native, rows.matrix, pair_weight, found, side),
            losses(TWIN, rows.matrix, pair_weight, found, exact_side),
            rtol=8e-3,
            atol=4e-4,
        )


@pytest.mark.parametrize("factors", FACTORS)
def test_rotated_sides_have_the_same_scores_and_a_diagonal_gramian(native, factors):
    for backend in (native, TWIN):
        rng = np.random.default_rng(factors)
        items, users = (backend.place(rng.normal(size=(count, factors))) for count in (40, 30))
        scores = backend.fetch(users) @ backend.fetch(items).T
        spectrum = backend.rotate(items, users, backend.gram(items), SpectralCG(1e-6))
        found = backend.fetch(users) @ backend.fetch(items).T
        np.testing.assert_allclose(found, scores, atol=1e-5 * np.abs(scores).max())
        diagonal = backend.fetch(backend.gram(items))
        values = backend.fetch(spectrum)
        np.testing.assert_allclose(diagonal, np.diag(values), atol=1e-5 * diagonal.max())


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)
def test_a_diagonal_is_as_good_as_the_gramian_that_has_it(native, solver):
    rng = np.random.default_rng(7)
    for rows, *both in half_steps("normalised", "cvar", 33, True, rng):
        fixed, start, spectrum = rotated(*both)
        sides = fix_rotated(native, fixed, spectrum, solver), fix(native, fixed, np.diag(spectrum))
        found = [solve(native, rows, side, start, solver)[0] for side in sides]
        np.testing.assert_allclose(*found, rtol=1e-3, atol=1e-4 * np.abs(start).max())
