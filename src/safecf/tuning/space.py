"""Search spaces: a range per option, searched on a grid or at random."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from safecf.defaults import SEED

DIGITS = 3  # significant digits of the numbers that are tried


class Range(Protocol):
    """The values that an option may have."""

    def grid(self) -> Sequence[Any]:
        """Return the values of a grid, with both ends."""

    def draw(self, rng: np.random.Generator) -> Any:
        """Return a random value."""

    def near(self, value: Any, width: float, rng: np.random.Generator) -> Any:
        """Return a random value at most `width` away, as a share of the range."""

    def place(self, value: Any) -> float | None:
        """Return the position of a value in the range, from 0 to 1; None if there is no order."""


@dataclass(frozen=True)
class _Interval:
    """Numbers from `low` to `high`; a grid has `points` of them."""

    low: float
    high: float
    points: int = 5

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}"

    def _inside(self, value: float) -> float:
        return min(max(_rounded(value), self.low), self.high)


@dataclass(frozen=True)
class LogUniform(_Interval):
    """Numbers from `low` to `high`, uniform in their logarithms."""

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.high:
            raise ValueError(f"low is {self.low} and high {self.high}; 0 < low <= high is needed")

    def grid(self) -> list[float]:
        """Return `points` values at equal ratios."""
        return [self._inside(value) for value in np.geomspace(self.low, self.high, self.points)]

    def draw(self, rng: np.random.Generator) -> float:
        """Return exp of a uniform random number."""
        return self._inside(math.exp(rng.uniform(math.log(self.low), math.log(self.high))))

    def near(self, value: float, width: float, rng: np.random.Generator) -> float:
        """Multiply the value by a random factor, and clip it to the range."""
        far = width * math.log(self.high / self.low)
        return self._inside(value * math.exp(rng.uniform(-far, far)))

    def place(self, value: float) -> float:
        """Return log(value / low) / log(high / low)."""
        return math.log(value / self.low) / (math.log(self.high / self.low) or 1.0)


@dataclass(frozen=True)
class Uniform(_Interval):
    """Numbers from `low` to `high`, uniform."""

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"low is {self.low} and high {self.high}; low <= high is needed")

    def grid(self) -> list[float]:
        """Return `points` values at equal distances."""
        return [_rounded(value) for value in np.linspace(self.low, self.high, self.points)]

    def draw(self, rng: np.random.Generator) -> float:
        """Return a uniform random number."""
        return self._inside(rng.uniform(self.low, self.high))

    def near(self, value: float, width: float, rng: np.random.Generator) -> float:
        """Add a random number to the value, and clip it to the range."""
        far = width * (self.high - self.low)
        return self._inside(value + rng.uniform(-far, far))

    def place(self, value: float) -> float:
        """Return (value - low) / (high - low)."""
        return (value - self.low) / (self.high - self.low or 1.0)


@dataclass(frozen=True)
class Choice:
    """One of the given values."""

    values: tuple[Any, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.values))

    def grid(self) -> list[Any]:
        """Return all values."""
        return list(self.values)

    def draw(self, rng: np.random.Generator) -> Any:
        """Return a random one of the values."""
        return self.values[int(rng.integers(len(self.values)))]

    def near(self, value: Any, width: float, rng: np.random.Generator) -> Any:
        """Return the value itself or, with probability `width`, a random one."""
        return self.draw(rng) if rng.random() < width else value

    def place(self, value: Any) -> None:
        """Return None: the values have no order."""


Space = Mapping[str, Range]


def grid(space: Space) -> list[dict[str, Any]]:
    """Return all combinations of the grids' values.

    >>> grid({"tail": Choice((0.2, 0.3))})
    [{'tail': 0.2}, {'tail': 0.3}]
    """
    values = itertools.product(*(each.grid() for each in space.values()))
    return [dict(zip(space, each, strict=True)) for each in values]


def sample(space: Space, count: int, seed: int = SEED) -> list[dict[str, Any]]:
    """Draw options at random; a longer list begins with the shorter one of the same seed."""
    rng = np.random.default_rng(seed)
    return [{name: each.draw(rng) for name, each in space.items()} for _ in range(count)]


def near(
    space: Space, centres: Sequence[Mapping[str, Any]], count: int, width: float, seed: int = SEED
) -> list[dict[str, Any]]:
    """Draw options near the centres, taking them in turn; all options change at once.

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
