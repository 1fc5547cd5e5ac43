"""The objective of tuning: the mean of a metric, its tail, or both; and trials ranked by it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from safecf.defaults import LEVEL, METRIC
from safecf.measures.tails import tail_mean, whom


@dataclass(frozen=True)
class Objective:
    """1/|levels| sum_level tail_mean(scores, level), to be maximised; level 1 is the mean.

    >>> Objective("recall@20", (1.0, 0.5))({"recall@20": [0.0, 1.0]})
    0.25
    """

    metric: str = METRIC
    levels: tuple[float, ...] = (1.0, LEVEL)

    def __call__(self, scores: Mapping[str, ArrayLike]) -> float:
        """Return the objective; `scores` holds the users' scores by metric."""
        values = scores[self.metric]
        return float(np.mean([tail_mean(values, level) for level in self.levels]))

    def __str__(self) -> str:
        users = " and ".join(f"of {whom(level)}" for level in self.levels)
        return f"mean {self.metric} {users}"


@dataclass(frozen=True)
class Trial:
    """Options that were tried, and the values of the objective, one per repetition."""

    options: dict[str, Any]
    values: Sequence[float]

    @property
    def value(self) -> float:
        """Mean over the repetitions."""
        return float(np.mean(self.values))


def best(trials: Iterable[Trial], count: int = 1) -> list[Trial]:
    """Return the trials with the largest values, the largest first; of equal ones, the earlier."""
    return sorted(trials, key=lambda trial: -trial.value)[:count]
