"""Value, slope and curvature of every kernel in the registry, against numerical integration."""

import numpy as np
import pytest
from scipy.integrate import quad

from safecf.als.kernels import KERNELS, Kernel

BREAKS = (-1.0, 0.0, 1.0)  # where a density may have a kink or a jump
POINTS = np.array([-7.3, -2.9, -1.1, -0.93, -0.61, -0.2, 0.07, 0.35, 0.8, 0.97, 1.02, 1.7, 5.5])
PROBABILITIES = np.array([1e-9, 1e-3, 0.1, 0.3, 0.5, 0.62, 0.9, 0.999])
FAR = np.array([50.0, 1e3, 1e16, 1e155, 1e200, 1e300, np.inf])

every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())


def expectation(function, kernel, kink):
    """E f(Z), Z ~ kernel, for a function with one kink."""

    def integrand(z):
        return function(z) * float(kernel.density(np.array(z)))

    return quad(integrand, -40, 40, points=[*BREAKS, kink], limit=200, epsabs=1e-12)[0]


def check(tau, u):
    return max(tau * u, (tau - 1) * u)


def difference(function, t, step):
    return (function(t + step) - function(t - step)) / (2 * step)


def test_kernels_are_registered_under_their_own_names():
    assert {"gaussian", "epanechnikov", "logistic", "uniform", "triangular"} <= set(KERNELS)
    assert all(name == kernel.name for name, kernel in KERNELS.items())
    assert all(isinstance(kernel, Kernel) for kernel in KERNELS.values())


@every_kernel
def test_the_density_integrates_to_one(kernel):
    assert expectation(lambda z: 1.0, kernel, kink=0.0) == pytest.approx(1, abs=1e-10)


@every_kernel
def test_the_slope_of_the_cdf_is_the_density(kernel):
    np.testing.assert_allclose(
        difference(kernel.cdf, POINTS, 1e-5), kernel.density(POINTS), atol=1e-9
    )


@every_kernel
def test_the_cdf_is_the_integral_of_the_density(kernel):
    for t in POINTS:
        share = expectation(lambda z, t=t: float(z <= t), kernel, kink=t)
        assert float(kernel.cdf(t)) == pytest.approx(share, abs=1e-10)


@every_kernel
def test_the_quantile_inverts_the_cdf(kernel):
    t = kernel.quantile(PROBABILITIES)
    np.testing.assert_allclose(kernel.cdf(t), PROBABILITIES, rtol=1e-12, atol=1e-15)
    inside = POINTS[(kernel.cdf(POINTS) > 1e-3) & (kernel.cdf(POINTS) < 1 - 1e-3)]
    np.testing.assert_allclose(kernel.quantile(kernel.cdf(inside)), inside, rtol=1e-10)


@every_kernel
def test_the_ends_of_the_quantile_are_the_ends_of_the_support(kernel):
    support = np.inf if kernel.name in {"gaussian", "logistic"} else 1.0
    np.testing.assert_allclose(kernel.quantile(np.array([0.0, 1.0])), [-support, support], 1e-15)


@every_kernel
def test_the_slope_of_the_smoothed_absolute_value(kernel):
    np.testing.assert_allclose(
        difference(kernel.smoothed_abs, POINTS, 1e-5), 2 * kernel.cdf(POINTS) - 1, atol=1e-8
    )


@every_kernel
def test_the_curvature_of_the_smoothed_absolute_value(kernel):
    step = 1e-3
    curvature = (
        kernel.smoothed_abs(POINTS + step)
        - 2 * kernel.smoothed_abs(POINTS)
        + kernel.smoothed_abs(POINTS - step)
    ) / step**2
    np.testing.assert_allclose(curvature, 2 * kernel.density(POINTS), atol=1e-6)


@every_kernel
def test_the_smoothed_absolute_value_is_a_convolution(kernel):
    for t in POINTS:
        mean = expectation(lambda z, t=t: abs(t + z), kernel, kink=-t)
        assert float(kernel.smoothed_abs(t)) == pytest.approx(mean, abs=1e-10)


@every_kernel
def test_symmetry(kernel):
    np.testing.assert_array_equal(kernel.density(-POINTS), kernel.density(POINTS))
    np.testing.assert_allclose(kernel.cdf(-POINTS), 1 - kernel.cdf(POINTS), atol=1e-15)
    np.testing.assert_allclose(
        kernel.smoothed_abs(-POINTS), kernel.smoothed_abs(POINTS), rtol=1e-15
    )
    np.testing.assert_allclose(
        kernel.quantile(1 - PROBABILITIES[1:]), -kernel.quantile(PROBABILITIES[1:]), atol=1e-12
    )


@every_kernel
def test_the_far_tails_are_exact(kernel):
    for sign in (-1, 1):
        t = sign * FAR
        np.testing.assert_allclose(kernel.density(t), 0, atol=1e-20)
        np.testing.assert_allclose(kernel.cdf(t), (1 + sign) / 2, atol=1e-20)
        np.testing.assert_array_equal(kernel.smoothed_abs(t), FAR)


@every_kernel
@pytest.mark.parametrize(("tau", "h"), [(0.0, 0.15), (0.3, 3.0), (1.0, 1.0)])
def test_the_smoothed_check_function_is_a_convolution(kernel, tau, h):
    u = h * np.array([-3.0, -0.999, -0.4, 0.0, 0.25, 1.3, 4.0])
    integrals = [expectation(lambda z, v=v: check(tau, v + h * z), kernel, kink=-v / h) for v in u]
    np.testing.assert_allclose(kernel.smoothed_check(u, h, tau), integrals, atol=1e-9)


@every_kernel
def test_the_smoothed_ramp_tends_to_the_ramp(kernel):
    u = np.array([-3.0, -1e-3, 0.0, 1e-3, 3.0])
    for h in (1e-3, 1e-6, 1e-9):
        np.testing.assert_allclose(kernel.smoothed_check(u, h, 1.0), np.maximum(0, u), atol=h)


def test_erratum_the_gaussian_check_function_has_twice_the_density():
    kernel, h, tau = KERNELS["gaussian"], 0.7, 0.7
    for u in (-0.9, 0.0, 0.4):
        density, signed = float(kernel.density(u / h)) / h, 1 - 2 * float(kernel.cdf(-u / h))
        printed = h / 2 * (h * density + u / h * signed) + (tau - 0.5) * u
        right = h / 2 * (2 * h * density + u / h * signed) + (tau - 0.5) * u
        integral = expectation(lambda z, u=u: check(tau, u + h * z), kernel, kink=-u / h)
        assert float(kernel.smoothed_check(u, h, tau)) == pytest.approx(right, rel=1e-12)
        assert right == pytest.approx(integral, abs=1e-10)
        assert abs(printed - integral) > 0.05


@pytest.mark.parametrize("h", [0.2, 1.0, 5.0])
def test_erratum_the_epanechnikov_check_function_is_plain_on_both_sides(h):
    kernel, tau = KERNELS["epanechnikov"], 0.7
    u = h * np.array([-8.0, -2.0, -1.0, 1.0, 2.0, 8.0])
    np.testing.assert_allclose(
        kernel.smoothed_check(u, h, tau), np.abs(u) / 2 + (tau - 0.5) * u, rtol=1e-14
    )


def test_erratum_the_epanechnikov_cdf_is_cut_at_the_bandwidth():
    h, u = 5.0, -2.0  # u < -1, where the printed first case is zero already
    paper = (u * (3 * h**2 - u**2) + 2 * h**3) / (4 * h**3)
    assert float(KERNELS["epanechnikov"].cdf(np.array(u / h))) == pytest.approx(paper, rel=1e-14)
