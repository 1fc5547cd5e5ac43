"""The objective of tuning: the mean of a metric, its tail, or both."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from safecf.checks import check_type
from safecf.defaults import LEVEL, METRIC
from safecf.errors import choose
from safecf.measures.tails import check_level, tail_mean, whom

OBJECTIVES = ("mean", "tail", "both")
LEAST = 0.1  # of the default's mean: a gain is not relative to less


class Scores(NamedTuple):
    """The mean of a metric over all users, and over the worst-off."""

    mean: float
    tail: float


@dataclass(frozen=True)
class Objective:
    """The mean of a metric over all users, or over the worst-off share `level`, or both.

    >>> Objective("recall@20", "both", 0.5)({"recall@20": [0.0, 1.0]})
    0.25
    """

    metric: str = METRIC
    kind: str = "both"
    level: float = LEVEL

    def __post_init__(self) -> None:
        check_type("metric", self.metric, str, f"try metric={METRIC!r}")
        choose("objective", self.kind, dict.fromkeys(OBJECTIVES))
        check_level(self.level)

    @property
    def levels(self) -> tuple[float, ...]:
        """The shares of users that count; 1 means all."""
        return {"mean": (1.0,), "tail": (self.level,), "both": (1.0, self.level)}[self.kind]

    def __call__(self, scores: Mapping[str, ArrayLike]) -> float:
        """1/|levels| sum_level tail_mean(scores, level); `scores` has the users' by metric."""
        values = scores[self.metric]
        return float(np.mean([tail_mean(values, level) for level in self.levels]))

    def measure(self, scores: Mapping[str, ArrayLike]) -> Scores:
        """Return mean and tail, whichever of them is the objective."""
        values = scores[self.metric]
        return Scores(tail_mean(values, 1.0), tail_mean(values, self.level))

    def values(self, found: Scores) -> tuple[float, ...]:
        """Return what is maximised: the mean, the tail, or both."""
        return {"mean": found[:1], "tail": found[1:], "both": tuple(found)}[self.kind]

    def gain(self, found: Scores, default: Scores) -> float:
        """Mean of (v - v_0) / max(|v_0|, m_0 / 10) over the values v that are maximised.

        v_0 are the default model's values, and m_0 is its mean, so that a tail of nearly zero does
        not decide alone. One number, even for both: it ranks trials and epochs.

        >>> Objective().gain(Scores(0.33, 0.11), default=Scores(0.30, 0.10))
        0.1
        """
        least = LEAST * abs(default.mean) or 1.0
        pairs = zip(self.values(found), self.values(default), strict=True)
        gains = [(value - before) / max(abs(before), least) for value, before in pairs]
        return float(np.mean(gains))

    def __str__(self) -> str:
        users = " and ".join(f"of {whom(level)}" for level in self.levels)
        return f"mean {self.metric} {users}"
