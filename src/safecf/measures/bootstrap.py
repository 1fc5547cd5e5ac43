"""Bootstrap over users: how far a number would move if other users had been drawn."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from safecf.checks import check_integer, check_number
from safecf.defaults import CONFIDENCE, RESAMPLES, SEED
from safecf.measures.tails import ROUNDING, Floats, check_level, drop_nan, whom

Counts = NDArray[np.int64]
Estimate = tuple[float, float, float]  # a value, and the low and high end of its interval

# Users drawn per block: few enough for the cache, many enough for numpy.
BLOCK = 200_000
# Users that a tail needs before its interval is trusted: with so many, 95 % intervals of simulated
# scores held the true tail mean in 92 % of the samples or more (docs/results/coverage.md).
ENOUGH = 20


@dataclass(frozen=True)
class Draws:
    """How intervals are drawn.

    Users are drawn with replacement `resamples` times, starting from `seed`; the interval holds
    the middle share `confidence` of the draws.
    """

    resamples: int = RESAMPLES
    confidence: float = CONFIDENCE
    seed: int = SEED

    def __post_init__(self) -> None:
        check_resamples(self.resamples)
        check_confidence(self.confidence)
        check_integer("seed", self.seed, 0, SEED)


def tail_means(scores: ArrayLike, levels: ArrayLike) -> Floats:
    """Return `tail_mean` at every level."""
    values, counts = np.unique(drop_nan(scores), return_counts=True)
    (means,) = _tail_means(values, counts[None, :], _checked(levels))
    return np.asarray(means)


def resample(
    scores: ArrayLike, levels: ArrayLike, resamples: int = RESAMPLES, seed: int = SEED
) -> Floats:
    """Return the tail means of bootstrap draws: one row per draw, one column per level.

    A draw takes n of the n users with replacement; NaN scores are dropped first. Which users are
    drawn depends on `seed` and n alone, so that draws of two models' scores are paired.

    A draw is stored as a count per distinct score; see `tail_means_of_counts`.
    """
    check_resamples(resamples)
    shares = _checked(levels)
    values, index = np.unique(drop_nan(scores), return_inverse=True)
    rng = np.random.default_rng(seed)
    result = np.empty((resamples, shares.size))
    for rows in _blocks(resamples, index.size):
        size = rows.stop - rows.start
        users = rng.integers(index.size, size=(size, index.size), dtype=np.int32)
        cells = index[users]
        cells += np.arange(size)[:, None] * values.size
        counts = np.bincount(cells.ravel(), minlength=size * values.size)
        result[rows] = _tail_means(values, counts.reshape(-1, values.size), shares)
    return result


def resample_clusters(
    scores: ArrayLike,
    levels: ArrayLike,
    users: Counts,
    splits: Counts,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Floats:
    """Return the tail means of bootstrap draws of users who appear in several splits.

    Score s is of user `users[s]` in split `splits[s]`. A draw takes n of the n users with
    replacement, each with all their scores; its tail means are those of the splits, averaged. A
    split of whose users none is drawn is left out. Rows, columns and NaN are as in `resample`,
    which this is if every user appears once, in one split.
    """
    check_resamples(resamples)
    values = np.asarray(scores, dtype=np.float64)
    known = ~np.isnan(values)
    number = np.unique(users[known], return_inverse=True)[1]
    values, split = drop_nan(values), splits[known]
    parts = [np.flatnonzero(split == each) for each in np.unique(split)]
    size = int(number.max()) + 1
    rng = np.random.default_rng(seed)
    result = []
    for rows in _blocks(resamples, size):
        drawn = rng.integers(size, size=(rows.stop - rows.start, size), dtype=np.int32)
        cells = drawn + np.arange(len(drawn))[:, None] * size
        counts = np.bincount(cells.ravel(), minlength=cells.size).reshape(cells.shape)
        means = [tail_means_of_counts(values[p], counts[:, number[p]], levels) for p in parts]
        result.append(np.nanmean(means, axis=0))
    return np.concatenate(result)


def tail_means_of_counts(scores: Floats, counts: NDArray[Any], levels: ArrayLike) -> Floats:
    """Return the tail means if score s counts `counts[draw, s]` times, one row per draw.

    With C_j counts up to the j-th smallest of the distinct scores, s_j, and S_j the sum of the
    scores that they count, the tail mean for t = level * sum of the counts is

        (S_{j-1} + (t - C_{j-1}) s_j) / t     with the first j where C_j >= t .

    NaN scores are left out. A draw without counts has NaN.

    >>> tail_means_of_counts(np.array([0.0, 1.0]), np.array([[1, 3]]), [0.5, 1.0])
    array([[0.5 , 0.75]])
    """
    order = np.argsort(scores, kind="stable")[: np.count_nonzero(~np.isnan(scores))]
    values, starts = np.unique(scores[order], return_index=True)
    grouped = np.add.reduceat(np.take(counts, order, axis=1), starts, axis=1)
    return _tail_means(values, grouped, _checked(levels))


def resample_groups(values: Floats, sizes: Counts, resamples: int, seed: int) -> Floats:
    """Draw n_g of the n_g users of every group g; return the groups' sums, one row per draw.

    `values` are ordered by group, and `sizes` are the n_g.
    """
    check_resamples(resamples)
    first = np.cumsum(sizes) - sizes
    start, size = np.repeat(first, sizes), np.repeat(sizes, sizes)
    rng = np.random.default_rng(seed)
    sums = np.empty((resamples, sizes.size))
    for rows in _blocks(resamples, values.size):
        drawn = rng.random((rows.stop - rows.start, values.size))
        users = start + (drawn * size).astype(np.int64)
        sums[rows] = np.add.reduceat(values[users], first, axis=1)
    return sums


def percentile_interval(draws: Floats, confidence: float = CONFIDENCE) -> tuple[Floats, Floats]:
    """Return the (1 - confidence)/2 and (1 + confidence)/2 quantiles of every column.

    They are draws themselves, not interpolated, because some may be infinite.
    """
    check_confidence(confidence)
    ordered = np.sort(draws, axis=0)
    outside = (1 - confidence) / 2
    low = int(np.floor(outside * (len(draws) - 1)))
    return ordered[low], ordered[len(draws) - 1 - low]


def caution(users: int, level: float) -> str:
    """Say that an interval is not to be trusted if fewer than `ENOUGH` users are in the tail.

    >>> caution(4, 0.3)
    'the worst-off 30 % of 4 users are 1.2 users, too few for an interval: it takes 20 of them, of
    67 users'
    """
    inside = level * users
    if inside >= ENOUGH * (1 - ROUNDING):
        return ""
    needed = math.ceil(ENOUGH / level * (1 - ROUNDING))
    if users == 1:
        return f"1 user is too few for an interval: it takes {needed:,}"
    if level == 1:
        return f"{_users(users)} are too few for an interval: it takes {ENOUGH}"
    return (
        f"{whom(level)} of {_users(users)} are {_users(inside)}, too few for an interval: it takes "
        f"{ENOUGH} of them, of {needed:,} users"
    )


def _users(number: float) -> str:
    return "1 user" if number == 1 else f"{number:.3g} users"


def check_confidence(confidence: float) -> None:
    """Raise unless the confidence is between 0 and 1."""
    share = check_number("confidence", confidence, CONFIDENCE)
    if not 0 < share < 1:
        raise ValueError(
            f"confidence={share:g} has to lie between 0 and 1; try confidence={CONFIDENCE}"
        )


def check_resamples(resamples: int) -> None:
    """Raise if there are too few draws for an interval."""
    check_integer("resamples", resamples, 2, RESAMPLES)


def _blocks(resamples: int, users: int) -> Iterator[slice]:
    """Yield the draws in blocks of about `BLOCK` users."""
    rows = max(BLOCK // users, 1)
    for start in range(0, resamples, rows):
        yield slice(start, min(start + rows, resamples))


def _checked(levels: ArrayLike) -> Floats:
    shares = np.asarray(levels, dtype=np.float64)
    for level in shares:
        check_level(level)
    return shares


def _tail_means(values: Floats, counts: Counts, levels: Floats) -> Floats:
    """Tail means of draws that hold `values[j]`, ascending, `counts[:, j]` times."""
    cumulated = np.cumsum(counts, axis=1)
    total = np.cumsum(counts * values, axis=1)
    # One ascending sequence of all rows turns the look-ups into one binary search.
    row = np.arange(len(counts))[:, None]
    budget = levels[None, :] * cumulated[:, -1:]
    offset = row * (cumulated[:, -1].max() + 1.0)
    sequence = (cumulated + offset).ravel()
    place = np.searchsorted(sequence, offset + budget * (1 - 1e-12))
    place = np.minimum(place - row * values.size, values.size - 1)
    before = np.maximum(place - 1, 0)
    spent = np.where(place > 0, np.take_along_axis(cumulated, before, axis=1), 0)
    reached = np.where(place > 0, np.take_along_axis(total, before, axis=1), 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray((reached + (budget - spent) * values[place]) / budget)
