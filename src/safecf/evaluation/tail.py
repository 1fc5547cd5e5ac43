"""The tail of a per-user metric: how the worst-off users fare."""

import numpy as np
from numpy.typing import ArrayLike


def tail_mean(scores: ArrayLike, level: float) -> float:
    """Mean of the worst level * n scores, the CVaR of the metric; level = 1 is the mean.

    The user on the boundary counts by the fraction that is left: of four users, level = 0.4 takes
    the worst one and 0.6 of the next. Users without a score (NaN) are left out of n.

    >>> tail_mean([0.0, 1.0, 1.0, 1.0], level=0.4)
    0.375
    """
    if not 0 < level <= 1:
        raise ValueError(f"level is {level}; it is a share of users, above 0 and at most 1")
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"scores have shape {values.shape}; give one score per user")
    values = np.sort(values[~np.isnan(values)])
    if values.size == 0:
        raise ValueError("no user has a score; check that some users have held-out items")
    count = level * values.size
    whole = int(count)
    total = values[:whole].sum()
    if whole < values.size:
        total += (count - whole) * values[whole]
    return float(total / count)
