"""`Difference`: the tail of one model minus that of another on the same users, and the verdict."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.stats

from safecf.errors import choose
from safecf.evaluation.result import Evaluation
from safecf.measures import bootstrap
from safecf.measures.bootstrap import Counts, Draws, Estimate
from safecf.measures.tails import Floats, in_tail, whom

BETTER, WORSE, UNCLEAR = "better", "worse", "unclear"
VERBS = {BETTER: "lifts", WORSE: "lowers", UNCLEAR: "makes no clear difference to"}

# Changes of scores are rounded to so many digits, so that 0.3 - 0.2 ties with 0.2 - 0.1.
DIGITS = 12
# Up to so many users the signed-rank test is exact; beyond, its normal approximation is used.
EXACT = 50
NO_LIFT: Estimate = (math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Difference:
    """The tail of a model beside that of the baseline, at one level.

    Parameters
    ----------
    metric, level
        The metric, and the share of worst-off users; level 1 is the mean.
    baseline, value
        The tail means of the baseline and of the other model.
    absolute
        value - baseline, with the low and high end of its interval.
    relative
        100 (value / baseline - 1), the lift in percent, with its interval. Infinite if the
        baseline is zero and the value is not, NaN if both are zero.
    p_value
        Wilcoxon signed-rank test, two-sided, of the scores of the users who are in either model's
        tail at that level, ties with its boundary included; at level 1, of all users. It tests
        how many users gain, weighted by rank, not the tail means: the two can disagree.
    wins, ties, losses
        Number of these users whom the other model serves better, equally well, and worse. A user
        of several splits counts, here and in the test, with the mean change over these splits.
    splits
        The baseline's tail mean and the other model's on every split, if there are several.
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
    splits: tuple[tuple[float, float], ...] = ()

    @property
    def splits_won(self) -> int:
        """Number of splits on which the other model is better."""
        return sum(after > before for before, after in self.splits)

    @property
    def split_lifts(self) -> list[float]:
        """The lift in percent on every split; see `relative`."""
        return [float(each) for each in _lift(*np.array(self.splits).reshape(-1, 2).T)]

    @property
    def outcome(self) -> str:
        """BETTER or WORSE if the interval excludes zero, else UNCLEAR."""
        _, low, high = self.absolute
        return BETTER if low > 0 else WORSE if high < 0 else UNCLEAR

    @property
    def has_lift(self) -> bool:
        """Whether the lift and its interval are finite."""
        return all(math.isfinite(number) for number in self.relative)


def paired_differences(
    baseline: Evaluation, other: Evaluation, metric: str, levels: Sequence[float], draws: Draws
) -> list[Difference]:
    """Return a difference per level, of two evaluations of the same users."""
    pair = (baseline, other)
    first, second = (choose("metric", metric, each.scores) for each in pair)
    # The same seed draws the same users for both.
    drawn = [each.resampled(metric, levels, draws) for each in pair]
    on_splits = [each.split_tails(metric, levels) for each in pair]
    before, after = (each.mean(axis=0) for each in on_splits)
    absolute = _estimates(after - before, drawn[1] - drawn[0], draws)
    lifts = _estimates(_lift(before, after), _lift(*drawn), draws)
    return [
        Difference(
            metric=metric,
            level=level,
            baseline=float(before[column]),
            value=float(after[column]),
            absolute=absolute[column],
            relative=lifts[column] if before[column] or after[column] else NO_LIFT,
            splits=_pairs(*(each[:, column] for each in on_splits)),
            **_signed_ranks(first, second, level, baseline.user_numbers),
        )
        for column, level in enumerate(levels)
    ]


def _pairs(before: Floats, after: Floats) -> tuple[tuple[float, float], ...]:
    """Return a pair for each split, none if there is only one split."""
    found = tuple((float(a), float(b)) for a, b in zip(before, after, strict=True))
    return found if len(found) > 1 else ()


def _estimates(seen: Floats, drawn: Floats, draws: Draws) -> list[Estimate]:
    low, high = bootstrap.percentile_interval(drawn, draws.confidence)
    return [(float(a), float(b), float(c)) for a, b, c in zip(seen, low, high, strict=True)]


def _lift(before: Floats, after: Floats) -> Floats:
    """100 (after / before - 1), and 0 where both are zero."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(before == after, 0.0, 100 * (after / before - 1))


def _signed_ranks(first: Floats, second: Floats, level: float, users: Counts) -> dict[str, Any]:
    """Test and count the users who are in either tail, by the mean of their appearances there."""
    either = in_tail(first, level) | in_tail(second, level)
    _, user, appearances = np.unique(users[either], return_inverse=True, return_counts=True)
    change = np.bincount(user, (second - first)[either]) / appearances
    change = np.round(change, DIGITS)
    moved = change[change != 0]
    wins, losses = int(np.count_nonzero(moved > 0)), int(np.count_nonzero(moved < 0))
    return {
        "p_value": _wilcoxon(moved) if moved.size else 1.0,
        "wins": wins,
        "ties": change.size - wins - losses,
        "losses": losses,
    }


def _wilcoxon(changes: Floats) -> float:
    method: Literal["exact", "approx"] = "exact" if changes.size <= EXACT else "approx"
    return float(scipy.stats.wilcoxon(changes, method=method).pvalue)


def verdict(model: str, baseline: str, tail: Difference, mean: Difference) -> str:
    """Write one sentence on what the model does for the tail and for the mean.

    It claims a rise or a fall only if the interval excludes zero. The change is in percent, or in
    units of the metric if the baseline is zero. Tail and mean may be of different metrics.

    >>> verdict("SAFER2", "iALS", tail, mean)
    'SAFER2 lifts the worst-off 30 % by 8.6 % [5.1, 12.0] and the average by 1.9 % [0.4, 3.3]
    (recall@20, compared with iALS)'
    """
    who = "the average" if tail.level == 1 else whom(tail.level)
    said = f"{model} {VERBS[tail.outcome]} {who}{_amount(tail)}"
    if tail.level != 1:
        said += "" if tail.metric == mean.metric else f" ({tail.metric})"
        said += f"{_link(tail.outcome, mean.outcome)} the average{_amount(mean)}"
    measured = tail.metric if tail.level == 1 else mean.metric
    return f"{said} ({measured}, compared with {baseline})"


def _link(tail: str, mean: str) -> str:
    """Connect the outcome of the tail with that of the mean."""
    comma = "," if tail == UNCLEAR else ""
    if tail == mean:
        return f"{comma} nor to" if tail == UNCLEAR else " and"
    if {tail, mean} == {BETTER, WORSE}:
        return f", but {VERBS[mean]}"
    return f"{comma} and {VERBS[mean]}"


def _amount(change: Difference) -> str:
    """Write " by 8.6 % [5.1, 12.0]", or ", +0.2 % [-1.0, 1.4]" if the direction is not clear."""
    numbers, digits, unit = change.relative, 1, " %"
    if not change.has_lift:
        numbers, digits, unit = change.absolute, 4, ""
    seen, low, high = numbers
    if change.outcome == WORSE:
        seen, low, high = -seen, -high, -low
    interval = f"[{low:.{digits}f}, {high:.{digits}f}]"
    if change.outcome == UNCLEAR:
        return f", {seen:+.{digits}f}{unit} {interval}"
    return f" by {seen:.{digits}f}{unit} {interval}"
