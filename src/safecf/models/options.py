"""Options: what each of them may be; the rule stands beside the field, and `fit` checks it."""

import inspect
import math
import numbers
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from safecf.als.risk import SMALLEST_BANDWIDTH
from safecf.defaults import AUTO
from safecf.errors import choose, shown

LARGEST_INTEGER = 2**31 - 1
LARGEST_SEED = 2**63  # a file holds smaller ones

# Called with the name of an option, its value and its default; raises if the value will not do.
Rule = Callable[[str, object, object], None]


@dataclass(frozen=True)
class Integer:
    """A whole number from `low` to `high`."""

    low: int
    high: int = LARGEST_INTEGER

    def __call__(self, name: str, value: object, default: object) -> None:
        """Refuse anything else; True and False are not numbers."""
        remedy = f"try {name}={default!r}"
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise TypeError(f"{name}={shown(value)} has to be an integer; {remedy}")
        if not self.low <= int(value) <= self.high:
            raise ValueError(
                f"{name}={shown(value)} has to be from {self.low} to {self.high}; {remedy}"
            )


@dataclass(frozen=True)
class Number:
    """A real number in an interval, with its `ends` included or not: one of [] [) (] ()."""

    low: float
    high: float
    ends: str

    def __call__(self, name: str, value: object, default: object) -> None:
        """Refuse anything else, NaN included."""
        remedy = f"try {name}={default!r}"
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise TypeError(f"{name}={shown(value)} has to be a number; {remedy}")
        try:
            number = float(value)
        except OverflowError:
            number = math.nan
        inside = self.low < number < self.high
        inside |= self.ends[0] == "[" and number == self.low
        inside |= self.ends[1] == "]" and number == self.high
        if not inside:
            interval = f"{self.ends[0]}{self.low:g}, {self.high:g}{self.ends[1]}"
            raise ValueError(f"{name}={shown(value)} has to be in {interval}; {remedy}")


@dataclass(frozen=True)
class Name:
    """One of the names in `table`."""

    table: Mapping[str, Any]

    def __call__(self, name: str, value: object, default: object) -> None:
        """Refuse anything else, with the name that was probably meant."""
        choose(name, value, self.table)


@dataclass(frozen=True)
class Auto:
    """What the rule allows, or "auto": a value that `fit` derives from the data."""

    rule: Rule

    def __call__(self, name: str, value: object, default: object) -> None:
        """Refuse anything else."""
        if isinstance(value, str):
            if value == AUTO:
                return
            raise ValueError(
                f"{name}={shown(value)} has to be a number or {AUTO!r}; try {name}={default!r}"
            )
        self.rule(name, value, default)


def check_flag(name: str, value: object, default: object) -> None:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}={shown(value)} has to be True or False; try {name}={default!r}")


def check_random_state(name: str, value: object, default: object) -> None:
    """None, an integer from 0 to 2^63 - 1, or one of numpy's two kinds of generators."""
    if value is None or isinstance(value, np.random.Generator | np.random.RandomState):
        return
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(
            f"{name}={shown(value)} has to be None, an integer, a numpy.random.Generator or a "
            f"numpy.random.RandomState; try {name}=0"
        )
    if value < 0:
        raise ValueError(f"{name}={shown(value)} has to be at least 0; try {name}={-int(value)}")
    if int(value) >= LARGEST_SEED:
        raise ValueError(
            f"{name}={shown(value)} has to be below 2**63; try {name}={int(value) % LARGEST_SEED}"
        )


def check_device(name: str, value: object, default: object) -> None:
    """One of "auto", "cpu", "cuda", "cuda:0" and so on; only training sees whether it is there."""
    if not isinstance(value, str) or not re.fullmatch(r"auto|cpu|cuda(:(0|[1-9]\d{0,2}))?", value):
        raise ValueError(
            f"unknown {name} {shown(value)}: known are 'auto', 'cpu', 'cuda' and 'cuda:0', "
            f"'cuda:1', ...; try {name}='cuda' for a GPU"
        )


# The ends are far beyond what is of use, and such that no product of options overflows in float64.
POSITIVE_INTEGER = Integer(1)
STEPS = Integer(1, 1000)
NONNEGATIVE = Number(0, 1e15, "[]")
EXPONENT = Number(0, 10, "[]")
SHARE = Number(1e-6, 1, "[]")
BANDWIDTH = Number(SMALLEST_BANDWIDTH, math.inf, "[]")
TOLERANCE = Number(0, 1, "()")
STEP_SIZE = Number(1e-6, 1e6, "[]")  # below, float32 does not change; above, nothing converges
INIT_STD = Number(1e-6, 1e3, "[]")  # below, squares of factors vanish; above, losses overflow


def option(default: Any, rule: Rule) -> Any:
    """Return a dataclass field with its default value, and the rule that `fit` checks it by."""
    return field(default=default, metadata={"rule": rule})


@cache
def parameters(model: type) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a model's constructor; `inspect` takes 0.1 ms for them."""
    return inspect.signature(model).parameters


@cache
def rules(model: type) -> Mapping[str, Rule]:
    """Return the rule of every option of a model class, by name.

    A subclass may give an option another default without repeating its rule.
    """
    found = {}
    for kind in reversed(model.__mro__):
        for each in vars(kind).get("__dataclass_fields__", {}).values():
            if "rule" in each.metadata:
                found[each.name] = each.metadata["rule"]
    return found


def check_options(options: Mapping[str, object], model: type) -> None:
    """Check every option by its rule; errors suggest the model's default."""
    known, defaults = rules(model), parameters(model)
    for name, value in options.items():
        known[name](name, value, defaults[name].default)


def draw_seed(random_state: Any) -> int:
    """Return the seed: the given integer, or one drawn from the generator."""
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(LARGEST_INTEGER))
    return int(np.random.default_rng(random_state).integers(LARGEST_INTEGER))
