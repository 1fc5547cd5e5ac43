"""The quantile step finds mean weight = tail for every kernel, bandwidth, sample and start."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from safecf.als.kernels import KERNELS
from safecf.als.population import Population, Smoothing
from safecf.als.quantile import ARMIJO, Psi, bisection, newton_step, smoothed_quantile

every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
tails = st.sampled_from([1e-3, 0.1, 0.3, 0.5, 0.9, 0.999, 1.0]) | st.floats(1e-4, 1.0)
bandwidths = st.floats(-12, 16).map(lambda power: 10.0**power) | st.sampled_from([1e-12, 1e300])
unit = st.floats(0, 1)
scales = st.sampled_from([-1e9, 1e-300, 1e-9, 1e3, 1e150, 1e307])
some_losses = st.one_of(
    st.lists(unit, min_size=1, max_size=12),
    st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=30),  # ties
    st.builds(lambda loss, n: [loss] * n, unit, st.integers(1, 9)),  # constant, one user
    st.lists(st.floats(-12, 12).map(lambda power: 10.0**power), min_size=2, max_size=9),
    scales.flatmap(lambda scale: st.lists(unit.map(lambda u: scale * u), min_size=1, max_size=9)),
    st.lists(st.floats(-1e307, 1e307), min_size=1, max_size=6),
).map(np.array)
starts = st.sampled_from([-np.inf, -1e20, -1.0, 0.0, 0.3, 1e5, 1e20, 1e308, np.nan])


def mean_weight(losses, xi, kernel, bandwidth):
    with np.errstate(over="ignore"):
        return float(np.mean(1 - kernel.cdf((xi - losses) / bandwidth)))


def skewed_losses(n=2000, seed=0):
    return 0.5 * np.random.default_rng(seed).beta(4, 3, n)


@settings(max_examples=300, deadline=None)
@given(some_losses, tails, st.sampled_from(list(KERNELS.values())), bandwidths, starts)
@example(np.array([1.7e308, -1.7e308, 0.0]), 0.3, KERNELS["gaussian"], 1e-12, np.nan)
@example(np.array([1.7e308]), 0.3, KERNELS["logistic"], 1e300, 0.0)
@example(np.array([1.0, 1.0]), 1.0, KERNELS["gaussian"], 1e-20, 0.0)
def test_the_mean_weight_is_the_tail(losses, tail, kernel, bandwidth, start):
    xi = smoothed_quantile(
        Population(losses), Smoothing(tail, kernel, bandwidth), start=start, steps=200
    )
    with np.errstate(over="ignore"):
        lower, upper = Psi(Population(losses), Smoothing(tail, kernel, bandwidth)).bracket()
    assert np.isfinite(xi)
    assert lower <= xi <= upper
    # The mean weight moves by at most k(0) / h per unit of xi, and xi by one ulp at least.
    resolution = float(kernel.density(np.array(0.0))) * math.ulp(xi) / bandwidth
    assert mean_weight(losses, xi, kernel, bandwidth) == pytest.approx(tail, abs=1e-6 + resolution)


populations = st.lists(st.tuples(st.floats(-3, 3), st.integers(1, 5)), min_size=1, max_size=12)


@settings(max_examples=200)
@given(populations, tails, st.sampled_from(list(KERNELS.values())), st.floats(0.01, 10))
@example([(0.0, 1), (1.0, 3), (0.5, 2)], 0.5, KERNELS["gaussian"], 0.3)
def test_a_user_who_counts_twice_is_two_users(pairs, tail, kernel, bandwidth):
    losses, counts = map(np.array, zip(*pairs, strict=True))
    short, long = Population(losses, counts), Population(np.repeat(losses, counts))
    assert short.size == long.size
    assert short.mean(losses) == pytest.approx(long.losses.mean(), abs=1e-12)
    assert short.value_at_risk(tail) == long.value_at_risk(tail)
    cvar = long.tail_mean(tail)
    assert short.tail_mean(tail) == pytest.approx(cvar, rel=1e-12, abs=1e-12)
    one, other = (Psi(users, Smoothing(tail, kernel, bandwidth)) for users in (short, long))
    assert one.bracket() == other.bracket()
    for xi in (-1.0, 0.2, 2.0):
        assert one.at(xi).value == pytest.approx(other.at(xi).value, rel=1e-12)
        assert one.at(xi).slope == pytest.approx(other.at(xi).slope, abs=1e-12 / tail)
        assert one.at(xi).curvature == pytest.approx(other.at(xi).curvature, rel=1e-12)
    for steps in (1, 5, 200):
        found, expected = (
            smoothed_quantile(users, Smoothing(tail, kernel, bandwidth), start=0.1, steps=steps)
            for users in (short, long)
        )
        assert one.at(found).slope == pytest.approx(one.at(expected).slope, abs=1e-9 / tail)


@given(populations, tails, st.floats(0.1, 100))
def test_only_the_proportions_of_the_counts_matter(pairs, tail, scale):
    losses, counts = map(np.array, zip(*pairs, strict=True))
    users, more = Population(losses, counts), Population(losses, scale * counts)
    assert more.mean(losses) == pytest.approx(users.mean(losses), rel=1e-12, abs=1e-12)
    cvar = users.tail_mean(tail)
    assert more.tail_mean(tail) == pytest.approx(cvar, rel=1e-9, abs=1e-9)


def test_draws_keep_the_counts():
    users = Population(np.arange(50.0), 10 * np.arange(50.0) + 1)
    drawn = users.draw(20, np.random.default_rng(0))
    assert np.unique(drawn.losses).size == 20
    np.testing.assert_array_equal(drawn.counts, 10 * drawn.losses + 1)
    same = Population(users.losses).draw(20, np.random.default_rng(0))
    np.testing.assert_array_equal(same.losses, drawn.losses)
    assert same.counts is None


@every_kernel
def test_five_steps_do_from_the_mean_loss_and_three_when_warm(kernel, monkeypatch):
    monkeypatch.setattr("safecf.als.quantile.bisection", None)  # Newton alone
    losses = skewed_losses()
    later = 0.97 * losses + 0.01 * skewed_losses(seed=1)
    for bandwidth in (0.01, 0.15, 0.7, 10.0, 1e16):
        smoothing = Smoothing(0.3, kernel, bandwidth)
        cold = smoothed_quantile(Population(losses), smoothing, start=losses.mean(), steps=5)
        assert mean_weight(losses, cold, kernel, bandwidth) == pytest.approx(0.3, abs=1e-9)
        warm = smoothed_quantile(Population(later), smoothing, start=cold, steps=3)
        assert mean_weight(later, warm, kernel, bandwidth) == pytest.approx(0.3, abs=1e-6)


@every_kernel
def test_newton_converges_to_the_last_digits_although_psi_is_rounded(kernel, monkeypatch):
    monkeypatch.setattr("safecf.als.quantile.bisection", None)
    for seed in range(60):
        losses = skewed_losses(seed=seed)
        xi = smoothed_quantile(
            Population(losses), Smoothing(0.3, kernel, 0.15), start=losses.mean(), steps=20
        )
        assert mean_weight(losses, xi, kernel, 0.15) == pytest.approx(0.3, abs=1e-15)


@every_kernel
def test_newton_agrees_with_bisection(kernel):
    users = Population(skewed_losses())
    for tail, bandwidth in itertools.product((0.05, 0.3, 0.8), (0.02, 0.2, 5.0)):
        smoothing = Smoothing(tail, kernel, bandwidth)
        psi, xi = Psi(users, smoothing), smoothed_quantile(users, smoothing, start=0.1, steps=50)
        assert xi == pytest.approx(bisection(psi, *psi.bracket()), rel=1e-9)


@every_kernel
def test_value_slope_and_curvature_of_psi(kernel):
    psi, step = Psi(Population(skewed_losses(50)), Smoothing(0.3, kernel, 0.2)), 1e-5
    for xi in (0.05, 0.3, 0.45):
        ramp = kernel.smoothed_check(psi.population.losses - xi, 0.2, 1.0)
        assert psi.at(xi).value == pytest.approx(xi + ramp.sum() / (0.3 * 50), rel=1e-12)
        slope = (psi.at(xi + step).value - psi.at(xi - step).value) / (2 * step)
        curvature = (psi.at(xi + step).slope - psi.at(xi - step).slope) / (2 * step)
        assert psi.at(xi).slope == pytest.approx(slope, abs=1e-7)
        assert psi.at(xi).curvature == pytest.approx(curvature, rel=1e-2)  # uniform: steps in k


@every_kernel
@pytest.mark.parametrize("armijo", [ARMIJO, 0.45])  # the second tells the two slopes apart
def test_a_step_takes_the_largest_gamma_that_satisfies_armijo(kernel, armijo, monkeypatch):
    monkeypatch.setattr("safecf.als.quantile.ARMIJO", armijo)
    psi = Psi(
        Population(np.r_[np.zeros(9), np.linspace(0.3, 2.7, 12), 3.0]), Smoothing(0.3, kernel, 0.4)
    )
    lower, upper = psi.bracket()
    gammas = set()
    for xi in np.linspace(lower, upper, 40):
        trial = newton_step(psi, psi.at(xi), lower, upper)
        if trial is None:
            continue
        assert trial == psi.at(trial.xi)
        slope = psi.at(xi).slope
        d = slope / psi.at(xi).curvature

        def enough(gamma, xi=xi, d=d, slope=slope):
            decrease = psi.at(xi).value - psi.at(xi - gamma * d).value
            return lower <= xi - gamma * d <= upper and decrease >= armijo * gamma * d * slope

        gamma = (xi - trial.xi) / d
        assert enough(gamma)
        assert gamma == pytest.approx(1) or not enough(2 * gamma)
        gammas.add(round(np.log2(gamma)))
    assert {-1, 0} <= gammas


def test_a_step_stays_in_the_bracket():
    psi = Psi(Population(skewed_losses()), Smoothing(0.3, KERNELS["gaussian"], 0.15))
    full = newton_step(psi, psi.at(0.1), *psi.bracket()).xi
    half = newton_step(psi, psi.at(0.1), 0.0, 0.1 + 0.6 * (full - 0.1)).xi
    assert half - 0.1 == pytest.approx((full - 0.1) / 2)


@pytest.mark.parametrize("kernel", ["epanechnikov", "uniform", "triangular", "gaussian"])
def test_a_vanishing_curvature_is_left_by_bisection(kernel):
    losses = np.array([0.0, 0.0, 0.0, 100.0])
    psi = Psi(Population(losses), Smoothing(0.6, KERNELS[kernel], 0.1))
    assert psi.at(50.0).curvature == 0
    assert newton_step(psi, psi.at(50.0), *psi.bracket()) is None
    xi = smoothed_quantile(
        Population(losses), Smoothing(0.6, KERNELS[kernel], 0.1), start=50.0, steps=1
    )
    assert mean_weight(losses, xi, KERNELS[kernel], 0.1) == pytest.approx(0.6, abs=1e-12)


def test_a_minimum_is_kept_even_where_the_curvature_vanishes():
    losses, kernel = np.array([0.0, 0.0, 100.0, 100.0]), KERNELS["uniform"]
    assert (
        smoothed_quantile(Population(losses), Smoothing(0.5, kernel, 0.1), start=37.0, steps=5)
        == 37.0
    )


@every_kernel
def test_the_whole_tail_gives_everybody_weight_one(kernel):
    for losses in (skewed_losses(), np.array([3.0]), np.array([1e-9, 1e9])):
        for bandwidth in (1e-30, 0.15, 1e16):
            xi = smoothed_quantile(
                Population(losses), Smoothing(1.0, kernel, bandwidth), start=0.0, steps=1
            )
            weights = 1 - kernel.cdf((xi - losses) / bandwidth)
            np.testing.assert_allclose(weights, 1, rtol=1e-15)


@every_kernel
def test_the_end_of_the_floating_point_range_is_still_finite(kernel):
    for loss, tail in itertools.product(([-1.79e308], [1.79e308]), (0.01, 0.5, 1.0)):
        assert np.isfinite(
            smoothed_quantile(Population(loss), Smoothing(tail, kernel, 1e307), start=0.0, steps=5)
        )


@every_kernel
def test_sub_samples_are_drawn_by_the_generator_and_come_close(kernel):
    losses = skewed_losses(20_000)

    def step(seed):
        rng = np.random.default_rng(seed)
        return smoothed_quantile(
            Population(losses),
            Smoothing(0.3, kernel, 0.15),
            start=0.1,
            steps=5,
            sample=0.1,
            rng=rng,
        )

    assert step(1) == step(1)
    assert step(1) != step(2)
    assert mean_weight(losses, step(1), kernel, 0.15) == pytest.approx(0.3, abs=0.02)


def test_sub_samples_are_drawn_without_replacement():
    losses, kernel, rng = skewed_losses(10), KERNELS["gaussian"], np.random.default_rng(0)
    others = [np.delete(losses, user) for user in range(10)]
    known = [
        smoothed_quantile(Population(some), Smoothing(0.3, kernel, 0.15), start=0.3, steps=1)
        for some in others
    ]
    for _ in range(20):
        xi = smoothed_quantile(
            Population(losses),
            Smoothing(0.3, kernel, 0.15),
            start=0.3,
            steps=1,
            sample=0.9,
            rng=rng,
        )
        assert np.abs(np.array(known) - xi).min() < 1e-12


def test_sub_samples_need_a_generator():
    with pytest.raises(ValueError, match=r"sample=0\.1 .* pass rng"):
        smoothed_quantile(
            Population(np.ones(50)),
            Smoothing(0.3, KERNELS["uniform"], 1.0),
            start=0,
            steps=1,
            sample=0.1,
        )


def test_a_tiny_sample_is_one_user():
    kernel, rng = KERNELS["gaussian"], np.random.default_rng(0)
    options = {"start": 0.0, "steps": 1, "sample": 1e-6, "rng": rng}
    assert smoothed_quantile(
        Population(np.full(50, 2.0)), Smoothing(0.5, kernel, 1.0), **options
    ) == pytest.approx(2.0)


@settings(deadline=None)
@given(some_losses, tails)
def test_the_value_at_risk_is_a_quantile(losses, tail):
    xi = Population(losses).value_at_risk(tail)
    assert np.mean(losses > xi) <= tail + 1e-12
    assert np.mean(losses >= xi) >= tail - 1e-12


def test_the_value_at_risk_is_reached_by_the_tail_and_no_more():
    for n in (1, 3, 10, 100, 1000):
        losses = np.random.default_rng(n).permutation(n) + 1.0
        for count in range(1, n + 1):
            assert Population(losses).value_at_risk(count / n) == n - count + 1


def test_the_boundary_loss_counts_by_the_fraction_that_remains():
    expected = {1.0: 2.5, 0.5: 3.5, 0.6: (4 + 3 + 0.4 * 2) / 2.4, 0.1: 4.0}
    for tail, cvar in expected.items():
        assert Population([4.0, 1.0, 3.0, 2.0]).tail_mean(tail) == pytest.approx(cvar)


@settings(deadline=None)
@given(st.lists(st.floats(-10, 10), min_size=1, max_size=20).map(np.array), st.floats(0.01, 1))
def test_the_conditional_value_at_risk_minimises_psi_without_a_kernel(losses, tail):
    def psi(xi):
        return xi + np.mean(np.maximum(0, losses - xi)) / tail

    cvar = Population(losses).tail_mean(tail)
    assert cvar == pytest.approx(psi(Population(losses).value_at_risk(tail)), abs=1e-9)
    assert cvar == pytest.approx(min(psi(xi) for xi in losses), abs=1e-9)
