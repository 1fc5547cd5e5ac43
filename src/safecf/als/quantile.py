"""The quantile step: xi, the smoothed (1 - tail) quantile of the losses, and its exact limits."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from safecf.als.kernels import Floats, Kernel

ARMIJO = 1e-4
HALVINGS = 10
ROUNDING = 8 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Population:
    """The losses of users, each of whom stands for count_u > 0 users; without `counts` for one.

    All that is computed from it is what the population has in which the users are repeated; the
    counts need not be whole, though.
    """

    losses: Floats
    counts: Floats | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "losses", np.asarray(self.losses, dtype=np.float64))

    @cached_property
    def size(self) -> float:
        """N = sum_u count_u."""
        return float(self.losses.size if self.counts is None else np.sum(self.counts))

    def counted(self, values: Floats) -> Floats:
        """count_u v_u: what stands in a sum over users."""
        return values if self.counts is None else self.counts * values

    def sum(self, values: Floats) -> float:
        """sum_u count_u v_u."""
        return float(np.sum(self.counted(values)))

    def mean(self, values: Floats) -> float:
        """1/n sum_u count_u v_u."""
        return self.sum(values) / self.size

    def draw(self, users: int, rng: np.random.Generator) -> "Population":
        """Return this number of users, drawn without replacement, with their counts."""
        drawn = rng.choice(self.losses.size, users, replace=False, shuffle=False)
        return Population(self.losses[drawn], None if self.counts is None else self.counts[drawn])

    def worst_first(self) -> tuple[Floats, Floats, Floats | float]:
        """Return the losses in falling order, the number of users before each, and their counts."""
        if self.counts is None:
            return np.sort(self.losses)[::-1], np.arange(self.size), 1.0
        order = np.argsort(self.losses)
        counts = self.counts[order][::-1]
        return self.losses[order][::-1], np.cumsum(counts) - counts, counts


@dataclass(frozen=True, eq=False)
class Psi:
    """Psi(xi) = xi + 1/(tail n) sum_u (rho_1 * k_h)(loss_u - xi), convex in xi.

    Its minimum over xi is the smoothed CVaR. There the mean weight is the tail:
    1/n sum_u w_u(xi) = tail, w_u(xi) = 1 - K((xi - loss_u) / h). Sums are those of `Population`.
    """

    population: Population
    tail: float
    kernel: Kernel
    bandwidth: float

    def weights(self, xi: float) -> Floats:
        """w_u = 1 - K((xi - loss_u) / h) = K((loss_u - xi) / h), which keeps small ones exact."""
        return self.kernel.cdf((self.population.losses - xi) / self.bandwidth)

    def value(self, xi: float) -> float:
        """Psi(xi) = 1/n sum_u loss_u + 1/(tail n) sum_u (rho_{1-tail} * k_h)(loss_u - xi).

        This is the ERM-QE decomposition: unlike the definition, it sums terms of one sign.
        """
        losses, mean = self.population.losses, self.population.mean
        check = self.kernel.smoothed_check(losses - xi, self.bandwidth, 1 - self.tail)
        return mean(losses) + mean(check) / self.tail

    def slope(self, xi: float) -> float:
        """Psi'(xi) = 1 - 1/(tail n) sum_u [1 - K((xi - loss_u) / h)]."""
        return 1 - self.population.mean(self.weights(xi)) / self.tail

    def curvature(self, xi: float) -> float:
        """Psi''(xi) = 1/(tail n) sum_u k_h(xi - loss_u)."""
        density = self.kernel.density((xi - self.population.losses) / self.bandwidth)
        return self.population.mean(density) / self.bandwidth / self.tail

    def noise(self, xi: float) -> float:
        """Bound the rounding error of `value(xi)`."""
        spread = self.bandwidth + self.population.mean(np.abs(self.population.losses - xi))
        return ROUNDING * (abs(xi) + spread / self.tail)

    def bracket(self) -> tuple[float, float]:
        """[min loss + h q, max loss + h q], q = K^-1(1 - tail) = -K^-1(tail): the minimum is here.

        Each end is moved outwards by one ulp, so that rounding cannot shut the minimum out.
        """
        below_one = np.nextafter(1.0, 0.0)
        q = -self.kernel.quantile(np.array(min(self.tail, below_one)))
        losses = self.population.losses
        ends = np.array([np.min(losses), np.max(losses)]) + self.bandwidth * q
        lower, upper = np.nan_to_num(np.nextafter(ends, [-np.inf, np.inf]))
        return float(lower), float(upper)


@np.errstate(over="ignore", invalid="ignore")
def smoothed_quantile(
    population: Population,
    tail: float,
    kernel: Kernel,
    bandwidth: float,
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
    users = population.losses.size
    size = max(1, round(sample * users))
    if size < users and rng is None:
        raise ValueError(f"sample={sample:g} draws users at random: pass rng, or use sample=1")
    if tail == 1:
        return Psi(population, tail, kernel, bandwidth).bracket()[0]
    xi = start
    for _ in range(steps):
        batch = population
        if size < users and rng is not None:
            batch = population.draw(size, rng)
        psi = Psi(batch, tail, kernel, bandwidth)
        lower, upper = psi.bracket()
        before = min(max(xi, lower), upper)
        after = newton_step(psi, before, lower, upper)
        if after is None:
            return bisection(psi, lower, upper)
        xi = after
        if xi == before and size == users:
            break
    return xi


def newton_step(psi: Psi, xi: float, lower: float, upper: float) -> float | None:
    """Return xi - gamma d, d = Psi'(xi) / Psi''(xi), for the largest usable gamma of 1, 1/2, 1/4...

    A gamma is usable if it stays in the bracket and decreases Psi enough (Armijo),

        Psi(xi - gamma d) <= Psi(xi) - c gamma d Psi'(xi) ,

    give or take the rounding of Psi, which hides any decrease close to the minimum. The slope is
    that of the current point: with that of the trial point, as in the paper's text, a step across
    the minimum might increase Psi.

    The result is xi itself where Psi'(xi) = 0 up to rounding, and None where no gamma is usable.
    """
    slope = psi.slope(xi)
    if abs(slope) <= ROUNDING:
        return xi
    curvature = psi.curvature(xi)
    if not curvature > 0:
        return None
    d = slope / curvature
    value = psi.value(xi) + psi.noise(xi)
    for gamma in (0.5**halving for halving in range(HALVINGS)):
        trial = xi - gamma * d
        if lower <= trial <= upper and psi.value(trial) <= value - ARMIJO * gamma * d * slope:
            return trial
    return None


def bisection(psi: Psi, lower: float, upper: float) -> float:
    """Solve Psi'(xi) = 0, that is mean weight = tail, to the last bit of xi if need be."""
    while lower < (xi := lower / 2 + upper / 2) < upper:
        slope = psi.slope(xi)
        if abs(slope) <= ROUNDING:
            break
        lower, upper = (xi, upper) if slope < 0 else (lower, xi)
    return xi


def value_at_risk(population: Population, tail: float) -> float:
    """Return the exact (1 - tail) quantile: the ceil(tail n)-th largest loss.

    Where tail n is whole, every value down to the next smaller loss is a quantile too; this one is
    reached or exceeded by tail n losses, ties aside.
    """
    count = tail * population.size * (1 - ROUNDING)
    if population.counts is None:
        position = population.losses.size - math.ceil(count)
        return float(np.partition(population.losses, position)[position])
    worst_first, before, counts = population.worst_first()
    last = np.searchsorted((before + counts)[:-1], count)
    return float(worst_first[last])


def conditional_value_at_risk(population: Population, tail: float) -> float:
    """Return 1/(tail n) sum_r clip(tail n - (r - 1), 0, 1) loss_(r), the worst loss first.

    That is the mean of the worst tail n losses, with the boundary one counted by the fraction that
    remains; tail = 1 is the mean.
    """
    worst_first, before, counts = population.worst_first()
    count = tail * population.size
    share = np.clip(count - before, 0.0, counts)
    return float(share @ worst_first / count)
