"""Groups of users: how each fares, and the worst case among those that are large enough."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.measures.bootstrap import BLOCK, check_resamples, percentile_interval

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

# Users that it takes before an interval, or the name of the worst group, is to be trusted.
ENOUGH = 30


@dataclass(frozen=True)
class GroupScore:
    """How the scored users of a group fare.

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
        """Whether there are enough users to call the group the worst."""
        return self.users >= ENOUGH


@dataclass(frozen=True)
class Groups:
    """How all groups fare; empty where the users have no labels.

    Parameters
    ----------
    scores
        Every group, the lowest mean first.
    worst
        The lowest of the groups with at least `ENOUGH` = 30 users: among many small groups, one is
        far down by chance alone. Its interval is that of min_g mean_g over these groups, since in
        another draw of the users another group may be the worst. None where fewer than two groups
        are so large.
    smaller
        The groups with fewer users, taken together; None where there are none.
    """

    scores: list[GroupScore] = field(default_factory=list)
    worst: GroupScore | None = None
    smaller: GroupScore | None = None


def group_scores(
    labels: NDArray[Any] | None, scores: Floats, *, confidence: float, resamples: int, seed: int
) -> Groups:
    """Describe the groups of the users that have a score; every group is drawn by itself."""
    known = ~np.isnan(scores)
    if labels is None or not known.any():
        return Groups()
    names, place, sizes = np.unique(labels[known], return_inverse=True, return_counts=True)
    values = scores[known][np.argsort(place, kind="stable")]
    sums = np.add.reduceat(values, np.cumsum(sizes) - sizes)
    draws = _draw_sums(values, sizes, resamples, seed)

    def describe(label: Any, groups: Any, drawn: Floats) -> GroupScore:
        users = int(sizes[groups].sum())
        low, high = percentile_interval(drawn[:, None], confidence)
        mean = float(sums[groups].sum() / users)
        return GroupScore(label, users, users / values.size, mean, float(low[0]), float(high[0]))

    each = [
        describe(name.item(), [group], draws[:, group] / sizes[group])
        for group, name in enumerate(names)
    ]
    worst = smaller = None
    if (large := np.flatnonzero(sizes >= ENOUGH)).size > 1:
        lowest = large[np.argmin((sums / sizes)[large])]
        drawn = (draws[:, large] / sizes[large]).min(axis=1)
        worst = describe(names[lowest].item(), [lowest], drawn)
    if (small := np.flatnonzero(sizes < ENOUGH)).size:
        label = f"{small.size} smaller group{'s' if small.size > 1 else ''}"
        smaller = describe(label, small, draws[:, small].sum(axis=1) / sizes[small].sum())
    return Groups(sorted(each, key=lambda group: group.mean), worst, smaller)


def _draw_sums(values: Floats, sizes: Counts, resamples: int, seed: int) -> Floats:
    """Draw n_g of the n_g users of every group; return the groups' sums, a row per draw.

    `values` are ordered by group.
    """
    check_resamples(resamples)
    first = np.cumsum(sizes) - sizes
    start, size = np.repeat(first, sizes), np.repeat(sizes, sizes)
    rng = np.random.default_rng(seed)
    rows = max(BLOCK // values.size, 1)
    sums = np.empty((resamples, sizes.size))
    for begin in range(0, resamples, rows):
        block = sums[begin : begin + rows]
        users = start + (rng.random((len(block), values.size)) * size).astype(np.int64)
        block[:] = np.add.reduceat(values[users], first, axis=1)
    return sums
