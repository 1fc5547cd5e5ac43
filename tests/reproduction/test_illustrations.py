"""The two illustrations: their numbers against derivatives, limits and integrals."""

import numpy as np
import pytest

from reproduction.base import Options, Results
from reproduction.experiments import check_function, cvar
from safecf.als.kernels import KERNELS
from safecf.als.quantile import bisection


@pytest.fixture(scope="module")
def rows():
    return check_function.curves()


def curve(rows, kernel, h):
    chosen = [row for row in rows if (row["kernel"], row["bandwidth"]) == (kernel, h)]
    return {name: np.array([row[name] for row in chosen]) for name in ("u", "smoothed", "weight")}


@pytest.mark.parametrize("h", check_function.BANDWIDTHS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_slope_of_a_smoothed_check_function_is_the_weight_less_alpha(rows, kernel, h):
    found = curve(rows, kernel, h)
    slope = np.gradient(found["smoothed"], found["u"])[1:-1]
    np.testing.assert_allclose(slope, found["weight"][1:-1] - check_function.TAIL, atol=0.03)


@pytest.mark.parametrize("kernel", KERNELS)
def test_it_is_above_the_check_function_and_tends_to_it(kernel):
    u = check_function.GRID
    plain = check_function.check(u)
    gaps = [
        KERNELS[kernel].smoothed_check(u, h, check_function.TAU) - plain for h in (1, 0.1, 1e-3)
    ]
    assert min(map(np.min, gaps)) > -1e-12
    assert [np.max(gap) for gap in gaps] == sorted([np.max(gap) for gap in gaps], reverse=True)
    assert np.max(gaps[-1]) < 1e-3


@pytest.mark.parametrize("u", check_function.POINTS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_formulas_are_the_integrals(kernel, u):
    ours = KERNELS[kernel].smoothed_check(np.array(u), 0.5, check_function.TAU)
    assert check_function.convolved(kernel, u, 0.5) == pytest.approx(float(ours), abs=1e-6)


def test_what_the_paper_prints_is_off_where_the_page_says():
    def off(kernel, u):
        integral = check_function.convolved(kernel, u, 0.5)
        return integral - check_function.printed(kernel, u, 0.5)

    # half of h k(0), and h/2 |u/h| outside of the support on the left
    assert off("gaussian", 0.0) == pytest.approx(0.25 / np.sqrt(2 * np.pi), abs=1e-6)
    assert off("epanechnikov", -2.0) == pytest.approx(1.0, abs=1e-6)
    assert off("epanechnikov", 0.25) == pytest.approx(0.0, abs=1e-6)


def test_the_library_agrees_with_the_integrals():
    users = cvar.population()
    for tail in (0.1, cvar.TAIL, 1.0):
        np.testing.assert_allclose(cvar.measured(users, tail)[2], cvar.exact(tail)[2], rtol=1e-3)
    marks = cvar.exact(cvar.TAIL)
    np.testing.assert_allclose(cvar.measured(users, cvar.TAIL), marks, rtol=1e-3)
    beyond = np.linspace(marks.var, 80, 200_001)
    step = beyond[1] - beyond[0]
    assert np.sum(cvar.density(beyond)) * step == pytest.approx(cvar.TAIL, abs=1e-3)
    assert np.sum(beyond * cvar.density(beyond)) * step / cvar.TAIL == pytest.approx(
        marks.cvar, abs=1e-2
    )


def test_the_minimum_over_xi_is_the_cvar():
    users, marks = cvar.population(), cvar.exact(cvar.TAIL)
    assert cvar.objective(users, marks.var) == pytest.approx(marks.cvar, abs=1e-3)
    assert all(cvar.objective(users, xi) >= marks.cvar - 1e-3 for xi in cvar.XIS)
    least = []
    for h in (0.01, *cvar.BANDWIDTHS):
        psi = cvar.smoothed(users, h)
        xi = bisection(psi, *psi.bracket())
        assert np.mean(psi.weights(xi)) == pytest.approx(cvar.TAIL, abs=1e-9)
        least.append(psi.at(xi).value)
    assert least == sorted(least)
    assert least[0] == pytest.approx(marks.cvar, abs=1e-2)


@pytest.mark.parametrize("module", [check_function, cvar])
def test_illustrations_need_no_cells(module):
    options = module.EXPERIMENT.options()
    assert module.EXPERIMENT.cells(options) == []
    assert module.render(Results(()), Options()).rows
