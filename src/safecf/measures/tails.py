"""The tail of a per-user metric: how the worst-off users fare."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

# level * n may be a whole number up to rounding, as 0.29 * 100 is.
ROUNDING = 1e-9


def tail_mean(scores: ArrayLike, level: float) -> float:
    """Mean of the worst level * n scores, the CVaR of the metric; level = 1 is the mean.

    The user on the boundary counts by the fraction that is left: of four users, level = 0.4 takes
    the worst one and 0.6 of the next. Users without a score (NaN) are left out of n.

    >>> tail_mean([0.0, 1.0, 1.0, 1.0], level=0.4)
    0.375
    """
    check_level(level)
    values = np.sort(scored(scores))
    count = level * values.size
    whole = int(count)
    total = values[:whole].sum()
    if whole < values.size:
        total += (count - whole) * values[whole]
    return float(total / count)


def value_at_risk(scores: ArrayLike, level: float) -> float:
    """Score of the user on the tail's boundary: the ceil(level n)-th worst one, the VaR.

    It is the slope of level * tail_mean(level), so that the worst level * n users are those at or
    below it, ties aside.

    >>> value_at_risk([0.3, 0.1, 0.2, 0.4], level=0.5)
    0.2
    """
    check_level(level)
    values = scored(scores)
    position = max(math.ceil(level * values.size * (1 - ROUNDING)), 1) - 1
    return float(np.partition(values, position)[position])


def in_tail(scores: ArrayLike, level: float) -> NDArray[np.bool_]:
    """Mark the users with score_u <= VaR: the tail with everybody who ties with its boundary.

    Ranking metrics tie often, above all at zero, and who of those that tie is worse off is not
    for the order of the rows to say. Users without a score (NaN) are outside.
    """
    values = np.asarray(scores, dtype=np.float64)
    return np.asarray(values <= value_at_risk(values, level))


def scored(scores: ArrayLike) -> Floats:
    """Return the scores that are there, of which at least one is."""
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"scores have shape {values.shape}; give one score per user")
    values = values[~np.isnan(values)]
    if values.size == 0:
        raise ValueError("no user has a score; check that some users have held-out items")
    return values


def check_level(level: float) -> None:
    """Refuse what is no share of users."""
    if not 0 < level <= 1:
        raise ValueError(f"level is {level}; it is a share of users, above 0 and at most 1")
