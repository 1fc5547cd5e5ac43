"""The budget of a search: a number of trials, minutes, or both."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from safecf.checks import check_integer, check_number
from safecf.tuning.trials import Trial


@dataclass(frozen=True)
class Budget:
    """How many trials, or for how many minutes of trials; None means any number.

    No trial begins after the minutes are over. Those of an earlier run of the same study count.
    """

    trials: int | None = None
    minutes: float | None = None

    def __post_init__(self) -> None:
        if self.trials is None and self.minutes is None:
            raise ValueError("the search has no end; give trials=, minutes= or both")
        if self.trials is not None:
            check_integer("trials", self.trials, 1, 50)
        if self.minutes is not None:
            minutes = check_number("minutes", self.minutes, 10)
            if not 0 < minutes < math.inf:
                raise ValueError(f"minutes={minutes:g} has to be above 0; try minutes=10")

    def within(self, trials: Sequence[Trial]) -> list[Trial]:
        """Return the first trials, as many as the budget allows for."""
        found: list[Trial] = []
        for each in trials[: self.trials]:
            if self.is_spent(found):
                break
            found.append(each)
        return found

    def is_spent(self, trials: Sequence[Trial]) -> bool:
        """Whether no trial may begin after these."""
        return self.share(trials) >= 1

    def share(self, trials: Sequence[Trial]) -> float:
        """Return how much of the budget these trials took."""
        by_number = 0.0 if self.trials is None else len(trials) / self.trials
        by_time = 0.0 if self.minutes is None else seconds(trials) / (60 * self.minutes)
        return max(by_number, by_time)

    def __str__(self) -> str:
        parts = [] if self.trials is None else [f"{self.trials} trials"]
        parts += [] if self.minutes is None else [f"{self.minutes:g} minutes"]
        return " or ".join(parts)


def seconds(trials: Sequence[Trial]) -> float:
    """Return how long the trials took."""
    return sum(each.seconds for each in trials)
