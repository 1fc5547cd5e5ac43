"""The native quantile step against the formulas of `als.kernels`."""

import numpy as np
import pytest

from safecf import _core
from safecf.als.kernels import KERNELS

SIZES = (1, 15, 16, 17, 4095, 4096, 4097, 9000)
BANDWIDTHS = (1e-305, 1e-9, 0.15, 3.0, 1e9, 1e300)


@pytest.fixture(params=_core.isas())
def isa(request):
    return request.param


def population(size, *, counted, seed=0):
    rng = np.random.default_rng([size, seed])
    losses = rng.lognormal(-0.5, 0.6, size)
    return losses, rng.uniform(0.2, 3, size) if counted else None


def test_the_core_has_the_papers_kernels_and_more():
    assert set(_core.kernels) == {"gaussian", "epanechnikov", "logistic", "uniform", "triangular"}
    assert set(_core.kernels) <= set(KERNELS)


@pytest.mark.parametrize("name", _core.kernels)
@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_sums_agree_with_the_formulas(isa, name, counted, size):
    losses, counts = population(size, counted=counted)
    c, kernel, tail = np.ones(size) if counts is None else counts, KERNELS[name], 0.3
    for h in BANDWIDTHS:
        for xi in (0.7, float(losses[0]), float(losses.max()) + 2 * h):
            u = losses - xi
            with np.errstate(over="ignore"):
                t = u / h
            found = _core.quantile_sums(losses, counts, name, h, tail, xi, _core.Execution(2, isa))
            check = kernel.smoothed_check(u, h, 1 - tail)
            expected = [np.sum(c * each) for each in (kernel.cdf(t), kernel.density(t), check)]
            np.testing.assert_allclose(found[:2], expected[:2], rtol=1e-12, atol=1e-300)
            # the terms of the check function may cancel
            scale = np.sum(c * (h + np.abs(u)))
            np.testing.assert_allclose(found[2], expected[2], rtol=1e-12, atol=1e-14 * scale)
            np.testing.assert_allclose(found[3], np.sum(c * np.abs(u)), rtol=1e-12)


@pytest.mark.parametrize("name", _core.kernels)
@pytest.mark.parametrize("size", SIZES)
def test_weights_agree_with_the_formula(isa, name, size):
    losses, _ = population(size, counted=False)
    losses[: size // 4] *= 1e3
    for h in BANDWIDTHS:
        out = np.full(size, np.nan)
        _core.kernel_weights(losses, name, h, 0.7, out, _core.Execution(2, isa))
        with np.errstate(over="ignore"):
            expected = KERNELS[name].cdf((losses - 0.7) / h)
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("name", _core.kernels)
def test_weights_far_out_are_exact_too(isa, name):
    t = np.concatenate([np.linspace(-45, 45, 5001), [1e5, -1e5, 1e308, -1e308, np.inf, -np.inf]])
    out = np.empty_like(t)
    _core.kernel_weights(t, name, 1.0, 0.0, out, _core.Execution(1, isa))
    np.testing.assert_allclose(out, KERNELS[name].cdf(t), rtol=1e-12, atol=1e-307)
    assert (np.diff(out[:5001]) >= -1e-16).all()


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_the_summary_is_that_of_numpy(isa, counted, size):
    losses, counts = population(size, counted=counted)
    c = np.ones(size) if counts is None else counts
    found = _core.loss_summary(losses, counts, _core.Execution(2, isa))
    np.testing.assert_allclose(found[:2], [c.sum(), c @ losses], rtol=1e-13)
    assert found[2:] == (losses.min(), losses.max())


def test_what_is_no_number_stays_none(isa):
    losses, _ = population(5000, counted=False)
    losses[4321] = np.nan
    run = _core.Execution(2, isa)
    assert np.isnan(_core.loss_summary(losses, None, run)[1:]).all()
    for name in KERNELS:
        weight, *_, check, distance = _core.quantile_sums(losses, None, name, 0.1, 0.3, 0.5, run)
        assert np.isnan([weight, check, distance]).all()


@pytest.mark.parametrize("name", _core.kernels)
def test_the_number_of_threads_changes_no_bit(isa, name):
    losses, counts = population(50_000, counted=True)
    found = set()
    for threads in (1, 2, 3):
        run, out = _core.Execution(threads, isa), np.empty(50_000)
        _core.kernel_weights(losses, name, 0.2, 0.8, out, run)
        sums = _core.quantile_sums(losses, counts, name, 0.2, 0.3, 0.8, run)
        found.add((sums, _core.loss_summary(losses, counts, run), out.tobytes()))
    assert len(found) == 1


def test_what_makes_no_sense_is_refused():
    run, three = _core.Execution(1), np.ones(3)
    with pytest.raises(ValueError, match="there are no losses"):
        _core.loss_summary(np.empty(0), None, run)
    with pytest.raises(ValueError, match="there are no losses"):
        _core.quantile_sums(np.empty(0), None, "gaussian", 1.0, 0.3, 0.0, run)
    with pytest.raises(ValueError, match="one count per loss"):
        _core.loss_summary(three, np.ones(2), run)
    with pytest.raises(ValueError, match="no native kernel 'cosine'; there are 'gaussian'"):
        _core.quantile_sums(three, None, "cosine", 1.0, 0.3, 0.0, run)
    for h in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="bandwidth is not positive and finite"):
            _core.quantile_sums(three, None, "gaussian", h, 0.3, 0.0, run)
    with pytest.raises(ValueError, match="one weight per loss"):
        _core.kernel_weights(three, "gaussian", 1.0, 0.0, np.ones(2), run)
