"""Spaces: the ranges of options, as a grid, or drawn at random."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

DIGITS = 3  # of the numbers that are tried; more would not be meant


class Range(Protocol):
    """The values that an option may have."""

    def grid(self) -> Sequence[Any]:
        """Return the values of a grid, both ends included."""

    def draw(self, rng: np.random.Generator) -> Any:
        """Return a random value."""

    def near(self, value: Any, width: float, rng: np.random.Generator) -> Any:
        """Return a random value at most `width` away, as a share of the range; 1 is all of it."""

    def place(self, value: Any) -> float | None:
        """Return where in the range a value is, 0 being one end and 1 the other, if it has ends."""


@dataclass(frozen=True)
class _Interval:
    """Numbers from `low` to `high`, of which a grid has `points`."""

    low: float
    high: float
    points: int = 5

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}"

    def _inside(self, value: float) -> float:
        return min(max(_rounded(value), self.low), self.high)


@dataclass(frozen=True)
class LogUniform(_Interval):
    """Numbers from `low` to `high` whose logarithms are equally likely, or equally spaced."""

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.high:
            raise ValueError(f"low is {self.low} and high {self.high}; 0 < low <= high is needed")

    def grid(self) -> list[float]:
        """Return `points` values at equal ratios."""
        return [self._inside(value) for value in np.geomspace(self.low, self.high, self.points)]

    def draw(self, rng: np.random.Generator) -> float:
        """Return exp of a uniform number."""
        return self._inside(math.exp(rng.uniform(math.log(self.low), math.log(self.high))))

    def near(self, value: float, width: float, rng: np.random.Generator) -> float:
        """Return the value times a random number about 1, in the range."""
        far = width * math.log(self.high / self.low)
        return self._inside(value * math.exp(rng.uniform(-far, far)))

    def place(self, value: float) -> float:
        """Return the share of the range, in logarithms, that is below a value."""
        return math.log(value / self.low) / (math.log(self.high / self.low) or 1.0)


@dataclass(frozen=True)
class Uniform(_Interval):
    """Numbers from `low` to `high`, all equally likely, or equally spaced."""

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"low is {self.low} and high {self.high}; low <= high is needed")

    def grid(self) -> list[float]:
        """Return `points` values at equal distances."""
        return [_rounded(value) for value in np.linspace(self.low, self.high, self.points)]

    def draw(self, rng: np.random.Generator) -> float:
        """Return a uniform number."""
        return self._inside(rng.uniform(self.low, self.high))

    def near(self, value: float, width: float, rng: np.random.Generator) -> float:
        """Return the value plus a random number about 0, in the range."""
        far = width * (self.high - self.low)
        return self._inside(value + rng.uniform(-far, far))

    def place(self, value: float) -> float:
        """Return the share of the range that is below a value."""
        return (value - self.low) / (self.high - self.low or 1.0)


@dataclass(frozen=True)
class Choice:
    """One of some values."""

    values: tuple[Any, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.values))

    def grid(self) -> list[Any]:
        """Return all of them."""
        return list(self.values)

    def draw(self, rng: np.random.Generator) -> Any:
        """Return one of them."""
        return self.values[int(rng.integers(len(self.values)))]

    def near(self, value: Any, width: float, rng: np.random.Generator) -> Any:
        """Return the value itself, or with the chance `width` any of them."""
        return self.draw(rng) if rng.random() < width else value

    def place(self, value: Any) -> None:
        """Return nothing: a choice has no ends."""


Space = Mapping[str, Range]


def grid(space: Space) -> list[dict[str, Any]]:
    """Return all combinations of the values of the grids.

    >>> grid({"tail": Choice((0.2, 0.3))})
    [{'tail': 0.2}, {'tail': 0.3}]
    """
    values = itertools.product(*(each.grid() for each in space.values()))
    return [dict(zip(space, each, strict=True)) for each in values]


def sample(space: Space, count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Draw settings; the first n of a longer list are those of a shorter one."""
    rng = np.random.default_rng(seed)
    return [{name: each.draw(rng) for name, each in space.items()} for _ in range(count)]


def near(
    space: Space, centres: Sequence[Mapping[str, Any]], count: int, width: float, seed: int = 0
) -> list[dict[str, Any]]:
    """Draw settings near some others, in turn, all options at once.

    >>> near({"tail": Uniform(0.1, 0.5)}, [{"tail": 0.3}], 2, 0.1)
    [{'tail': 0.311}, {'tail': 0.282}]
    """
    rng = np.random.default_rng(seed)
    chosen = [centres[place % len(centres)] for place in range(count)]
    return [
        {name: each.near(centre[name], width, rng) for name, each in space.items()}
        for centre in chosen
    ]


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
