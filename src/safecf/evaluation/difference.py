"""`Difference`: the tail of one model beside that of another, on the same users."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from safecf.errors import choose
from safecf.evaluation.result import Evaluation
from safecf.measures import bootstrap
from safecf.measures.tails import in_tail

Floats = NDArray[np.float64]
Estimate = tuple[float, float, float]

BETTER, WORSE, UNCLEAR = "better", "worse", "unclear"

# Changes are compared to that many digits, lest rounding tell 0.3 - 0.2 from 0.2 - 0.1.
DIGITS = 12
NOTHING: Estimate = (math.nan, math.nan, math.nan)
# Up to that many users the distribution of the signed ranks is counted out.
EXACT = 50


@dataclass(frozen=True)
class Difference:
    """The tail of one model beside that of the baseline, at one level.

    Parameters
    ----------
    metric, level
        Whose tail, and how much of it; level 1 is the mean.
    baseline, value
        The tail means of the baseline and of the other model.
    absolute
        value - baseline, with the low and high end of its interval.
    relative
        100 (value / baseline - 1), the lift in percent, likewise. It is infinite where a baseline
        of zero is lifted, and NaN where both are zero.
    p_value
        Wilcoxon signed-rank test, two-sided, of the per-user scores of the users who are in
        either model's tail at that level, ties with its boundary included; at level 1, of all
        users. It asks how many users gain, and by which rank, not what the tail means are: the
        two can disagree.
    wins, ties, losses
        How many of these users the other model serves better, alike and worse.
    """

    metric: str
    level: float
    baseline: float
    value: float
    absolute: Estimate
    relative: Estimate
    p_value: float
    wins: int
    ties: int
    losses: int

    @property
    def outcome(self) -> str:
        """BETTER or WORSE only where the interval excludes zero, else UNCLEAR."""
        _, low, high = self.absolute
        return BETTER if low > 0 else WORSE if high < 0 else UNCLEAR

    @property
    def has_lift(self) -> bool:
        """Whether the lift and its interval are numbers."""
        return all(math.isfinite(number) for number in self.relative)


def paired_differences(
    baseline: Evaluation,
    other: Evaluation,
    metric: str,
    levels: Sequence[float],
    *,
    resamples: int,
    confidence: float,
    seed: int,
) -> list[Difference]:
    """Return a difference per level, of two evaluations of the same users."""
    pair = [(each, choose("metric", metric, each.scores)) for each in (baseline, other)]
    # The same seed draws the same users for both.
    draws = [each.draws(metric, levels, resamples, seed) for each, _ in pair]
    before, after = (bootstrap.tail_means(scores, levels) for _, scores in pair)
    absolute = _estimates(after - before, draws[1] - draws[0], confidence)
    lifts = _estimates(_lift(before, after), _lift(*draws), confidence)
    relative = [
        lift if a or b else NOTHING for lift, a, b in zip(lifts, before, after, strict=True)
    ]
    return [
        Difference(
            metric=metric,
            level=level,
            baseline=float(before[column]),
            value=float(after[column]),
            absolute=absolute[column],
            relative=relative[column],
            **_signs(pair[0][1], pair[1][1], level),
        )
        for column, level in enumerate(levels)
    ]


def _estimates(seen: Floats, draws: Floats, confidence: float) -> list[Estimate]:
    low, high = bootstrap.percentile_interval(draws, confidence)
    return [(float(a), float(b), float(c)) for a, b, c in zip(seen, low, high, strict=True)]


def _lift(before: Floats, after: Floats) -> Floats:
    """100 (after / before - 1); draws of zero do not lift zero."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(before == after, 0.0, 100 * (after / before - 1))


def _signs(first: Floats, second: Floats, level: float) -> dict[str, Any]:
    """Test and count the users who are in either tail."""
    either = in_tail(first, level) | in_tail(second, level)
    change = np.round(second - first, DIGITS)[either]
    moved = change[change != 0]
    wins, losses = int(np.count_nonzero(moved > 0)), int(np.count_nonzero(moved < 0))
    return {
        "p_value": _wilcoxon(moved) if moved.size else 1.0,
        "wins": wins,
        "ties": change.size - wins - losses,
        "losses": losses,
    }


def _wilcoxon(changes: Floats) -> float:
    """Return the p-value of the signed-rank test; exact for few users, else by its normal limit."""
    method: Literal["exact", "approx"] = "exact" if changes.size <= EXACT else "approx"
    return float(scipy.stats.wilcoxon(changes, method=method).pvalue)
