"""`check_matrix`: from any scipy.sparse matrix to a checked `Csr`."""

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from safecf.data.limits import LARGEST_WEIGHT, MOST_IDS, SMALLEST_WEIGHT
from safecf.data.matrices.csr import BLOCK, Csr, check_fits
from safecf.data.matrices.csr_from_coo import drop_weights_of_one, drop_zeros
from safecf.data.reading.sources import is_frame
from safecf.errors import ParameterWarning, warn

ARRAYS = ("indptr", "indices", "data")


def check_matrix(
    matrix: Any,
    *,
    name: str = "user_items",
    columns: int | None = None,
    allow_empty: bool = False,
) -> Csr:
    """Convert `matrix` to a `Csr`; raise if it is not valid.

    Takes any scipy.sparse matrix or array of finite values >= 0 and never modifies it. It is
    copied first, and the copy is checked: what is written to `matrix` later, or by another thread
    in the meantime, never gets past the checks. Formats other than CSR are converted and duplicate
    entries are summed, each with a `ParameterWarning`; explicit zeros, and values below
    `SMALLEST_WEIGHT`, are dropped. `columns` is the number of items that the model knows.

    >>> check_matrix(scipy.sparse.csr_matrix([[0, 2, 1]])).indices
    array([1, 2], dtype=int32)
    """
    _check_type(matrix, name)
    shape = _checked_shape(matrix, name, columns)
    if matrix.format != "csr":
        matrix = _converted(matrix, name)
    check_fits(*shape, int(matrix.data.size), f"a copy of {name}")
    indptr, indices, data = _checked_structure(matrix, shape, name)
    found = _canonical(indptr, indices, data, shape, name)
    if found.nnz == 0 and not allow_empty:
        _raise_empty(name, shape[0], data)
    return found


def _raise_empty(name: str, num_rows: int, values: NDArray[Any]) -> NoReturn:
    """Say that no interaction is left of these values."""
    if values.any():
        raise ValueError(
            f"{name} has no weight above {values.max():.2g}; below {SMALLEST_WEIGHT:.2g} they "
            "count as 0: scale them up"
        )
    raise ValueError(
        f"{name} has no interactions in any of its {num_rows} rows; check the filter and the ids "
        "it was made with"
    )


def _check_type(matrix: Any, name: str) -> None:
    is_sparse: bool = scipy.sparse.issparse(matrix)
    if not is_sparse:
        hint = f"scipy.sparse.csr_matrix({name})"
        if is_frame(matrix):
            hint = f"Interactions.from_frame({name}, user=..., item=...)"
        raise TypeError(
            f"{name} is of type {type(matrix).__name__}, not a scipy sparse matrix; try {hint}"
        )
    if matrix.dtype.kind not in "buif":
        raise TypeError(
            f"{name} holds values of type {matrix.dtype}, not numbers >= 0; "
            f"try {name}.astype('float32')"
        )


def _checked_shape(matrix: Any, name: str, columns: int | None) -> tuple[int, int]:
    if matrix.ndim != 2:
        raise ValueError(
            f"{name} has {matrix.ndim} dimension(s), not 2; for one user try {name}.reshape(1, -1)"
        )
    num_rows, num_columns = int(matrix.shape[0]), int(matrix.shape[1])
    if num_rows == 0 or num_columns == 0:
        raise ValueError(
            f"{name} is empty, its shape is {num_rows} x {num_columns}; "
            "give it at least one row and one column"
        )
    if max(num_rows, num_columns) > MOST_IDS:
        raise ValueError(
            f"{name} has the shape {num_rows} x {num_columns}, where 2^31 - 1 is the limit; number "
            "the users and items without gaps"
        )
    if columns is not None and num_columns != columns:
        hint = "use the item index of the training data"
        if num_rows == columns:
            hint = f"its shape looks transposed, try {name}.T.tocsr()"
        raise ValueError(
            f"{name} has {num_columns} columns, while the model knows {columns} items; {hint}"
        )
    return num_rows, num_columns


def _converted(matrix: Any, name: str) -> Any:
    """Convert another format to CSR and sum its duplicates."""
    warn(
        f"{name} is a {type(matrix).__name__} and has to be converted to CSR; "
        f"try {name}.tocsr() once, beforehand",
        ParameterWarning,
    )
    if matrix.format in ("csc", "bsr"):
        try:  # scipy does not check indices when it converts
            matrix = matrix.copy()
            matrix.check_format(full_check=True)
        except ValueError as problem:
            raise ValueError(f"{name} is damaged: {problem}; build it anew") from problem
    entries = matrix.tocoo(copy=False)
    rows, columns = np.array(entries.row), np.array(entries.col)
    for axis, ids, size in (("row", rows, matrix.shape[0]), ("column", columns, matrix.shape[1])):
        outside = _first_outside(ids, 0, size - 1)
        if outside is not None:
            raise ValueError(
                f"{name}: entry {outside} lies in {axis} {ids[outside]}, outside of 0 to "
                f"{size - 1}; check the ids it was made with"
            )
    # float64, because sums of small integers overflow, and sums of booleans stay True.
    values = entries.data.astype(np.float64)
    _check_values(values, lambda at: (rows[at], columns[at]), name)
    result = scipy.sparse.coo_matrix((values, (rows, columns)), shape=matrix.shape).tocsr()
    _warn_of_duplicates(values.size - result.nnz, name)
    return result


def _checked_structure(
    matrix: Any, shape: tuple[int, int], name: str
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]:
    """Return copies of `indptr` and `indices` that are checked, and `data` itself.

    They are checked for everything that the native code relies on.
    """
    indptr, indices, data = (np.asarray(getattr(matrix, each)) for each in ARRAYS)
    num_rows, num_columns = shape
    remedy = "build it anew, e.g. with scipy.sparse.coo_matrix((values, (rows, columns)))"
    if indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        raise ValueError(f"{name}: indptr and indices have to hold integers; {remedy}")
    if indptr.shape != (num_rows + 1,):
        raise ValueError(
            f"{name}: indptr has shape {indptr.shape}, where {num_rows} rows need "
            f"({num_rows + 1},); {remedy}"
        )
    indptr = indptr.astype(np.int64)
    if indptr[0] != 0:
        raise ValueError(f"{name}: indptr starts at {indptr[0]}, not at 0; {remedy}")
    falling = np.flatnonzero(indptr[1:] < indptr[:-1])
    if falling.size:
        row = falling[0]
        raise ValueError(
            f"{name}: indptr falls from {indptr[row]} to {indptr[row + 1]} at row {row}; {remedy}"
        )
    nnz = int(indptr[-1])
    stored = (indices.shape, data.shape)
    if stored[0] != stored[1] or len(stored[0]) != 1 or stored[0][0] < nnz:
        raise ValueError(
            f"{name}: indptr ends at {nnz}, but indices have shape {stored[0]} and data "
            f"{stored[1]}; {remedy}"
        )
    # scipy allows unused entries after the last row. A wider type is checked before the cast, too,
    # which wraps.
    given = indices[:nnz]
    copied = given.astype(np.int32)
    for each in (given, copied):
        outside = _first_outside(each, 0, num_columns - 1)
        if outside is not None:
            raise ValueError(
                f"{name}: row {_row_of(indptr, outside)} holds column {each[outside]}, outside of "
                f"0 to {num_columns - 1}; check the ids it was made with"
            )
    return indptr, copied, data[:nnz]


def _canonical(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[Any],
    shape: tuple[int, int],
    name: str,
) -> Csr:
    """Copy and check the values; sort rows, sum duplicates and drop zeros where there are any."""
    only_ones = bool(data.size == 0 or data.min() == data.max() == 1)
    ascending = _is_ascending(indptr, indices)
    if only_ones and ascending:
        return Csr(indptr, indices, None, shape)
    # once to show a bad value as it was given, once more because it may have changed since
    _check_values(data, lambda at: (_row_of(indptr, at), indices[at]), name)
    values: NDArray[Any] = data.astype(np.float32 if ascending else np.float64)
    if not ascending:
        clean = scipy.sparse.csr_matrix((values, indices, indptr), shape=shape, copy=False)
        clean.sum_duplicates()
        _warn_of_duplicates(values.size - clean.nnz, name)
        indptr, indices = clean.indptr.astype(np.int64), clean.indices.astype(np.int32, copy=False)
        values = clean.data
    _check_values(values, lambda at: (_row_of(indptr, at), indices[at]), name)
    values = values.astype(np.float32, copy=False)
    found = drop_zeros(Csr(indptr, indices, values, shape))
    return drop_weights_of_one(found)


def _is_ascending(indptr: NDArray[np.int64], indices: NDArray[np.int32]) -> bool:
    """Whether the columns of every row ascend: `indices` may fall only where a row starts."""
    for begin in range(0, indices.size - 1, BLOCK):
        part = indices[begin : begin + BLOCK + 1]
        falls = begin + 1 + np.flatnonzero(part[1:] <= part[:-1])
        starts = np.searchsorted(indptr, falls)
        if not np.array_equal(indptr[starts], falls):
            return False
    return True


def _check_values(values: NDArray[Any], place: Callable[[int], tuple[Any, Any]], name: str) -> None:
    """Raise if a value is no valid weight; `place` returns the row and column of a position."""
    at = _first_outside(values, 0, LARGEST_WEIGHT)
    if at is None:
        return
    row, column = place(at)
    value = values[at]
    if np.isnan(value):
        remedy = "drop the entry, or give it a weight"
    elif value < 0:
        remedy = "weights are >= 0: drop negative feedback, or keep the ratings above a threshold"
    else:
        remedy = f"weights are at most {LARGEST_WEIGHT:g}: clip or scale them"
    raise ValueError(f"{name} holds {value} at row {row}, column {column}; {remedy}")


def _warn_of_duplicates(count: int, name: str) -> None:
    if count:
        warn(
            f"{name} holds {count} duplicate entries, which are added up; to count each pair "
            "once, set the values to 1 after sum_duplicates()",
            ParameterWarning,
        )


def _first_outside(values: NDArray[Any], low: Any, high: Any) -> int | None:
    """Return the first position whose value is outside low..high or NaN, else None."""
    if values.size == 0 or (values.min() >= low and values.max() <= high):
        return None
    return int(np.argmin((values >= low) & (values <= high)))


def _row_of(indptr: NDArray[Any], position: int) -> int:
    return int(np.searchsorted(indptr, position, side="right")) - 1
