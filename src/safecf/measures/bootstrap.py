"""Bootstrap over users: how far tail means would move if other users had been drawn."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from safecf.measures.tails import check_level, scored

Floats = NDArray[np.float64]

# Users drawn per block: few enough for the cache, many enough for numpy.
BLOCK = 200_000


def tail_means(scores: ArrayLike, levels: ArrayLike) -> Floats:
    """Return `tail_mean` at every level."""
    values, counts = np.unique(scored(scores), return_counts=True)
    (means,) = _tail_means(values, counts[None, :], _checked(levels))
    return np.asarray(means)


def resample(scores: ArrayLike, levels: ArrayLike, resamples: int, seed: int) -> Floats:
    """Draw n of n users with replacement, again and again; return the tail means of each draw.

    The result has one row per draw and one column per level. Which users are drawn depends on
    `seed` and n alone: scores of the same users in the same order give pairs. Users without a
    score (NaN) are left out.

    A draw is a count per distinct score: with C_j users drawn up to the j-th smallest score s_j,
    and S_j the sum of their scores, the tail mean for t = level * n is

        (S_{j-1} + (t - C_{j-1}) s_j) / t     with the first j where C_j >= t .
    """
    check_resamples(resamples)
    shares = _checked(levels)
    values, index = np.unique(scored(scores), return_inverse=True)
    rng = np.random.default_rng(seed)
    rows = max(BLOCK // index.size, 1)
    result = np.empty((resamples, shares.size))
    for start in range(0, resamples, rows):
        block = result[start : start + rows]
        users = rng.integers(index.size, size=(len(block), index.size), dtype=np.int32)
        cells = index[users]
        cells += np.arange(len(block))[:, None] * values.size
        counts = np.bincount(cells.ravel(), minlength=len(block) * values.size)
        block[:] = _tail_means(values, counts.reshape(-1, values.size), shares)
    return result


def percentile_interval(draws: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return the (1 - confidence)/2 and (1 + confidence)/2 quantiles of every column.

    They are draws themselves, not interpolated, so that infinite ones may be among them.
    """
    check_confidence(confidence)
    ordered = np.sort(draws, axis=0)
    outside = (1 - confidence) / 2
    low = int(np.floor(outside * (len(draws) - 1)))
    return ordered[low], ordered[len(draws) - 1 - low]


def check_confidence(confidence: float) -> None:
    """Refuse what is no share of draws."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; it lies between 0 and 1, try 0.95")


def check_resamples(resamples: int) -> None:
    """Refuse numbers of draws that no quantile can be taken of."""
    if resamples < 2:
        raise ValueError(f"resamples is {resamples}; draw at least 2 times, try 2000")


def _checked(levels: ArrayLike) -> Floats:
    shares = np.asarray(levels, dtype=np.float64)
    for level in shares:
        check_level(level)
    return shares


def _tail_means(values: Floats, counts: NDArray[np.int64], levels: Floats) -> Floats:
    """Tail means of draws that hold `values[j]`, ascending, `counts[:, j]` times."""
    users = int(counts[0].sum())
    cumulated = np.cumsum(counts, axis=1)
    total = np.cumsum(counts * values, axis=1)
    # One ascending sequence of all rows turns the look-ups into one binary search.
    row = np.arange(len(counts))[:, None]
    budget = levels[None, :] * users
    sequence = (cumulated + row * (users + 1.0)).ravel()
    place = np.searchsorted(sequence, row * (users + 1.0) + budget * (1 - 1e-12))
    place = np.minimum(place - row * values.size, values.size - 1)
    before = np.maximum(place - 1, 0)
    spent = np.where(place > 0, np.take_along_axis(cumulated, before, axis=1), 0)
    reached = np.where(place > 0, np.take_along_axis(total, before, axis=1), 0.0)
    return np.asarray((reached + (budget - spent) * values[place]) / budget)
