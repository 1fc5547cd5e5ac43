"""Optimizers: which way a gradient step goes."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

Factors = Any  # as the backend has them


class Moments(NamedTuple):
    """Running means of the gradients and of their squares, entry by entry."""

    mean: Factors
    square: Factors

    def map(self, move: Callable[[Factors], Factors]) -> "Moments":
        """Return both with `move` applied."""
        return Moments(move(self.mean), move(self.square))


class Optimizer(Protocol):
    """x -= step_size * direction."""

    def direction(
        self, gradient: Factors, moments: Moments | None, epoch: int
    ) -> tuple[Factors, Moments | None]:
        """Return the direction of the step at `epoch`, the first of which is 1, and new moments."""


@dataclass(frozen=True)
class SGD:
    """The gradient itself, and nothing to remember."""

    def direction(
        self, gradient: Factors, moments: Moments | None, epoch: int
    ) -> tuple[Factors, Moments | None]:
        """Return g."""
        return gradient, None


@dataclass(frozen=True)
class Adam:
    """The mean gradient in units of its own size, so that every entry moves by about step_size.

        m_t = beta1 m_{t-1} + (1 - beta1) g ,   v_t = beta2 v_{t-1} + (1 - beta2) g^2
        direction = m_t / (1 - beta1^t) / ( sqrt(v_t / (1 - beta2^t)) + epsilon )

    Reference: Kingma and Ba, Adam: A Method for Stochastic Optimization, ICLR 2015.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def direction(
        self, gradient: Factors, moments: Moments | None, epoch: int
    ) -> tuple[Factors, Moments | None]:
        """Return the direction, and the moments m_t and v_t."""
        mean = (1 - self.beta1) * gradient
        square = (1 - self.beta2) * gradient**2
        if moments is not None:
            mean += self.beta1 * moments.mean
            square += self.beta2 * moments.square
        scale = square**0.5
        scale *= 1 / math.sqrt(1 - self.beta2**epoch)
        scale += self.epsilon
        scale *= 1 - self.beta1**epoch
        return mean / scale, Moments(mean, square)


OPTIMIZERS: dict[str, Optimizer] = {"sgd": SGD(), "adam": Adam()}
