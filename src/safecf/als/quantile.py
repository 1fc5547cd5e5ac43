"""The quantile step: xi, the smoothed (1 - tail) quantile of the losses, and its exact limits."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from safecf.als.capabilities import PerRow
from safecf.als.population import Population, Smoothing

ARMIJO = 1e-4
HALVINGS = 10
ROUNDING = 8 * float(np.finfo(np.float64).eps)


class Point(NamedTuple):
    """Psi at xi: its value, slope and curvature, and a bound on the value's rounding error."""

    xi: float
    value: float
    slope: float
    curvature: float
    noise: float


@dataclass(frozen=True, eq=False)
class Psi:
    """Psi(xi) = xi + 1/(tail n) sum_u (rho_1 * k_h)(loss_u - xi), convex in xi.

    Its minimum over xi is the smoothed CVaR. There the mean weight is the tail:
    1/n sum_u w_u(xi) = tail, w_u(xi) = 1 - K((xi - loss_u) / h).
    """

    population: Population
    smoothing: Smoothing

    def weights(self, xi: float) -> PerRow:
        """w_u = 1 - K((xi - loss_u) / h)."""
        return self.population.passes.weights(self.population.losses, self.smoothing, xi)

    def at(self, xi: float) -> Point:
        """Evaluate Psi at xi, in one pass over the users.

            Psi   = 1/n sum_u loss_u + 1/(tail n) sum_u (rho_{1-tail} * k_h)(loss_u - xi)
            Psi'  = 1 - 1/(tail n) sum_u [1 - K((xi - loss_u) / h)]
            Psi'' = 1/(tail n) sum_u k_h(xi - loss_u)

        The value is the ERM-QE decomposition: unlike the definition, it sums terms of one sign.
        """
        users, (tail, _, bandwidth) = self.population, self.smoothing
        sums, size = users.sums(self.smoothing, xi), users.size
        return Point(
            xi=xi,
            value=users.mean_loss + sums.check / size / tail,
            slope=1 - sums.weight / size / tail,
            curvature=sums.density / size / bandwidth / tail,
            noise=ROUNDING * (abs(xi) + (bandwidth + sums.distance / size) / tail),
        )

    def bracket(self) -> tuple[float, float]:
        """[min loss + h q, max loss + h q], q = K^-1(1 - tail) = -K^-1(tail): the minimum is here.

        Each end is moved outwards by one ulp, so that rounding cannot shut the minimum out.
        """
        tail, kernel, bandwidth = self.smoothing
        below_one = np.nextafter(1.0, 0.0)
        q = -kernel.quantile(np.array(min(tail, below_one)))
        ends = np.array([self.population.totals.low, self.population.totals.high]) + bandwidth * q
        lower, upper = np.nan_to_num(np.nextafter(ends, [-np.inf, np.inf]))
        return float(lower), float(upper)


@np.errstate(over="ignore", invalid="ignore")
def smoothed_quantile(
    population: Population,
    smoothing: Smoothing,
    *,
    start: float,
    steps: int,
    sample: float = 1.0,
    rng: np.random.Generator | None = None,
) -> float:
    """Minimise Psi(xi) by at most `steps` Newton-Raphson steps from `start`, or else by bisection.

    Where Newton has no usable step, bisection to convergence takes its place and ends the search.
    A few steps from the last epoch's xi leave the mean weight within some 1e-3 of the tail while
    the losses still move a lot, and at rounding level when they settle.
    With `sample` < 1 every step sees that share of the users, drawn by `rng` without replacement.
    The losses must be finite and the bandwidth positive and at most 1e300.

    For tail = 1 any xi far enough below the losses is a minimum (-inf, if k has full support): the
    result is the highest one whose weights are all 1 up to rounding.
    """
    users = len(population.losses)
    size = max(1, round(sample * users))
    if size < users and rng is None:
        raise ValueError(f"sample={sample:g} draws users at random: pass rng, or use sample=1")
    if smoothing.tail == 1:
        return Psi(population, smoothing).bracket()[0]
    psi, point, xi = Psi(population, smoothing), None, start
    for _ in range(steps):
        if size < users and rng is not None:
            psi, point = Psi(population.draw(size, rng), smoothing), None
        lower, upper = psi.bracket()
        before = point or psi.at(min(max(xi, lower), upper))
        point = newton_step(psi, before, lower, upper)
        if point is None:
            return bisection(psi, lower, upper)
        xi = point.xi
        if xi == before.xi and size == users:
            break
    return xi


def newton_step(psi: Psi, here: Point, lower: float, upper: float) -> Point | None:
    """Return Psi at xi - gamma d, d = Psi' / Psi'', for the largest usable gamma of 1, 1/2, 1/4...

    A gamma is usable if it stays in the bracket and decreases Psi enough (Armijo),

        Psi(xi - gamma d) <= Psi(xi) - c gamma d Psi'(xi) ,

    give or take the rounding of Psi, which hides any decrease close to the minimum. The slope is
    that of the current point: with that of the trial point, as in the paper's text, a step across
    the minimum might increase Psi.

    The result is `here` where Psi'(xi) = 0 up to rounding, and None where no gamma is usable.
    """
    if abs(here.slope) <= ROUNDING:
        return here
    if not here.curvature > 0:
        return None
    d = here.slope / here.curvature
    value = here.value + here.noise
    for gamma in (0.5**halving for halving in range(HALVINGS)):
        xi = here.xi - gamma * d
        if lower <= xi <= upper:
            there = psi.at(xi)
            if there.value <= value - ARMIJO * gamma * d * here.slope:
                return there
    return None


def bisection(psi: Psi, lower: float, upper: float) -> float:
    """Solve Psi'(xi) = 0, that is mean weight = tail, to the last bit of xi if need be."""
    while lower < (xi := lower / 2 + upper / 2) < upper:
        slope = psi.at(xi).slope
        if abs(slope) <= ROUNDING:
            break
        lower, upper = (xi, upper) if slope < 0 else (lower, xi)
    return xi
