"""Smoothing kernels: symmetric densities k with CDF K, in the standardised variable t = u / h."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr, ndtri

Floats: TypeAlias = NDArray[np.float64]


class Kernel(ABC):
    """A symmetric density k, its CDF K, the inverse of K, and the absolute value it smooths.

    Every method works element by element and is free of overflow for any t, infinite ones included.
    """

    name: ClassVar[str]
    deviation: ClassVar[float]  # the standard deviation of k

    @abstractmethod
    def density(self, t: Floats) -> Floats:
        """k(t)."""

    @abstractmethod
    def cdf(self, t: Floats) -> Floats:
        """K(t) = P(Z <= t), Z ~ k; the upper tail is 1 - K(t) = K(-t)."""

    @abstractmethod
    def quantile(self, p: Floats) -> Floats:
        """K^-1(p); where K has full support, it is infinite at p = 0 and p = 1."""

    @abstractmethod
    def smoothed_abs(self, t: Floats) -> Floats:
        """E|t + Z|, Z ~ k: its slope is 2 K(t) - 1, its curvature 2 k(t), its tails are |t|."""

    def smoothed_check(self, u: Floats, h: float, tau: float) -> Floats:
        """(rho_tau * k_h)(u) = h/2 E|u/h + Z| + (tau - 1/2) u; rho_1 is the ramp max(0, u)."""
        return h / 2 * self.smoothed_abs(u / h) + (tau - 1 / 2) * u


@dataclass(frozen=True)
class Gaussian(Kernel):
    """The standard normal density."""

    name = "gaussian"
    deviation = 1.0

    def density(self, t: Floats) -> Floats:
        """k(t) = exp(-t^2 / 2) / sqrt(2 pi), which is zero in float64 beyond |t| = 39."""
        t = np.clip(t, -39.0, 39.0)
        return np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi)

    def cdf(self, t: Floats) -> Floats:
        """K(t) = (1 + erf(t / sqrt(2))) / 2."""
        return ndtr(t)

    def quantile(self, p: Floats) -> Floats:
        """K^-1(p) = sqrt(2) erf^-1(2 p - 1)."""
        return ndtri(p)

    def smoothed_abs(self, t: Floats) -> Floats:
        """E|t + Z| = 2 k(t) + t (2 K(t) - 1); the paper's text lacks the factor 2 of k."""
        return 2 * self.density(t) + t * (2 * self.cdf(t) - 1)


@dataclass(frozen=True)
class Logistic(Kernel):
    """The standard logistic density."""

    name = "logistic"
    deviation = math.pi / math.sqrt(3)

    def density(self, t: Floats) -> Floats:
        """k(t) = K(t) K(-t)."""
        return expit(t) * expit(-t)

    def cdf(self, t: Floats) -> Floats:
        """K(t) = 1 / (1 + exp(-t))."""
        return expit(t)

    def quantile(self, p: Floats) -> Floats:
        """K^-1(p) = log(p / (1 - p))."""
        return logit(p)

    def smoothed_abs(self, t: Floats) -> Floats:
        """E|t + Z| = |t| + 2 log(1 + exp(-|t|))."""
        distance: Floats = np.abs(t)
        excess: Floats = 2 * np.log1p(np.exp(-distance))
        return distance + excess


@dataclass(frozen=True)
class Epanechnikov(Kernel):
    """A parabola on [-1, 1]."""

    name = "epanechnikov"
    deviation = 1 / math.sqrt(5)

    def density(self, t: Floats) -> Floats:
        """k(t) = 3/4 (1 - t^2) on [-1, 1]."""
        t = np.clip(t, -1.0, 1.0)
        return 3 / 4 * (1 - t**2)

    def cdf(self, t: Floats) -> Floats:
        """K(t) = (2 + 3 t - t^3) / 4 = (1 + t)^2 (2 - t) / 4 on [-1, 1]."""
        t = np.clip(t, -1.0, 1.0)
        return (1 + t) ** 2 * (2 - t) / 4

    def quantile(self, p: Floats) -> Floats:
        """K^-1(p) = 2 sin(arcsin(2 p - 1) / 3)."""
        return 2 * np.sin(np.arcsin(2 * p - 1) / 3)

    def smoothed_abs(self, t: Floats) -> Floats:
        """E|t + Z| = 3/8 + 3/4 t^2 - 1/8 t^4 on [-1, 1], |t| on BOTH sides of it."""
        inside = np.clip(t, -1.0, 1.0)
        square = inside**2
        return np.where(t == inside, 3 / 8 + 3 / 4 * square - 1 / 8 * square**2, np.abs(t))


@dataclass(frozen=True)
class Uniform(Kernel):
    """The constant 1/2 on [-1, 1]."""

    name = "uniform"
    deviation = 1 / math.sqrt(3)

    def density(self, t: Floats) -> Floats:
        """k(t) = 1/2 on [-1, 1]."""
        return np.where(np.abs(t) <= 1, 1 / 2, 0.0)

    def cdf(self, t: Floats) -> Floats:
        """K(t) = (1 + t) / 2 on [-1, 1]."""
        t = np.clip(t, -1.0, 1.0)
        return (1 + t) / 2

    def quantile(self, p: Floats) -> Floats:
        """K^-1(p) = 2 p - 1."""
        return 2 * p - 1

    def smoothed_abs(self, t: Floats) -> Floats:
        """E|t + Z| = (1 + t^2) / 2 on [-1, 1], |t| on both sides of it."""
        inside = np.clip(t, -1.0, 1.0)
        return np.where(t == inside, (1 + inside**2) / 2, np.abs(t))


@dataclass(frozen=True)
class Triangular(Kernel):
    """A tent on [-1, 1]."""

    name = "triangular"
    deviation = 1 / math.sqrt(6)

    def density(self, t: Floats) -> Floats:
        """k(t) = 1 - |t| on [-1, 1]."""
        return 1 - np.minimum(np.abs(t), 1.0)

    def cdf(self, t: Floats) -> Floats:
        """K(t) = (1 + t)^2 / 2 on [-1, 0], 1 - (1 - t)^2 / 2 on [0, 1]."""
        t = np.clip(t, -1.0, 1.0)
        return np.where(t < 0, (1 + t) ** 2 / 2, 1 - (1 - t) ** 2 / 2)

    def quantile(self, p: Floats) -> Floats:
        """K^-1(p) = sqrt(2 p) - 1 up to p = 1/2, 1 - sqrt(2 (1 - p)) from there."""
        return np.where(p < 1 / 2, np.sqrt(2 * p) - 1, 1 - np.sqrt(2 * (1 - p)))

    def smoothed_abs(self, t: Floats) -> Floats:
        """E|t + Z| = 1/3 + t^2 - |t|^3 / 3 on [-1, 1], |t| on both sides of it."""
        inside = np.clip(t, -1.0, 1.0)
        cube = inside**2 * np.abs(inside)
        return np.where(t == inside, 1 / 3 + inside**2 - cube / 3, np.abs(t))


KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (Gaussian(), Epanechnikov(), Logistic(), Uniform(), Triangular())
}
