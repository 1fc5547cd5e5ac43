"""Risks: how much each user counts, given everybody's losses."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from safecf.als.capabilities import PerRow
from safecf.als.kernels import Kernel
from safecf.als.population import Population, Smoothing
from safecf.als.quantile import Psi, smoothed_quantile
from safecf.errors import shown

# Below, a standard deviation of losses is rounding.
SMALLEST_BANDWIDTH = 1e-30


class Risk(Protocol):
    """A function of the losses and of xi, minimised over both; its slope in loss_u is w_u.

    In a population where user u stands for count_u users, the slope is count_u w_u.
    """

    @property
    def tail(self) -> float:
        """The mean weight at the best xi: the share of users that is protected."""
        ...

    @property
    def bandwidth(self) -> float | None:
        """h, if the risk is smoothed."""
        ...

    def ranked(self, population: Population) -> Population:
        """Return the population whose tail is measured: the users, or groups of them."""
        ...

    def scaled(self, population: Population | None) -> "Risk":
        """Return the risk on the scale of these losses; None before there are trained ones."""
        ...

    def start(self, population: Population) -> float:
        """Return the first xi."""
        ...

    def quantile(self, population: Population, xi: float, rng: np.random.Generator | None) -> float:
        """Return a better xi for these losses than the given one, if there is any."""
        ...

    def weights(self, population: Population, xi: float) -> PerRow:
        """w_u = d total / d loss_u / count_u."""
        ...

    def total(self, population: Population, xi: float) -> float:
        """Return the risk's part of the objective, on the scale of sum_u count_u w_u loss_u."""
        ...

    def step(self, population: Population) -> float:
        """How far to go from the last epoch's weights to the new ones, at most 1.

        Users who count more get smaller losses, and then count less: if the weights are steep in
        the losses, whole steps make them swing.
        """
        ...


@dataclass(frozen=True)
class Mean:
    """Everybody counts the same: weight 1 for iALS, the tail for ERM-MF."""

    weight: float = 1.0
    bandwidth: ClassVar[None] = None

    def __post_init__(self) -> None:
        if not 0 < self.weight <= 1:
            raise ValueError(f"weight={shown(self.weight)} must be above 0 and at most 1: try 1.0")

    @property
    def tail(self) -> float:
        """The constant weight."""
        return self.weight

    def ranked(self, population: Population) -> Population:
        """Return the users themselves."""
        return population

    def scaled(self, population: Population | None) -> Self:
        """Return the risk itself."""
        return self

    def start(self, population: Population) -> float:
        """Return xi = 1/n sum_u loss_u."""
        return population.mean_loss

    def quantile(self, population: Population, xi: float, rng: np.random.Generator | None) -> float:
        """Return xi = 1/n sum_u loss_u; nothing depends on it."""
        return self.start(population)

    def weights(self, population: Population, xi: float) -> PerRow:
        """w_u = weight."""
        return 0 * population.losses + self.weight

    def total(self, population: Population, xi: float) -> float:
        """Return weight sum_u loss_u."""
        return self.weight * population.sum(population.losses)

    def step(self, population: Population) -> float:
        """Return 1: the weights do not change."""
        return 1.0


@dataclass(frozen=True)
class SmoothedCVaR:
    """The mean loss of the worst-off share `tail` of the users, smoothed by `kernel`: SAFER2.

    An infinite bandwidth gives everybody the weight `tail`, just as `Mean(tail)`: ERM-MF. A
    `relative` one is in units of the losses' standard deviation, for a kernel of deviation 1:
    `scaled` makes it absolute for given losses.
    """

    tail: float
    kernel: Kernel
    bandwidth: float
    steps: int = 5
    sample: float = 1.0
    relative: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.tail <= 1:
            raise ValueError(f"tail={shown(self.tail)} must be above 0 and at most 1: try 0.3")
        if not (SMALLEST_BANDWIDTH <= self.bandwidth <= 1e300 or self.bandwidth == math.inf):
            raise ValueError(
                f"bandwidth={shown(self.bandwidth)} must be from {SMALLEST_BANDWIDTH:g} to 1e300: "
                "try 0.15, or inf for equal weights"
            )
        if self.steps < 1:
            raise ValueError(f"steps={shown(self.steps)} must be at least 1: try 5")
        if not 0 < self.sample <= 1:
            raise ValueError(f"sample={shown(self.sample)} must be above 0 and at most 1: try 0.1")

    def ranked(self, population: Population) -> Population:
        """Return the users themselves."""
        return population

    def scaled(self, population: Population | None) -> "SmoothedCVaR":
        """Return the risk with h = bandwidth std(loss) / std(Z), Z ~ k; inf before training."""
        if not self.relative:
            return self
        spread = 0.0 if population is None else population.spread
        bandwidth = self.bandwidth * spread / self.kernel.deviation
        if bandwidth < SMALLEST_BANDWIDTH:
            bandwidth = math.inf
        return replace(self, bandwidth=bandwidth, relative=False)

    def start(self, population: Population) -> float:
        """Return xi = 1/n sum_u loss_u."""
        return population.mean_loss

    def quantile(self, population: Population, xi: float, rng: np.random.Generator | None) -> float:
        """Return xi = argmin Psi, by a few Newton-Raphson steps from the given xi."""
        if math.isinf(self.bandwidth):
            return Mean(self.tail).quantile(population, xi, rng)
        return smoothed_quantile(
            population,
            self.smoothing,
            start=xi,
            steps=self.steps,
            sample=self.sample,
            rng=rng,
        )

    @np.errstate(over="ignore")
    def weights(self, population: Population, xi: float) -> PerRow:
        """w_u = 1 - K((xi - loss_u) / h): how far user u is inside the tail, from 0 to 1."""
        if math.isinf(self.bandwidth):
            return Mean(self.tail).weights(population, xi)
        return Psi(population, self.smoothing).weights(xi)

    @np.errstate(over="ignore")
    def total(self, population: Population, xi: float) -> float:
        """Return tail n Psi(xi) = tail n xi + sum_u (rho_1 * k_h)(loss_u - xi).

        It contains a constant of the order n h that no derivative sees, and is exact to n h eps:
        no measure of progress once h is some 1e12 times the losses. An infinite bandwidth leaves
        the constant out: tail sum_u loss_u.
        """
        if math.isinf(self.bandwidth):
            return Mean(self.tail).total(population, xi)
        return self.tail * population.size * Psi(population, self.smoothing).at(xi).value

    def step(self, population: Population) -> float:
        """Return h / (h + std(loss)), for a kernel of deviation 1: the weights' slope is 1/h."""
        if math.isinf(self.bandwidth):
            return 1.0
        width = self.bandwidth * self.kernel.deviation
        return width / (width + population.spread)

    @property
    def smoothing(self) -> Smoothing:
        """Tail, kernel and bandwidth."""
        return Smoothing(self.tail, self.kernel, self.bandwidth)

    def grouped(self, labels: NDArray[Any]) -> "GroupCVaR":
        """Return the same risk of groups of users, given the label of every user that counts."""
        return GroupCVaR.of(self, labels)


@dataclass(frozen=True)
class CVaR:
    """The mean loss of the worst-off share `tail` of the users, not smoothed: CVaR-MF."""

    tail: float
    bandwidth: ClassVar[None] = None

    def __post_init__(self) -> None:
        if not 0 < self.tail <= 1:
            raise ValueError(f"tail={shown(self.tail)} must be above 0 and at most 1: try 0.3")

    def ranked(self, population: Population) -> Population:
        """Return the users themselves."""
        return population

    def scaled(self, population: Population | None) -> Self:
        """Return the risk itself."""
        return self

    def start(self, population: Population) -> float:
        """Return xi = 1/n sum_u loss_u."""
        return population.mean_loss

    def quantile(self, population: Population, xi: float, rng: np.random.Generator | None) -> float:
        """Return xi = the exact (1 - tail) quantile of the losses, whatever it was before."""
        return population.value_at_risk(self.tail)

    def weights(self, population: Population, xi: float) -> PerRow:
        """w_u = 1{loss_u >= xi}."""
        return population.passes.vector(population.losses >= xi)

    def total(self, population: Population, xi: float) -> float:
        """Return tail n xi + sum_u max(0, loss_u - xi)."""
        ramps = (population.losses - xi).clip(min=0)
        return self.tail * population.size * xi + population.sum(ramps)

    def step(self, population: Population) -> float:
        """Return 1: gradient steps are small enough."""
        return 1.0


@dataclass(frozen=True, eq=False)
class GroupCVaR:
    """The mean loss of the worst-off share `tail` of the groups, each of which counts the same.

        L_g = 1/N_g sum_{u in g} count_u loss_u ,   N_g = sum_{u in g} count_u
        total = N/G total_groups(L) = tail N Psi(L) ,   w_u = N z_g / (G N_g) ,

    with the weights z_g that `risk` gives to the G groups. The mean of w_u over the N users is
    the mean of z_g over the groups, the tail. `names` are the groups, and `group[u]` is the place
    among them of the population's user u.
    """

    risk: SmoothedCVaR
    names: NDArray[Any]
    group: NDArray[np.intp]

    @classmethod
    def of(cls, risk: SmoothedCVaR, labels: NDArray[Any]) -> Self:
        """Return the risk of the users that have these labels."""
        names, group = np.unique(labels, return_inverse=True)
        return cls(risk, names, group)

    @property
    def tail(self) -> float:
        """The share of groups that is protected."""
        return self.risk.tail

    @property
    def bandwidth(self) -> float:
        """h, on the scale of the groups' mean losses."""
        return self.risk.bandwidth

    def ranked(self, population: Population) -> Population:
        """L_g, with every group counted once."""
        losses = self._sums(population, population.counted(population.losses))
        losses = losses / self._sizes(population)
        return Population(losses, passes=population.passes)

    def scaled(self, population: Population | None) -> "GroupCVaR":
        """Return the risk on the scale of the groups' mean losses."""
        ranked = None if population is None else self.ranked(population)
        return replace(self, risk=self.risk.scaled(ranked))

    def start(self, population: Population) -> float:
        """Return xi = 1/G sum_g L_g."""
        return self.risk.start(self.ranked(population))

    def quantile(self, population: Population, xi: float, rng: np.random.Generator | None) -> float:
        """Return a better xi for the groups; sub-samples are drawn among them."""
        return self.risk.quantile(self.ranked(population), xi, rng)

    def weights(self, population: Population, xi: float) -> PerRow:
        """w_u = N z_g / (G N_g): above 1 where a group in the tail is smaller than most."""
        inside = self.risk.weights(self.ranked(population), xi)
        return (inside * self._shares(population))[self.group]

    def total(self, population: Population, xi: float) -> float:
        """Return N/G times the total of the groups."""
        return self.risk.total(self.ranked(population), xi) * (population.size / len(self.names))

    def step(self, population: Population) -> float:
        """Return that of the groups."""
        return self.risk.step(self.ranked(population))

    def group_weights(self, weights: Population) -> dict[str | int, float]:
        """Return z_g = w_u G N_g / N by name, given w_u in the place of the losses."""
        inside = self.ranked(weights).losses / self._shares(weights)
        return dict(zip(self.names.tolist(), inside.tolist(), strict=True))

    def _sizes(self, population: Population) -> PerRow:
        """N_g."""
        return self._sums(population, population.counts)

    def _shares(self, population: Population) -> PerRow:
        """N / (G N_g)."""
        return population.size / (len(self.names) * self._sizes(population))

    def _sums(self, population: Population, values: PerRow | None) -> PerRow:
        """sum_{u in g} v_u, v_u = 1 if there are none; the sums over parts of the users add up."""
        return population.passes.group_sums(self.group, values, len(self.names))
