"""Groups of users: the mean score of each, and the worst of the large ones."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.measures.bootstrap import Counts, Draws, percentile_interval, resample_groups
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
        Their mean score, over all their appearances, with its bootstrap interval.
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


def group_scores(
    labels: NDArray[Any] | None, scores: Floats, draws: Draws, users: Counts
) -> Groups:
    """Score the groups, leaving out the scores NaN; draws are stratified by group.

    `users` numbers the user of every score: one with several scores is drawn with all of them.
    """
    known = ~np.isnan(scores)
    if labels is None or not known.any():
        return Groups()
    _, first, user, appearances = np.unique(
        users[known], return_index=True, return_inverse=True, return_counts=True
    )
    names, place, sizes = np.unique(labels[known][first], return_inverse=True, return_counts=True)
    order = np.argsort(place, kind="stable")
    # of every user, ordered by group: the sum of the scores, and how many there are
    total: Floats = np.bincount(user, weights=scores[known]).astype(np.float64)
    parts = [total[order], appearances[order].astype(np.float64)]
    sums, counts = (np.add.reduceat(each, np.cumsum(sizes) - sizes) for each in parts)
    drawn_sums, drawn_counts = (
        resample_groups(each, sizes, draws.resamples, draws.seed) for each in parts
    )

    def describe(label: Any, groups: Any, drawn: Floats) -> GroupScore:
        members = int(sizes[groups].sum())
        low, high = percentile_interval(drawn[:, None], draws.confidence)
        mean = float(sums[groups].sum() / counts[groups].sum())
        return GroupScore(label, members, members / first.size, mean, float(low[0]), float(high[0]))

    each = [
        describe(name, [group], drawn_sums[:, group] / drawn_counts[:, group])
        for group, name in enumerate(names.tolist())
    ]
    worst = smaller = None
    if (large := np.flatnonzero(sizes >= ENOUGH)).size > 1:
        lowest = large[np.argmin((sums / counts)[large])]
        drawn = (drawn_sums[:, large] / drawn_counts[:, large]).min(axis=1)
        worst = describe(names.tolist()[lowest], [lowest], drawn)
    if (small := np.flatnonzero(sizes < ENOUGH)).size:
        label = f"{small.size} smaller group{'s' if small.size > 1 else ''}"
        drawn = drawn_sums[:, small].sum(axis=1) / drawn_counts[:, small].sum(axis=1)
        smaller = describe(label, small, drawn)
    return Groups(sorted(each, key=lambda group: group.mean), worst, smaller)
