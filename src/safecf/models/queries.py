"""Checks of queries: ids, the number of results, and the matrix rows that come with them."""

import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from safecf.data.limits import MOST_IDS
from safecf.data.matrices.csr import Csr
from safecf.data.matrices.csr_from_scipy import check_matrix
from safecf.data.reading.sources import is_frame
from safecf.errors import shown

Indices = NDArray[np.int64]

PADDING_ID = np.int32(-1)
PADDING_SCORE = -np.finfo(np.float32).max

ROWS = 2**14  # users that are answered at a time, which bounds the memory


def slices(size: int, step: int | None = None) -> Iterator[tuple[int, int]]:
    """Cut 0..size into parts of up to `step`, or `ROWS`; an empty range is one part.

    >>> list(slices(5, 2))
    [(0, 2), (2, 4), (4, 5)]
    """
    step = ROWS if step is None else step
    return ((start, min(start + step, size)) for start in range(0, max(size, 1), step))


def check_count(count: object, size: int) -> int:
    """Return the number of results: N, or the number of candidates if that is smaller."""
    if isinstance(count, bool) or not isinstance(count, numbers.Integral):
        raise TypeError(f"N={shown(count)} has to be an integer; try N=10")
    if count < 1:
        raise ValueError(f"N={shown(count)} has to be at least 1; try N=10")
    return min(int(count), size)


def check_ids(ids: ArrayLike, size: int | None, name: str) -> Indices:
    """Return one id or an array of ids, which are below `size` unless it is None."""
    found = np.asarray(ids)
    if found.ndim > 1:
        raise ValueError(f"{name} has {found.ndim} dimensions; give one id, or a 1-D array of ids")
    if found.size and found.dtype.kind not in "iu":
        frame = "similar_items_frame" if name == "itemid" else "recommend_frame"
        hint = f"give row numbers; {frame} takes original ids"
        if found.dtype.kind == "b":
            hint = f"try numpy.flatnonzero({name})"
        raise IndexError(f"{name} holds values of type {found.dtype}, not integers; {hint}")
    if size is not None:
        outside = np.flatnonzero((found < 0) | (found >= size))
        if outside.size:
            raise IndexError(
                f"{name} {found.flat[outside[0]]} is out of range: ids go from 0 to {size - 1}"
            )
    return found.astype(np.int64)


def check_one(value: object, size: int | None, name: str) -> int:
    """Return one id, which is below `size` unless that is None."""
    found = check_ids(value, size, name)  # type: ignore[arg-type]
    if found.ndim:
        raise ValueError(f"{name} holds {found.size} ids; give one")
    return int(found)


def check_new_ids(ids: ArrayLike, known: int, name: str) -> Indices:
    """Return an array of different ids, which need not be among those of the `known` rows yet."""
    found = np.atleast_1d(check_ids(ids, MOST_IDS, name))
    values, counts = np.unique(found, return_counts=True)
    if values.size < found.size:
        raise ValueError(f"{name} holds {values[counts > 1][0]} more than once; give each id once")
    size = int(values[-1]) + 1 if values.size else 0
    empty = size - known - np.count_nonzero(values >= known)
    if empty > known + values.size:
        raise ValueError(
            f"{name} go up to {size - 1:,}, where {known:,} rows are known: that would add "
            f"{empty:,} rows of zeros; give row numbers, not original ids, and new ones from "
            f"{known} on"
        )
    return found


def check_selection(
    only: ArrayLike | None, without: ArrayLike | None, size: int, name: str
) -> tuple[Indices | None, Indices | None]:
    """Return the ids to choose from and the ids to leave out, of which one is None."""
    if only is not None and without is not None and np.size(without):
        raise ValueError(
            f"{name} and filter_{name} exclude each other; leave the filtered ids out of {name}"
        )
    if only is None:
        banned = None if without is None else check_ids(without, size, f"filter_{name}")
        return None, None if banned is None else np.atleast_1d(banned)
    chosen = np.unique(check_ids(only, size, name))
    if not chosen.size:
        raise ValueError(f"{name} is empty; leave it out to choose from all {name}")
    return chosen, None


def check_rows(matrix: Any, count: int | None, row: str, column: str, known: range) -> Csr:
    """Return the matrix `{row}_{column}s`, with one row for each of `count` ids.

    Its number of columns is one of `known`. This ends at what the model knows now, and starts at
    what it knew when it was trained: a matrix made then stays good when a partial fit adds more.
    A `Csr` is taken as it is: the library has made it.
    """
    name, width = f"{row}_{column}s", known.stop - 1
    if isinstance(matrix, Csr):
        return matrix
    is_sparse: bool = scipy.sparse.issparse(matrix)
    if not is_sparse or matrix.ndim > 2:
        given = f"a {matrix.ndim}-D array" if is_sparse else type(matrix).__name__
        hint = f"pass the {row}s' rows" if matrix is None else "try scipy.sparse.csr_matrix"
        if is_frame(matrix):
            hint = "try recommend_frame, with user_items=Interactions.from_frame(...)"
        raise ValueError(
            f"{name} has to be a sparse matrix with a row for every {row} in question and "
            f"{width} columns, not {given}; {hint}"
        )
    if matrix.ndim == 1:
        matrix = matrix.reshape(1, -1).tocsr()
    rows, columns = matrix.shape
    transposed = f"its shape looks transposed, try {name}.T.tocsr()"
    looks_transposed = rows in known and columns == (columns if count is None else count)
    if count is not None and rows != count:
        hint = transposed if looks_transposed else f"try {name}[{row}ids]"
        raise ValueError(
            f"{name} must contain 1 row for every {row} in {row}ids: it has {rows} rows for "
            f"{count}; {hint}"
        )
    if columns not in known:
        hint = transposed if looks_transposed else f"use the {column} index of the training data"
        raise ValueError(
            f"{name} has {columns} columns, while the model knows {width} {column}s; {hint}"
        )
    if rows == 0:
        nothing = np.zeros(0, dtype=np.int32)
        return Csr(np.zeros(1, dtype=np.int64), nothing, None, (0, width))
    checked = check_matrix(matrix, name=name, allow_empty=True)
    return Csr(checked.indptr, checked.indices, checked.weights, (rows, width))


def columns_among(matrix: Csr, chosen: Indices) -> Csr:
    """Keep only the `chosen` columns (ascending, unique), renumbered from 0."""
    place = np.searchsorted(chosen, matrix.indices)
    keep = np.append(chosen, -1)[place] == matrix.indices
    indptr = np.concatenate(([0], np.cumsum(keep, dtype=np.int64)))[matrix.indptr]
    weights = None if matrix.weights is None else matrix.weights[keep]
    return Csr(indptr, place[keep].astype(np.int32), weights, (matrix.num_rows, chosen.size))


def rows_among(matrix: Csr, chosen: NDArray[np.bool_]) -> Csr:
    """Keep only the `chosen` rows, without their confidences."""
    counts = np.diff(matrix.indptr)
    indptr = np.concatenate(([0], np.cumsum(counts[chosen], dtype=np.int64)))
    indices = matrix.indices[np.repeat(chosen, counts)]
    return Csr(indptr, indices, None, (indptr.size - 1, matrix.num_columns))
