"""From numbered rows to a matrix: sorted, without duplicates and without the rare."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.data.matrix import Csr
from safecf.errors import choose

Codes = NDArray[np.int32]
Weights = NDArray[np.float32] | None

DUPLICATES = {"sum": "sum", "max": "max", "first": "first", "last": "last", "error": "error"}


def assemble(
    users: Codes, items: Codes, weights: Weights, shape: tuple[int, int], duplicates: str
) -> Csr:
    """Return row n as an entry in row users[n] and column items[n].

    Of entries in the same place, "sum" adds up the weights, "max", "first" and "last" keep one of
    them, and "error" refuses. Entries of weight 0 are dropped.
    """
    choose("way to treat duplicates", duplicates, DUPLICATES)
    # One interaction per row: its transpose lists each user's interactions, in their order.
    one_per_row = Csr(np.arange(users.size + 1), users, None, (users.size, shape[0]))
    by_user = one_per_row.transpose()
    del one_per_row
    order = by_user.indices
    listed = Csr(by_user.indptr, items[order], None if weights is None else weights[order], shape)
    del by_user, order
    # Transposing twice sorts every row, and leaves equal entries in their order.
    return _without_zeros(_merged(listed.transpose().transpose(), duplicates))


def drop_rare(
    matrix: Csr, min_row_length: int, min_column_length: int
) -> tuple[Csr, NDArray[np.bool_], NDArray[np.bool_]]:
    """Drop the columns shorter than the minimum, then the rows, then what is empty.

    Also return which rows and columns were kept.
    """
    for name, value in (("user", min_row_length), ("item", min_column_length)):
        if value < 1:
            raise ValueError(f"min_{name}_interactions={value} has to be at least 1")
    columns = np.bincount(matrix.indices, minlength=matrix.num_columns) >= min_column_length
    matrix = _entries(matrix, columns[matrix.indices])
    rows = np.diff(matrix.indptr) >= min_row_length
    if not rows.all():
        matrix = _entries(matrix, np.repeat(rows, np.diff(matrix.indptr)))
        columns &= np.bincount(matrix.indices, minlength=matrix.num_columns) > 0
    matrix = _plain_if_ones(matrix)
    if rows.all() and columns.all():
        return matrix, rows, columns
    number = np.cumsum(columns, dtype=np.int32) - np.int32(1)
    indptr = np.append(0, matrix.indptr[1:][rows])
    shape = (int(rows.sum()), int(columns.sum()))
    return Csr(indptr, number[matrix.indices], matrix.weights, shape), rows, columns


def _merged(matrix: Csr, duplicates: str) -> Csr:
    """Make one entry of those in the same place, which lie side by side."""
    first = np.empty(matrix.nnz, dtype=bool)
    first[1:] = matrix.indices[1:] != matrix.indices[:-1]
    first[matrix.indptr[:-1][np.diff(matrix.indptr) > 0]] = True
    if first.all():
        return matrix
    if duplicates == "error":
        at = int(np.argmin(first))
        row = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
        raise RepeatedError(row, int(matrix.indices[at]), int(first.size - first.sum()))
    merged = _entries(matrix, np.append(first[1:], True) if duplicates == "last" else first)
    weights = merged.weights
    if duplicates == "sum":
        starts = np.flatnonzero(first)
        if matrix.weights is None:
            weights = np.diff(np.append(starts, first.size)).astype(np.float32)
        else:
            weights = np.add.reduceat(matrix.weights, starts, dtype=np.float64).astype(np.float32)
    elif duplicates == "max" and matrix.weights is not None:
        weights = np.maximum.reduceat(matrix.weights, np.flatnonzero(first))
    return Csr(merged.indptr, merged.indices, weights, matrix.shape)


def _without_zeros(matrix: Csr) -> Csr:
    weights = matrix.weights
    return matrix if weights is None else _entries(matrix, weights > 0)


def _plain_if_ones(matrix: Csr) -> Csr:
    if matrix.weights is None or not (matrix.weights == 1).all():
        return matrix
    return Csr(matrix.indptr, matrix.indices, None, matrix.shape)


def _entries(matrix: Csr, keep: NDArray[Any]) -> Csr:
    """Keep some of the entries, with the same shape."""
    if keep.all():
        return matrix
    indptr = np.append(0, np.cumsum(keep, dtype=np.int64))[matrix.indptr]
    weights = None if matrix.weights is None else matrix.weights[keep]
    return Csr(indptr, matrix.indices[keep], weights, matrix.shape)


class RepeatedError(ValueError):
    """A pair is there more than once; the caller knows the ids of row and column."""

    def __init__(self, row: int, column: int, count: int) -> None:
        super().__init__(row, column, count)
        self.row, self.column, self.count = row, column, count
