"""Factors in the eigenbasis of G: turned, made ready by its diagonal alone, and in bfloat16."""

import numpy as np
import pytest

from safecf import _core
from safecf.als.solvers import CG, Exact, SpectralCG
from safecf.backends import NumpyBackend
from tests.agreement.test_backends import FACTORS, SOLVERS, floats, half_steps
from tests.problems import LOSSES

TWIN = NumpyBackend()


def bfloat16_of(native, values):
    """The numbers in the bfloat16 words of values whose number is a multiple of 32."""
    words = np.empty((len(values), values.shape[1] // 2), dtype=np.uint32)
    _core.to_bfloat16(values, words, native.execution)
    lanes = {"avx512": 16, "avx2": 8}.get(native.isa, 4)
    blocks = words.reshape(len(values), -1, 1, lanes)
    pairs = np.concatenate([blocks << 16, blocks], axis=2)
    return pairs.view(np.float32).reshape(values.shape)


def test_bfloat16_factors_are_off_by_the_last_of_eight_bits_at_most(native):
    rng = np.random.default_rng(0)
    sizes = 2.0 ** rng.integers(-100, 60, (300, 64)).astype(np.float32)
    values = floats(rng.normal(size=(300, 64)) * sizes)
    found = bfloat16_of(native, values)
    assert (np.abs(found - values) <= 2.0**-8 * np.abs(values)).all()
    assert (np.abs(found - values) > 2.0**-9 * np.abs(values)).any()


def test_zeros_are_zeros_in_bfloat16(native):
    """Beside anything: the upper number of a word has the lower one's bits behind its own."""
    values = floats(np.random.default_rng(0).normal(size=(40, 64)))
    values[::2, 16:48] = 0
    values[1] = 0
    found = bfloat16_of(native, values)
    assert (np.abs(found[values == 0]) < np.finfo(np.float32).tiny).all()
    assert (found[1] == 0).all()


@pytest.mark.parametrize("factors", [5, 16, 33, 300])
@pytest.mark.parametrize("loss", LOSSES)
def test_bfloat16_factors_agree_up_to_their_rounding(native, loss, factors):
    rng = np.random.default_rng(factors)
    for rows, fixed, gram, start in half_steps(loss, "cvar", factors, True, rng):
        values = TWIN.turn(fixed, start, gram)
        exact = start.copy()
        TWIN.solve_rows(rows, TWIN.prepare_turned(fixed, values), exact, Exact())
        found, pair_weight = floats(start), rng.random(len(start))
        prepared = native.prepare_turned(floats(fixed), values, rough=True)
        assert prepared.rotated.dtype == np.uint32
        native.solve_rows(rows, prepared, found, SpectralCG(1e-6))
        assert np.linalg.norm(found - exact) <= 4e-3 * np.linalg.norm(exact)
        np.testing.assert_allclose(
            native.losses(rows.matrix, pair_weight, found, prepared),
            TWIN.losses(rows.matrix, pair_weight, found, TWIN.prepare_turned(fixed, values)),
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
        found, side = [floats(start), floats(start)], floats(fixed)
        ways = native.prepare_turned(side, values), native.prepare(side, np.diag(values))
        assert ways[0].basis is None
        for factors, prepared in zip(found, ways, strict=True):
            native.solve_rows(rows, prepared, factors, solver)
        np.testing.assert_allclose(*found, rtol=1e-3, atol=1e-4 * np.abs(start).max())


def test_only_loose_tolerances_allow_bfloat16():
    assert SpectralCG(1e-3).rough
    assert not any(solver.rough for solver in (SpectralCG(9e-4), CG(5, 1e-2), Exact()))
