"""Groups of users: the mean score of each, and the worst of the large ones."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.measures.bootstrap import Draws, percentile_interval, resample_groups
from safecf.measures.tails import Floats

# Users that a group needs before its interval is trusted, or before it is called the worst.
ENOUGH = 30


@dataclass(frozen=True)
class GroupScore:
    """The mean score of a group.

    Parameters
    ----------
    label
        The group's label.
    users, share
        Number of its scored users, and their share of all scored users.
    mean, low, high
        Their mean score, with its bootstrap interval.
    """

    label: Any
    users: int
    share: float
    mean: float
    low: float
    high: float

    @property
    def enough(self) -> bool:
        """Whether the group has enough users to be called the worst."""
        return self.users >= ENOUGH


@dataclass(frozen=True)
class Groups:
    """The mean scores of all groups; empty if the users have no labels.

    Parameters
    ----------
    scores
        Every group, the lowest mean first.
    worst
        The lowest of the groups with at least `ENOUGH` = 30 users, because among many small groups
        one is low by chance alone. Its interval is that of min_g mean_g over these groups: in
        another draw of the users another group may be the worst. None if there are fewer than two
        such groups.
    smaller
        The groups with fewer users, pooled; None if there are none.
    """

    scores: list[GroupScore] = field(default_factory=list)
    worst: GroupScore | None = None
    smaller: GroupScore | None = None


def group_scores(labels: NDArray[Any] | None, scores: Floats, draws: Draws) -> Groups:
    """Score the groups, leaving out users with the score NaN; draws are stratified by group."""
    known = ~np.isnan(scores)
    if labels is None or not known.any():
        return Groups()
    names, place, sizes = np.unique(labels[known], return_inverse=True, return_counts=True)
    values = scores[known][np.argsort(place, kind="stable")]
    sums = np.add.reduceat(values, np.cumsum(sizes) - sizes)
    drawn_sums = resample_groups(values, sizes, draws.resamples, draws.seed)

    def describe(label: Any, groups: Any, drawn: Floats) -> GroupScore:
        users = int(sizes[groups].sum())
        low, high = percentile_interval(drawn[:, None], draws.confidence)
        mean = float(sums[groups].sum() / users)
        return GroupScore(label, users, users / values.size, mean, float(low[0]), float(high[0]))

    each = [
        describe(name.item(), [group], drawn_sums[:, group] / sizes[group])
        for group, name in enumerate(names)
    ]
    worst = smaller = None
    if (large := np.flatnonzero(sizes >= ENOUGH)).size > 1:
        lowest = large[np.argmin((sums / sizes)[large])]
        drawn = (drawn_sums[:, large] / sizes[large]).min(axis=1)
        worst = describe(names[lowest].item(), [lowest], drawn)
    if (small := np.flatnonzero(sizes < ENOUGH)).size:
        label = f"{small.size} smaller group{'s' if small.size > 1 else ''}"
        smaller = describe(label, small, drawn_sums[:, small].sum(axis=1) / sizes[small].sum())
    return Groups(sorted(each, key=lambda group: group.mean), worst, smaller)
