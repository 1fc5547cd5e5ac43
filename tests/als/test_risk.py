"""Risks: the weights are the slopes of the total, and the limits are the ones they should be."""

import itertools
import math
from functools import partial

import numpy as np
import pytest

from safecf.als.kernels import KERNELS
from safecf.als.population import Population
from safecf.als.risk import CVaR, Mean, Risk, SmoothedCVaR
from tests.helpers import refused
from tests.reference import gradient

every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
SETTINGS = [(0.3, 0.15), (0.7, 0.4), (1.0, 0.2), (0.3, 0.4), (0.7, 0.15)]
RISKS = [Mean(0.3), SmoothedCVaR(0.3, KERNELS["gaussian"], math.inf)] + [
    SmoothedCVaR(tail, kernel, bandwidth)
    for kernel, (tail, bandwidth) in zip(KERNELS.values(), SETTINGS, strict=True)
]
every_risk = pytest.mark.parametrize("risk", RISKS, ids=str)


def some_users(n=40, seed=0, more=0.0):
    return Population(0.5 * np.random.default_rng(seed).beta(4, 3, n) + more)


def best(risk: Risk, population, epochs=10):
    xi = risk.start(population)
    for _ in range(epochs):
        xi = risk.quantile(population, xi, None)
    return xi


@every_risk
def test_the_weights_are_the_slopes_of_the_total(risk):
    """In loss_u it is count_u w_u."""
    losses = some_users().losses
    for counts in (None, np.random.default_rng(1).uniform(0.5, 3, losses.size)):
        users = Population(losses, counts)
        for xi in (0.2, best(risk, users), 0.4):

            def total(at, counts=counts, xi=xi):
                return risk.total(Population(at, counts), xi)

            slopes = gradient(total, losses, step=1e-6)
            weights = risk.weights(users, xi)
            expected = weights if counts is None else counts * weights
            np.testing.assert_allclose(slopes, expected, atol=6e-6)


@every_risk
def test_the_slope_of_the_total_in_xi_is_the_missing_weight(risk):
    users, step = some_users(), 1e-6
    for xi in (0.1, 0.25, 0.4):
        slope = (risk.total(users, xi + step) - risk.total(users, xi - step)) / (2 * step)
        missing = risk.tail * users.size - risk.weights(users, xi).sum()
        assert slope == pytest.approx(missing, abs=1e-5)


@every_risk
def test_the_mean_weight_is_the_tail(risk):
    users = some_users()
    weights = risk.weights(users, best(risk, users))
    assert weights.dtype == np.float64
    assert weights.mean() == pytest.approx(risk.tail, abs=1e-12)


@every_risk
def test_the_worse_the_loss_the_larger_the_weight(risk):
    users = Population(np.sort(some_users().losses))
    weights = risk.weights(users, best(risk, users))
    assert np.all(np.diff(weights) >= 0)
    assert np.all((weights >= 0) & (weights <= 1))


@every_risk
def test_single_precision_losses_are_computed_in_double(risk):
    assert risk.start(Population([1.0, 2.0, 6.0])) == pytest.approx(3.0)
    losses = some_users().losses.astype(np.float32)
    single, double = Population(losses), Population(losses.astype(np.float64))
    xi = best(risk, single)
    assert xi == best(risk, double)
    assert risk.total(single, xi) == risk.total(double, xi)
    np.testing.assert_array_equal(risk.weights(single, xi), risk.weights(double, xi))


@every_kernel
def test_the_total_is_that_of_the_definition(kernel):
    users, xi, risk = some_users(), 0.3, SmoothedCVaR(0.3, kernel, 0.15)
    ramps = kernel.smoothed_check(users.losses - xi, 0.15, 1.0)
    assert risk.total(users, xi) == pytest.approx(0.3 * users.size * xi + ramps.sum(), rel=1e-13)


@every_kernel
def test_the_total_tends_to_the_cvar_as_the_bandwidth_shrinks(kernel):
    users = some_users(101)
    for tail, bandwidth in itertools.product((0.05, 0.3, 1.0), (1e-4, 1e-7, 1e-12)):
        risk = SmoothedCVaR(tail, kernel, bandwidth)
        cvar = users.tail_mean(tail)
        total = risk.total(users, best(risk, users))
        assert total / (tail * users.size) == pytest.approx(cvar, abs=10 * bandwidth / tail)


@every_kernel
def test_the_infinite_bandwidth_is_the_mean(kernel):
    users, cvar, mean = some_users(), SmoothedCVaR(0.3, kernel, math.inf), Mean(0.3)
    xi = cvar.quantile(users, 7.0, None)
    assert xi == mean.quantile(users, 7.0, None) == users.losses.mean()
    assert cvar.total(users, xi) == mean.total(users, xi)
    np.testing.assert_array_equal(cvar.weights(users, xi), mean.weights(users, xi))


@every_kernel
def test_large_bandwidths_tend_to_the_mean_up_to_a_constant(kernel):
    users, others = some_users(), some_users(seed=1, more=0.1)
    for tail, (bandwidth, tolerance) in itertools.product((0.3, 1.0), [(1e4, 1e-3), (1e6, 1e-5)]):
        risk = SmoothedCVaR(tail, kernel, bandwidth)
        change = risk.total(users, best(risk, users)) - risk.total(others, best(risk, others))
        mean_change = Mean(tail).total(users, 0.0) - Mean(tail).total(others, 0.0)
        assert change == pytest.approx(mean_change, abs=tolerance)


@every_kernel
def test_extreme_bandwidths_and_losses_stay_finite(kernel):
    extreme = some_users(), Population([0.0, 1e-300, 1e10]), Population(np.zeros(3))
    for users, bandwidth in itertools.product(extreme, [1e-12, 1e16, 1e300]):
        risk = SmoothedCVaR(0.3, kernel, bandwidth)
        xi = best(risk, users)
        assert np.isfinite(xi)
        assert np.isfinite(risk.total(users, xi))
        assert np.all(np.isfinite(risk.weights(users, xi)))


@every_kernel
def test_diverging_losses_raise_no_floating_point_warning(kernel):
    risk, users = SmoothedCVaR(0.5, kernel, 1e-12), Population([0.0, 1e300])
    xi = best(risk, users)
    np.testing.assert_allclose(risk.weights(users, xi), [0, 1], atol=1e-12)
    assert risk.total(users, xi) >= 1e300 * 0.5


def test_the_options_reach_the_quantile_step():
    users, kernel = some_users(1000), KERNELS["gaussian"]
    one = SmoothedCVaR(0.3, kernel, 0.15, steps=1).quantile(users, 0.0, None)
    five = SmoothedCVaR(0.3, kernel, 0.15, steps=5).quantile(users, 0.0, None)
    assert one != pytest.approx(five, abs=1e-3)
    sampled = SmoothedCVaR(0.3, kernel, 0.15, sample=0.1)
    rng = np.random.default_rng(0)
    assert sampled.quantile(users, 0.0, rng) != pytest.approx(five, abs=1e-6)


SMOOTHED = partial(SmoothedCVaR, kernel=KERNELS["gaussian"])
BAD = [
    (partial(SMOOTHED, bandwidth=0.15), "tail", (0.0, -0.1, 1.1, math.nan)),
    (partial(SMOOTHED, tail=0.3), "bandwidth", (0.0, -1.0, 1e301, math.nan)),
    (partial(SMOOTHED, tail=0.3, bandwidth=0.15), "steps", (0,)),
    (partial(SMOOTHED, tail=0.3, bandwidth=0.15), "sample", (0.0, 1.5, math.nan)),
    (CVaR, "tail", (0.0, -0.1, 1.1, math.nan)),
    (Mean, "weight", (0.0, -1.0, math.inf, math.nan)),
]


@pytest.mark.parametrize(("kind", "option", "values"), BAD)
def test_bad_options_are_refused_by_name(kind, option, values):
    for value in values:
        with refused(ValueError, f"{option}="):
            kind(**{option: value})


@pytest.mark.parametrize("counts", [None, np.random.default_rng(1).uniform(0.5, 3, 40)])
@pytest.mark.parametrize("tail", [0.05, 0.71, 1.0])
def test_the_exact_cvar(tail, counts):
    """At the exact quantile the total is the CVaR, and no other xi gives less."""
    users, risk = Population(some_users().losses, counts), CVaR(tail)
    assert risk.ranked(users) is users
    assert risk.start(users) == pytest.approx(users.mean(users.losses))
    xi = risk.quantile(users, 7.0, None)
    assert xi == users.value_at_risk(tail)
    best, scale = risk.total(users, xi), tail * users.size
    assert best / scale == pytest.approx(users.tail_mean(tail), rel=1e-12)
    assert all(risk.total(users, other) >= best - 1e-12 for other in np.linspace(0, 0.6, 101))
    weights = risk.weights(users, xi)
    np.testing.assert_array_equal(weights, users.losses >= xi)
    above = users.losses > xi
    assert users.sum(np.where(above, weights, 0)) <= scale * (1 + 1e-12)
    assert users.sum(weights) >= scale * (1 - 1e-12)


def test_the_weights_of_the_exact_cvar_are_the_slopes_of_its_total():
    """But for the user at xi, who sits on the kink."""
    losses, risk = some_users().losses, CVaR(0.3)
    xi = risk.quantile(Population(losses), 0.0, None)
    slopes = gradient(lambda at: risk.total(Population(at), xi), losses, step=1e-6)
    aside = losses != xi
    assert np.sum(~aside) == 1
    weights = risk.weights(Population(losses), xi)
    np.testing.assert_allclose(slopes[aside], weights[aside], atol=1e-6)


def test_the_exact_cvar_is_the_limit_of_the_smoothed_one():
    users = some_users(101)
    risk, smoothed = CVaR(0.3), SmoothedCVaR(0.3, KERNELS["gaussian"], 1e-9)
    xi = risk.quantile(users, 0.0, None)
    near = best(smoothed, users)
    assert near == pytest.approx(xi, abs=1e-8)
    apart = users.losses != xi
    expected = smoothed.weights(users, near)[apart]
    np.testing.assert_allclose(risk.weights(users, xi)[apart], expected, atol=1e-9)
    assert risk.total(users, xi) == pytest.approx(smoothed.total(users, near), abs=1e-7)
