"""What is to be large: the mean of a metric, that of its tail, or both."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from safecf.measures.tails import tail_mean


@dataclass(frozen=True)
class Objective:
    """The average over `levels` of the tail means of a metric; level 1 is the mean of all users.

    >>> Objective("recall@20", (1.0, 0.3))({"recall@20": [0.0, 0.5, 1.0]})
    """

    metric: str = "recall@20"
    levels: tuple[float, ...] = (1.0, 0.3)

    def __call__(self, scores: Mapping[str, ArrayLike]) -> float:
        """Return it for the scores of every user, by metric."""
        values = scores[self.metric]
        return float(np.mean([tail_mean(values, level) for level in self.levels]))

    def __str__(self) -> str:
        names = ["mean" if level == 1 else f"tail {level:g}" for level in self.levels]
        return f"{' and '.join(names)} of {self.metric}"


@dataclass(frozen=True)
class Trial:
    """Options that were tried, and the values of the objective, one per repetition."""

    options: dict[str, Any]
    values: Sequence[float]

    @property
    def value(self) -> float:
        """The mean of the repetitions."""
        return float(np.mean(self.values))


def best(trials: Iterable[Trial], count: int = 1) -> list[Trial]:
    """Return the trials with the largest values, the largest first; the first of equals."""
    return sorted(trials, key=lambda trial: -trial.value)[:count]
