"""Search spaces: a range per option, and the ranges that are searched by default."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from safecf.checks import check_integer, check_list, check_number, check_type
from safecf.errors import choose, shown
from safecf.texts import parse_value

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

DIGITS = 3  # significant digits of the numbers that are tried
SHOWN = 15  # significant digits of the ends of a range, by which studies are told apart
LARGEST = 2**31 - 1  # of integers


class Range(Protocol):
    """The values that an option may have."""

    def at(self, centre: Any) -> "Range":
        """Return the range for a model that has the value `centre` by default."""

    def grid(self) -> Sequence[Any]:
        """Return the values of a grid, with both ends."""

    def contains(self, value: Any) -> bool:
        """Whether the range has this value."""

    def rounded(self, value: Any) -> Any:
        """Round to three significant digits, inside the range."""

    def place(self, value: Any) -> float | None:
        """Return the position of a value in the range, from 0 to 1; None if there is no order."""

    def wider(self) -> list[Any]:
        """Return a value below the range and one above it; none if there is no order."""

    def distribution(self) -> "BaseDistribution":
        """Return the same as a distribution of Optuna."""


def _check(low: float, high: float, points: int, *, positive: bool) -> None:
    below, above = (check_number(name, end, 0.1) for name, end in (("low", low), ("high", high)))
    check_integer("points", points, 1, 5)
    if not (math.isfinite(above - below) and below <= above and (below > 0 or not positive)):
        needed = "0 < low <= high" if positive else "low <= high"
        raise ValueError(
            f"low is {below:.{SHOWN}g} and high {above:.{SHOWN}g}; give {needed}, both finite "
            "and with a finite difference"
        )


@dataclass(frozen=True)
class _Interval:
    """Numbers from `low` to `high`; a grid has `points` of them."""

    low: float
    high: float
    points: int = 5

    def __str__(self) -> str:
        return f"{self.low:.{SHOWN}g} to {self.high:.{SHOWN}g}"

    @property
    def _ends(self) -> tuple[float, float]:
        """The ends for numpy, which takes no integers beyond 64 bits."""
        return float(self.low), float(self.high)

    def contains(self, value: Any) -> bool:
        """Whether low <= value <= high."""
        return isinstance(value, int | float) and self.low <= value <= self.high

    def rounded(self, value: float) -> float:
        """Round to three significant digits, inside the range."""
        return min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high)

    def wider(self) -> list[Any]:
        """Return a value below the range and one above it."""
        return [self.low / 2 if self.low > 0 else self.low - 1, self.high + 1]


@dataclass(frozen=True)
class LogUniform(_Interval):
    """Numbers from `low` to `high`, uniform in their logarithms.

    >>> LogUniform(0.01, 1.0, points=3).grid()
    [0.01, 0.1, 1.0]
    """

    def __post_init__(self) -> None:
        _check(self.low, self.high, self.points, positive=True)

    def at(self, centre: Any) -> "LogUniform":
        """Return the range itself, whatever the default."""
        return self

    def grid(self) -> list[float]:
        """Return `points` values at equal ratios."""
        return [self.rounded(value) for value in np.geomspace(*self._ends, self.points)]

    def place(self, value: float) -> float:
        """Return log(value / low) / log(high / low), of any floats."""
        low, high = math.log(self.low), math.log(self.high)
        return (math.log(value) - low) / (high - low or 1.0)

    def distribution(self) -> "BaseDistribution":
        """Return a float distribution in log scale."""
        from optuna.distributions import FloatDistribution  # noqa: PLC0415 - Optuna is optional

        return FloatDistribution(self.low, self.high, log=True)


@dataclass(frozen=True)
class LogInteger(LogUniform):
    """Whole numbers from `low` to `high`, about uniform in their logarithms.

    >>> LogInteger(16, 64, points=3).grid()
    [16, 32, 64]
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            if check_integer(name, getattr(self, name), 1, 8) > LARGEST:
                raise ValueError(f"{name} is above {LARGEST:,}; give a smaller one")
        super().__post_init__()

    def contains(self, value: Any) -> bool:
        """Whether it is a whole number with low <= value <= high."""
        return isinstance(value, int) and super().contains(value)

    def rounded(self, value: float) -> int:
        """Round to a whole number, inside the range."""
        return min(max(round(value), self.low), self.high)

    def wider(self) -> list[int]:
        """Return a whole number below the range and one above it."""
        return [self.low - 1, self.high + 1]

    def distribution(self) -> "BaseDistribution":
        """Return an integer distribution in log scale."""
        from optuna.distributions import IntDistribution  # noqa: PLC0415 - Optuna is optional

        return IntDistribution(self.low, self.high, log=True)


@dataclass(frozen=True)
class Uniform(_Interval):
    """Numbers from `low` to `high`, uniform.

    >>> Uniform(0.0, 1.0, points=3).grid()
    [0.0, 0.5, 1.0]
    """

    def __post_init__(self) -> None:
        _check(self.low, self.high, self.points, positive=False)

    def at(self, centre: Any) -> "Uniform":
        """Return the range itself, whatever the default."""
        return self

    def grid(self) -> list[float]:
        """Return `points` values at equal distances."""
        return [self.rounded(value) for value in np.linspace(*self._ends, self.points)]

    def place(self, value: float) -> float:
        """Return (value - low) / (high - low)."""
        return (value - self.low) / (self.high - self.low or 1.0)

    def distribution(self) -> "BaseDistribution":
        """Return a float distribution."""
        from optuna.distributions import FloatDistribution  # noqa: PLC0415 - Optuna is optional

        return FloatDistribution(self.low, self.high)


@dataclass(frozen=True)
class Choice:
    """One of the given values.

    >>> Choice(("gaussian", "logistic")).grid()
    ['gaussian', 'logistic']
    """

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        check_list("values", self.values, "give a list, as in Choice(('gaussian', 'logistic'))")
        if not self.values:
            raise ValueError("a choice has no values; give at least one, as in Choice((0.2, 0.3))")

    def __str__(self) -> str:
        return ", ".join(map(str, self.values))

    def at(self, centre: Any) -> "Choice":
        """Return the choice itself, whatever the default."""
        return self

    def grid(self) -> list[Any]:
        """Return all values."""
        return list(self.values)

    def contains(self, value: Any) -> bool:
        """Whether it is one of the values."""
        return value in self.values

    def rounded(self, value: Any) -> Any:
        """Return the value as it is."""
        return value

    def place(self, value: Any) -> None:
        """Return None: the values have no order."""

    def wider(self) -> list[Any]:
        """Return nothing: the values have no order."""
        return []

    def distribution(self) -> "BaseDistribution":
        """Return a categorical distribution."""
        from optuna.distributions import CategoricalDistribution  # noqa: PLC0415 - it is optional

        return CategoricalDistribution(self.values)


@dataclass(frozen=True)
class Around:
    """Numbers from default / factor to default * factor, uniform in their logarithms.

    >>> Around(5).at(0.1)
    LogUniform(low=0.02, high=0.5, points=5)
    """

    factor: float

    def __post_init__(self) -> None:
        if not 1 < check_number("factor", self.factor, 5) < math.inf:
            raise ValueError(f"factor={self.factor} has to be above 1, and finite; try factor=5")

    def at(self, centre: Any) -> LogUniform:
        """Return the range for a model that has the value `centre` by default."""
        low, high = (
            float(f"{each:.{DIGITS}g}") for each in (centre / self.factor, centre * self.factor)
        )
        return LogUniform(low, high)


Space = Mapping[str, Range]

# What is searched by default, of the options that a model has.
DEFAULT_RANGES: dict[str, Around | Range] = {
    "unobserved_weight": Around(8),
    "regularization": Around(5),
    "bandwidth": Around(5),
    "step_size": Around(4),
    "beta": Around(5),
    "dropout": Uniform(0.2, 0.8),
}


def check_space(space: Any) -> None:
    """Raise if this is not a range per option."""
    check_type("space", space, Mapping, "give ranges by option, as in {'tail': Uniform(0.1, 0.5)}")
    for name, each in space.items():
        check_range(name, each)


def check_range(name: str, given: Any) -> None:
    """Raise if this is not a range."""
    if isinstance(given, type) or not hasattr(given, "distribution"):
        raise TypeError(
            f"the range of {name} is {shown(given)}; give a range, such as LogUniform(0.05, 0.5) "
            "or Choice((0.2, 0.3))"
        )


def grid(space: Space) -> list[dict[str, Any]]:
    """Return all combinations of the grids' values.

    >>> grid({"tail": Choice((0.2, 0.3))})
    [{'tail': 0.2}, {'tail': 0.3}]
    """
    check_space(space)
    values = itertools.product(*(each.grid() for each in space.values()))
    return [dict(zip(space, each, strict=True)) for each in values]


def parse_range(text: str, defaults: Mapping[str, Any]) -> tuple[str, Range]:
    """Read an option and its range: two ends, in log scale where both are positive, or a list.

    `defaults` are those of the model's class; an option that is an integer there stays one.

    >>> parse_range("factors=32..128", IALS().get_params())
    ('factors', LogInteger(low=32, high=128, points=5))
    >>> parse_range("kernel=gaussian,logistic", SAFER2().get_params())
    ('kernel', Choice(values=('gaussian', 'logistic')))
    """
    check_type("text", text, str, "try 'bandwidth=0.05..0.5'")
    name, sign, given = (part.strip() for part in text.partition("="))
    if not (name and sign and given):
        raise ValueError(
            f"{text!r} is no range; try bandwidth=0.05..0.5, or kernel=gaussian,logistic"
        )
    default = choose("option", name, defaults)
    parts = given.split("..")
    if len(parts) == 1:
        return name, Choice(tuple(parse_value(each.strip()) for each in given.split(",")))
    ends = [parse_value(each.strip()) for each in parts]
    if len(ends) != 2 or any(type(each) not in (int, float) for each in ends):
        raise ValueError(f"{shown(text)} has no two numbers as its ends; try {name}=0.05..0.5")
    kind: type[_Interval] = LogUniform if ends[0] > 0 else Uniform
    if type(default) is int and all(type(each) is int for each in ends):
        kind = LogInteger
    try:
        return name, kind(*ends)  # type: ignore[return-value]
    except ValueError as problem:
        raise ValueError(f"{shown(text)}: {problem}") from None
