"""Risks: how much each user counts, given everybody's losses."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from safecf.als.kernels import Floats, Kernel
from safecf.als.quantile import Population, Psi, smoothed_quantile, value_at_risk


class Risk(Protocol):
    """A function of the losses and of xi, minimised over both; its slope in loss_u is w_u.

    In a population where user u stands for count_u users, the slope is count_u w_u.
    """

    @property
    def tail(self) -> float:
        """The mean weight at the best xi: the share of users that is protected."""
        ...

    def ranked(self, population: Population) -> Population:
        """Return those whose worst share it is about: the users themselves, or groups of them."""
        ...

    def start(self, population: Population) -> float:
        """Return the first xi."""
        ...

    def quantile(self, population: Population, xi: float, rng: np.random.Generator | None) -> float:
        """Return a better xi for these losses than the given one, if there is any."""
        ...

    def weights(self, population: Population, xi: float) -> Floats:
        """w_u = d total / d loss_u / count_u."""
        ...

    def total(self, population: Population, xi: float) -> float:
        """Return the risk's part of the objective, on the scale of sum_u count_u w_u loss_u."""
        ...


@dataclass(frozen=True)
class Mean:
    """Everybody counts the same: weight 1 for iALS, the tail for ERM-MF."""

    weight: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.weight <= 1:
            raise ValueError(f"weight={self.weight!r} must be above 0 and at most 1: try 1.0")

    @property
    def tail(self) -> float:
        """The mean weight, which is everybody's."""
        return self.weight

    def ranked(self, population: Population) -> Population:
        """Return the users themselves."""
        return population

    def start(self, population: Population) -> float:
        """Return xi = 1/n sum_u loss_u."""
        return population.mean(population.losses)

    def quantile(self, population: Population, xi: float, rng: np.random.Generator | None) -> float:
        """Return xi = 1/n sum_u loss_u; nothing depends on it."""
        return self.start(population)

    def weights(self, population: Population, xi: float) -> Floats:
        """w_u = weight."""
        return np.full(population.losses.size, self.weight, dtype=np.float64)

    def total(self, population: Population, xi: float) -> float:
        """Return weight sum_u loss_u."""
        return self.weight * population.sum(population.losses)


@dataclass(frozen=True)
class SmoothedCVaR:
    """The mean loss of the worst-off share `tail` of the users, smoothed by `kernel`: SAFER2.

    An infinite bandwidth gives everybody the weight `tail`, just as `Mean(tail)`: ERM-MF.
    """

    tail: float
    kernel: Kernel
    bandwidth: float
    steps: int = 5
    sample: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.tail <= 1:
            raise ValueError(f"tail={self.tail!r} must be above 0 and at most 1: try 0.3")
        if not (0 < self.bandwidth <= 1e300 or self.bandwidth == math.inf):
            raise ValueError(
                f"bandwidth={self.bandwidth!r} must be above 0 and at most 1e300: try 0.15, "
                "or inf for equal weights"
            )
        if self.steps < 1:
            raise ValueError(f"steps={self.steps!r} must be at least 1: try 5")
        if not 0 < self.sample <= 1:
            raise ValueError(f"sample={self.sample!r} must be above 0 and at most 1: try 0.1")

    def ranked(self, population: Population) -> Population:
        """Return the users themselves."""
        return population

    def start(self, population: Population) -> float:
        """Return xi = 1/n sum_u loss_u."""
        return population.mean(population.losses)

    def quantile(self, population: Population, xi: float, rng: np.random.Generator | None) -> float:
        """Return xi = argmin Psi, by a few Newton-Raphson steps from the given xi."""
        if math.isinf(self.bandwidth):
            return Mean(self.tail).quantile(population, xi, rng)
        return smoothed_quantile(
            population,
            self.tail,
            self.kernel,
            self.bandwidth,
            start=xi,
            steps=self.steps,
            sample=self.sample,
            rng=rng,
        )

    @np.errstate(over="ignore")
    def weights(self, population: Population, xi: float) -> Floats:
        """w_u = 1 - K((xi - loss_u) / h): how far user u is inside the tail, from 0 to 1."""
        if math.isinf(self.bandwidth):
            return Mean(self.tail).weights(population, xi)
        return self._psi(population).weights(xi)

    @np.errstate(over="ignore")
    def total(self, population: Population, xi: float) -> float:
        """Return tail n Psi(xi) = tail n xi + sum_u (rho_1 * k_h)(loss_u - xi).

        It contains a constant of the order n h that no derivative sees, and is exact to n h eps:
        no measure of progress once h is some 1e12 times the losses. An infinite bandwidth leaves
        the constant out: tail sum_u loss_u.
        """
        if math.isinf(self.bandwidth):
            return Mean(self.tail).total(population, xi)
        return self.tail * population.size * self._psi(population).value(xi)

    def _psi(self, population: Population) -> Psi:
        return Psi(population, self.tail, self.kernel, self.bandwidth)


@dataclass(frozen=True)
class CVaR:
    """The mean loss of the worst-off share `tail` of the users, not smoothed: CVaR-MF."""

    tail: float

    def __post_init__(self) -> None:
        if not 0 < self.tail <= 1:
            raise ValueError(f"tail={self.tail!r} must be above 0 and at most 1: try 0.3")

    def ranked(self, population: Population) -> Population:
        """Return the users themselves."""
        return population

    def start(self, population: Population) -> float:
        """Return xi = 1/n sum_u loss_u."""
        return population.mean(population.losses)

    def quantile(self, population: Population, xi: float, rng: np.random.Generator | None) -> float:
        """Return xi = the exact (1 - tail) quantile of the losses, whatever it was before."""
        return value_at_risk(population, self.tail)

    def weights(self, population: Population, xi: float) -> Floats:
        """w_u = 1{loss_u >= xi}."""
        return np.asarray(population.losses >= xi, dtype=np.float64)

    def total(self, population: Population, xi: float) -> float:
        """Return tail n xi + sum_u max(0, loss_u - xi)."""
        ramps = np.maximum(population.losses - xi, 0)
        return self.tail * population.size * xi + population.sum(ramps)
