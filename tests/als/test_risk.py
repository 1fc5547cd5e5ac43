"""Risks: the weights are the slopes of the total, and the limits are the ones they should be."""

import math

import numpy as np
import pytest

from safecf.als.kernels import KERNELS
from safecf.als.quantile import conditional_value_at_risk
from safecf.als.risk import Mean, Risk, SmoothedCVaR

every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
RISKS = [Mean(), Mean(0.3), SmoothedCVaR(0.3, KERNELS["gaussian"], math.inf)] + [
    SmoothedCVaR(tail, kernel, bandwidth)
    for kernel in KERNELS.values()
    for tail, bandwidth in [(0.3, 0.15), (0.7, 0.4), (1.0, 0.2)]
]
every_risk = pytest.mark.parametrize("risk", RISKS, ids=str)


def some_losses(n=40, seed=0):
    return 0.5 * np.random.default_rng(seed).beta(4, 3, n)


def best(risk: Risk, losses, epochs=10):
    xi = risk.start(losses)
    for _ in range(epochs):
        xi = risk.quantile(losses, xi, None)
    return xi


@every_risk
def test_the_weights_are_the_slopes_of_the_total(risk):
    losses, step = some_losses(), 1e-6
    for xi in (0.2, best(risk, losses), 0.4):
        slopes = [
            (risk.total(losses + move, xi) - risk.total(losses - move, xi)) / (2 * step)
            for move in step * np.eye(losses.size)
        ]
        np.testing.assert_allclose(risk.weights(losses, xi), slopes, atol=2e-6)


@every_risk
def test_the_slope_of_the_total_in_xi_is_the_missing_weight(risk):
    losses, step = some_losses(), 1e-6
    for xi in (0.1, 0.25, 0.4):
        slope = (risk.total(losses, xi + step) - risk.total(losses, xi - step)) / (2 * step)
        missing = risk.tail * losses.size - risk.weights(losses, xi).sum()
        assert slope == pytest.approx(missing, abs=1e-5)


@every_risk
def test_the_mean_weight_is_the_tail(risk):
    losses = some_losses()
    weights = risk.weights(losses, best(risk, losses))
    assert weights.dtype == np.float64
    assert weights.mean() == pytest.approx(risk.tail, abs=1e-12)


@every_risk
def test_the_worse_the_loss_the_larger_the_weight(risk):
    losses = np.sort(some_losses())
    weights = risk.weights(losses, best(risk, losses))
    assert np.all(np.diff(weights) >= 0)
    assert np.all((weights >= 0) & (weights <= 1))


@every_risk
def test_the_start_is_the_mean_loss(risk):
    assert risk.start(np.array([1.0, 2.0, 6.0])) == pytest.approx(3.0)


@every_risk
def test_single_precision_losses_are_computed_in_double(risk):
    single = some_losses().astype(np.float32)
    double = single.astype(np.float64)
    xi = best(risk, single)
    assert xi == best(risk, double)
    assert risk.total(single, xi) == risk.total(double, xi)
    np.testing.assert_array_equal(risk.weights(single, xi), risk.weights(double, xi))


@every_kernel
def test_the_total_is_that_of_the_definition(kernel):
    losses, xi, risk = some_losses(), 0.3, SmoothedCVaR(0.3, kernel, 0.15)
    ramps = kernel.smoothed_check(losses - xi, 0.15, 1.0)
    assert risk.total(losses, xi) == pytest.approx(0.3 * losses.size * xi + ramps.sum(), rel=1e-13)


@every_kernel
@pytest.mark.parametrize("tail", [0.05, 0.3, 1.0])
def test_the_total_tends_to_the_cvar_as_the_bandwidth_shrinks(kernel, tail):
    losses = some_losses(101)
    for bandwidth in (1e-4, 1e-7, 1e-12):
        risk = SmoothedCVaR(tail, kernel, bandwidth)
        cvar = conditional_value_at_risk(losses, tail)
        total = risk.total(losses, best(risk, losses))
        assert total / (tail * losses.size) == pytest.approx(cvar, abs=10 * bandwidth / tail)


@every_kernel
def test_the_infinite_bandwidth_is_the_mean(kernel):
    losses, cvar, mean = some_losses(), SmoothedCVaR(0.3, kernel, math.inf), Mean(0.3)
    xi = cvar.quantile(losses, 7.0, None)
    assert xi == mean.quantile(losses, 7.0, None) == losses.mean()
    assert cvar.total(losses, xi) == mean.total(losses, xi)
    np.testing.assert_array_equal(cvar.weights(losses, xi), mean.weights(losses, xi))


@every_kernel
@pytest.mark.parametrize("tail", [0.3, 0.7, 1.0])
def test_large_bandwidths_tend_to_the_mean_up_to_a_constant(kernel, tail):
    losses, others = some_losses(), some_losses(seed=1) + 0.1
    for bandwidth, tolerance in [(1e4, 1e-3), (1e6, 1e-5)]:
        risk = SmoothedCVaR(tail, kernel, bandwidth)
        change = risk.total(losses, best(risk, losses)) - risk.total(others, best(risk, others))
        mean_change = Mean(tail).total(losses, 0.0) - Mean(tail).total(others, 0.0)
        assert change == pytest.approx(mean_change, abs=tolerance)


@every_kernel
@pytest.mark.parametrize("bandwidth", [1e-12, 1e16, 1e300])
def test_extreme_bandwidths_and_losses_stay_finite(kernel, bandwidth):
    for losses in (some_losses(), np.array([0.0, 1e-300, 1e10]), np.zeros(3)):
        risk = SmoothedCVaR(0.3, kernel, bandwidth)
        xi = best(risk, losses)
        assert np.isfinite(xi)
        assert np.isfinite(risk.total(losses, xi))
        assert np.all(np.isfinite(risk.weights(losses, xi)))


@every_kernel
def test_diverging_losses_raise_no_floating_point_warning(kernel):
    risk, losses = SmoothedCVaR(0.5, kernel, 1e-12), np.array([0.0, 1e300])
    xi = best(risk, losses)
    np.testing.assert_allclose(risk.weights(losses, xi), [0, 1], atol=1e-12)
    assert risk.total(losses, xi) >= 1e300 * 0.5


def test_the_options_reach_the_quantile_step():
    losses, kernel = some_losses(1000), KERNELS["gaussian"]
    one = SmoothedCVaR(0.3, kernel, 0.15, steps=1).quantile(losses, 0.0, None)
    five = SmoothedCVaR(0.3, kernel, 0.15, steps=5).quantile(losses, 0.0, None)
    assert one != pytest.approx(five, abs=1e-3)
    sampled = SmoothedCVaR(0.3, kernel, 0.15, sample=0.1)
    rng = np.random.default_rng(0)
    assert sampled.quantile(losses, 0.0, rng) != pytest.approx(five, abs=1e-6)


@pytest.mark.parametrize(
    ("option", "value"),
    [("tail", v) for v in (0.0, -0.1, 1.1, math.nan)]
    + [("bandwidth", v) for v in (0.0, -1.0, 1e301, math.nan)]
    + [("steps", 0)]
    + [("sample", v) for v in (0.0, 1.5, math.nan)],
)
def test_bad_options_are_refused_by_name(option, value):
    options = {"tail": 0.3, "bandwidth": 0.15, option: value}
    with pytest.raises(ValueError, match=f"^{option}=.* try "):
        SmoothedCVaR(kernel=KERNELS["gaussian"], **options)


@pytest.mark.parametrize("weight", [0.0, -1.0, math.inf, math.nan])
def test_a_bad_weight_is_refused(weight):
    with pytest.raises(ValueError, match=r"^weight=.* try "):
        Mean(weight)
