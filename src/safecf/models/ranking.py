"""Rankings: top-k and ranks of dense scores, and the shapes of results."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safecf.data.matrices.csr import Csr
from safecf.models.queries import PADDING_ID, PADDING_SCORE, Indices

Ids = NDArray[np.int32]
Scores = NDArray[np.float32]


class Found(NamedTuple):
    """The best items of users, a row each; `popular`: the most popular ones, for want of others."""

    ids: Ids
    scores: Scores
    popular: NDArray[np.bool_]


# Scores that are held at once.
SCORES = 2**22


def best_columns(scores: Scores, k: int) -> tuple[Ids, Scores]:
    """Return the k best columns of every row, best first, ties by index, and their scores.

    A column whose score is NaN or minus infinity is never returned; where fewer than k are left,
    the ids are -1 and the scores -3.4e38.

    >>> best_columns(np.array([[1, 3, 3, 2]], dtype=np.float32), 2)[0]
    array([[1, 2]], dtype=int32)
    """
    usable = np.where(scores > -np.inf, scores, -np.inf)
    kth = -np.partition(-usable, k - 1, axis=1)[:, k - 1 : k]
    above, tied = usable > kth, usable == kth
    # of the columns that tie with the k-th best, the first ones fill the places that are left
    free = k - np.count_nonzero(above, axis=1, keepdims=True)
    chosen = above | (tied & (np.cumsum(tied, axis=1, dtype=np.int32) <= free))
    columns = np.nonzero(chosen)[1].reshape(len(scores), k)
    best = np.take_along_axis(usable, columns, axis=1)
    order = np.argsort(-best, axis=1, kind="stable")
    ids = np.take_along_axis(columns, order, axis=1).astype(np.int32)
    best = np.take_along_axis(best, order, axis=1)
    left = best > -np.inf
    return np.where(left, ids, PADDING_ID), np.where(left, best, PADDING_SCORE)


def search(
    scores: Callable[[slice], Scores],
    num_rows: int,
    num_columns: int,
    count: int,
    without: Indices | None,
    exclude: Csr | None,
) -> tuple[Ids, Scores]:
    """Return the best columns of `scores`, which computes a slice of the rows at a time.

    `without` are columns to leave out for all rows, and those of `exclude` for each row.
    """
    k = min(count, num_columns)
    ids, best = np.empty((num_rows, k), dtype=np.int32), np.empty((num_rows, k), dtype=np.float32)
    for part, found in _masked(scores, num_rows, num_columns, without, exclude):
        ids[part], best[part] = best_columns(found, k)
    return ids, best


def dense_ranks(
    scores: Callable[[slice], Scores],
    target: Csr,
    without: Indices | None,
    exclude: Csr | None,
) -> Ids:
    """Return the rank of every entry of `target`, from 1 on: its place in a search of all columns.

    It is 0 if no search returns the entry. The other arguments are those of `search`.
    """
    ranks = np.zeros(target.nnz, dtype=np.int32)
    for part, found in _masked(scores, *target.shape, without, exclude):
        for row, values in enumerate(found, part.start):
            columns = target.row(row)[0]
            own = values[columns]
            ordered = np.sort(-values)  # NaN comes last
            above = np.searchsorted(ordered, -own, side="left")
            tied = np.searchsorted(ordered, -own, side="right") - above > 1
            for place in np.flatnonzero(tied):
                column = columns[place]
                above[place] += np.count_nonzero(values[:column] == values[column])
            entries = slice(target.indptr[row], target.indptr[row + 1])
            ranks[entries] = np.where(own > -np.inf, 1 + above, 0)
    return ranks


def _masked(
    scores: Callable[[slice], Scores],
    num_rows: int,
    num_columns: int,
    without: Indices | None,
    exclude: Csr | None,
) -> Iterator[tuple[slice, Scores]]:
    """Yield slices of the rows with their scores, minus infinity for columns to leave out."""
    step = max(1, SCORES // num_columns)
    for begin in range(0, num_rows, step):
        part = slice(begin, min(begin + step, num_rows))
        found = scores(part)
        if without is not None:
            found[:, without] = -np.inf
        if exclude is not None:
            starts = exclude.indptr[part.start : part.stop + 1]
            rows = np.repeat(np.arange(len(found)), np.diff(starts))
            found[rows, exclude.indices[starts[0] : starts[-1]]] = -np.inf
        yield part, found


def named(found: tuple[Ids, Scores], names: Indices | None) -> tuple[Ids, Scores]:
    """Return results with names[j] for the column j, or j if there are no names."""
    ids, scores = found
    if names is None:
        return found
    return np.where(ids < 0, PADDING_ID, names[ids]).astype(np.int32), scores


def with_own_first(found: tuple[Ids, Scores], own: Indices) -> tuple[Ids, Scores]:
    """Put the id `own` of every row, unless it is -1, in front of its results, with the score 1."""
    ids, scores = found
    rows = np.flatnonzero(own >= 0)
    ids[rows, 1:], scores[rows, 1:] = ids[rows, :-1], scores[rows, :-1]
    ids[rows, 0], scores[rows, 0] = own[rows], 1
    return ids, scores


def shaped_like(asked: Indices, found: tuple[Ids, Scores]) -> tuple[Ids, Scores]:
    """Return 1-D results for one id."""
    ids, scores = found
    return (ids[0], scores[0]) if asked.ndim == 0 else (ids, scores)
