"""VaR and CVaR of per-user scores: how well the worst-off users are served.

A low score is bad. Losses, of which a high one is bad, are passed negated: the VaR of losses is
-value_at_risk(-losses, level), their CVaR is -tail_mean(-losses, level).

With `counts`, user u stands for counts[u] > 0 users (a frequency weight, not necessarily whole),
and n = sum_u counts[u]. Users with the score NaN are dropped.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from safecf.checks import check_list, check_number
from safecf.defaults import LEVEL

Floats = NDArray[np.float64]

# level * n may exceed a whole number by rounding alone, as 0.29 * 100 does.
ROUNDING = 1e-9


def tail_mean(scores: ArrayLike, level: float, counts: ArrayLike | None = None) -> float:
    """CVaR = 1/(level n) sum_r clip(level n - (r - 1), 0, 1) score_(r), the lowest score first.

    It is the mean of the worst level * n scores, where the user on the boundary counts by the
    fraction that is left: of four users, level = 0.4 takes the worst one and 0.6 of the next.
    level = 1 is the mean.

    >>> tail_mean([0.0, 1.0, 1.0, 1.0], level=0.4)
    0.375
    """
    check_level(level)
    values, known = _known(scores, counts)
    if known is not None:
        order = np.argsort(values)
        budget, ordered = level * known.sum(), known[order]
        share = np.clip(budget - (np.cumsum(ordered) - ordered), 0.0, ordered)
        return float(np.sum(share * values[order]) / budget)
    budget = level * values.size
    whole = int(budget)
    values = np.partition(values, min(whole, values.size - 1))
    total = np.sort(values[:whole]).sum()
    if whole < values.size:
        total += (budget - whole) * values[whole]
    return float(total / budget)


def value_at_risk(scores: ArrayLike, level: float, counts: ArrayLike | None = None) -> float:
    """VaR = score_(ceil(level n)), the lowest score first: the score on the tail's boundary.

    It is the slope of level * tail_mean(level). The worst level * n users are those at or below
    it, ties aside.

    >>> value_at_risk([0.3, 0.1, 0.2, 0.4], level=0.5)
    0.2
    """
    check_level(level)
    values, known = _known(scores, counts)
    if known is not None:
        order = np.argsort(values)
        reached = np.cumsum(known[order])
        place = np.searchsorted(reached[:-1], level * known.sum() * (1 - ROUNDING))
        return float(values[order[place]])
    place = max(math.ceil(level * values.size * (1 - ROUNDING)), 1) - 1
    return float(np.partition(values, place)[place])


def in_tail(scores: ArrayLike, level: float) -> NDArray[np.bool_]:
    """Mark the users with score_u <= VaR, all who tie with the boundary included.

    Ranking metrics tie often, above all at zero; the order of the rows must not decide who of
    those that tie is in the tail. NaN is outside.
    """
    values = np.asarray(scores, dtype=np.float64)
    return np.asarray(values <= value_at_risk(values, level))


def level_name(level: float) -> str:
    """Write a level as a heading: `worst-off 30 %`, or `all users`."""
    return "all users" if level == 1 else f"worst-off {100 * level:.3g} %"


def whom(level: float) -> str:
    """Write a level inside a sentence: `the worst-off 30 %`, or `all users`."""
    return level_name(level) if level == 1 else f"the {level_name(level)}"


def check_level(level: float, name: str = "level") -> None:
    """Raise unless the level is a share of users."""
    share = check_number(name, level, LEVEL)
    if not 0 < share <= 1:
        raise ValueError(
            f"{name}={share:g} has to be a share of users, above 0 and at most 1; "
            f"try {name}={LEVEL}"
        )


def check_levels(levels: object, name: str = "levels") -> tuple[float, ...]:
    """Return shares of worst-off users; raise if there is none, or if one is no share."""
    given = check_list(name, levels, f"give a list of shares, such as {name}=[0.3, 1.0]")
    if not given:
        raise ValueError(f"{name} is empty; give at least one level, such as {name}=[0.3, 1.0]")
    for level in given:
        check_level(level)
    return tuple(float(level) for level in given)


def drop_nan(scores: ArrayLike) -> Floats:
    """Drop NaN; raise if none is left."""
    return _known(scores, None)[0]


def _known(scores: ArrayLike, counts: ArrayLike | None) -> tuple[Floats, Floats | None]:
    """Drop users with the score NaN; raise if none is left, or if the counts are no weights."""
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"scores have shape {values.shape}; give one score per user")
    known = ~np.isnan(values)
    if not known.any():
        raise ValueError("no user has a score; check that some users have held-out items")
    if counts is None:
        return values[known], None
    weights = np.asarray(counts, dtype=np.float64)
    if weights.shape != values.shape:
        raise ValueError(
            f"counts have shape {weights.shape}, scores {values.shape}; give one count per user"
        )
    bad = np.flatnonzero(~(weights > 0))
    if bad.size:
        raise ValueError(f"counts[{bad[0]}] is {weights[bad[0]]}; leave out users who do not count")
    if (weights == 1).all():  # the same bits as without counts
        return values[known], None
    return values[known], weights[known]
