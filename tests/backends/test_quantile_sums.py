"""The native quantile step against the formulas of `als.kernels`."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from safecf import _core
from safecf.als.kernels import KERNELS

names = st.sampled_from(_core.kernels)
isas = st.sampled_from(_core.isas())
sizes = st.integers(1, 40) | st.sampled_from([4095, 4096, 4097, 9000])
bandwidths = st.sampled_from([1e-305, 1e-9, 0.15, 3.0, 1e9, 1e300])


def test_the_core_has_the_papers_kernels_and_more():
    assert {"gaussian", "epanechnikov", "logistic", "uniform", "triangular"} == set(_core.kernels)


@settings(max_examples=400)
@given(names, isas, sizes, bandwidths, st.booleans(), st.sampled_from(["inside", "one", "beyond"]))
@example("logistic", "generic", 9000, 0.15, True, "inside")
def test_sums_and_weights_are_those_of_the_formulas(name, isa, size, h, counted, place):
    rng = np.random.default_rng(size)
    losses, counts = rng.lognormal(-0.5, 0.6, size), rng.uniform(0.2, 3, size) if counted else None
    losses[: size // 4] *= rng.choice([1, 1e3]) if h > 1e-300 else 1  # t stays finite
    xi = {"inside": 0.7, "one": float(losses[0]), "beyond": float(losses.max()) + 2 * h}[place]
    c, kernel, u = np.ones(size) if counts is None else counts, KERNELS[name], losses - xi
    with np.errstate(over="ignore"):
        t = u / h
    found = []
    for threads in (2, 1, 3):
        run, weights = _core.Execution(threads, isa), np.full(size, np.nan)
        _core.kernel_weights(losses, name, h, xi, weights, run)
        sums = _core.quantile_sums(losses, counts, name, h, 0.3, xi, run)
        found.append((*sums, *_core.loss_summary(losses, counts, run), weights.tobytes()))
    assert found[0] == found[1] == found[2]
    weight, density, check, distance, total, mass, low, high, _ = found[0]
    np.testing.assert_allclose(weights, kernel.cdf(t), rtol=1e-12, atol=1e-300)
    expected = c @ kernel.cdf(t), c @ kernel.density(t), c @ np.abs(u), c.sum(), c @ losses
    np.testing.assert_allclose(
        [weight, density, distance, total, mass], expected, rtol=1e-12, atol=1e-300
    )
    scale = np.sum(c * (h + np.abs(u)))  # the terms of the check function may cancel
    smoothed = c @ kernel.smoothed_check(u, h, 0.7)
    np.testing.assert_allclose(check, smoothed, rtol=1e-12, atol=1e-14 * scale)
    assert (low, high) == (losses.min(), losses.max())


@pytest.mark.parametrize("name", _core.kernels)
def test_weights_far_out_are_exact_too(name):
    t = np.concatenate([np.linspace(-45, 45, 5001), [1e5, -1e5, 1e308, -1e308, np.inf, -np.inf]])
    for isa in _core.isas():
        out = np.empty_like(t)
        _core.kernel_weights(t, name, 1.0, 0.0, out, _core.Execution(1, isa))
        np.testing.assert_allclose(out, KERNELS[name].cdf(t), rtol=1e-12, atol=1e-307)
        assert (np.diff(out[:5001]) >= -1e-16).all()


@pytest.mark.parametrize("isa", _core.isas())
def test_what_is_no_number_stays_none(isa):
    losses, run = np.linspace(0, 1, 5000), _core.Execution(2, isa)
    losses[4321] = np.nan
    assert np.isnan(_core.loss_summary(losses, None, run)[1:]).all()
    for name in KERNELS:
        weight, *_, check, distance = _core.quantile_sums(losses, None, name, 0.1, 0.3, 0.5, run)
        assert np.isnan([weight, check, distance]).all()
    # the bandwidth is so small that t is infinite: inf, not NaN, for every length of a block
    for count in range(1, 20):
        far = np.full(count, 1e10)
        sums = _core.quantile_sums(far, None, "gaussian", 1e-305, 0.3, 0.0, run)
        assert sums[:3] == (count, 0, np.inf)
