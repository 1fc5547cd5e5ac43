"""`Csr`, the one matrix type inside the library, and `check_matrix`, the gate that leads to it."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from safecf import _core
from safecf.errors import ParameterWarning, warn

MOST_IDS = 2**31 - 1
LARGEST_WEIGHT = np.float64(np.finfo(np.float32).max)
BLOCK = 2**18


@dataclass(frozen=True, eq=False)
class Csr:
    """Interactions by row: row r holds columns `indices[indptr[r]:indptr[r + 1]]`, ascending.

    `weights` are their confidences c_rj > 0; None stands for all ones. The arrays may be shared
    with the matrix they were made from, so nothing may write to them.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float32] | None
    shape: tuple[int, int]

    @property
    def num_rows(self) -> int:
        """Number of rows, empty ones included."""
        return self.shape[0]

    @property
    def num_columns(self) -> int:
        """Number of columns, empty ones included."""
        return self.shape[1]

    @property
    def nnz(self) -> int:
        """Number of interactions."""
        return int(self.indptr[-1])

    def row(self, row: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the columns j of row r, and their confidences c_rj."""
        entries = slice(self.indptr[row], self.indptr[row + 1])
        columns = self.indices[entries]
        if self.weights is None:
            return columns, np.ones(columns.size)
        return columns, self.weights[entries].astype(np.float64)

    def to_scipy(self) -> scipy.sparse.csr_matrix:
        """Return a scipy.sparse matrix of the confidences; its indices must not be written to."""
        weights = np.ones(self.nnz, dtype=np.float32) if self.weights is None else self.weights
        arrays = (weights, self.indices, self.indptr)
        return scipy.sparse.csr_matrix(arrays, shape=self.shape, copy=False)

    def transpose(self) -> "Csr":
        """Return the same interactions by column."""
        indptr = np.empty(self.num_columns + 1, dtype=np.int64)
        indices = np.empty_like(self.indices)
        weights = None if self.weights is None else np.empty_like(self.weights)
        matrix = _core.Matrix(self.indptr, self.indices, self.weights)
        _core.transpose(matrix, indptr, indices, weights)
        return Csr(indptr, indices, weights, (self.num_columns, self.num_rows))

    def row_mass(self, column_weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """mass_r = sum_j c_rj a_j, with a_j = 1 where no `column_weight` is given."""
        if self.weights is None and column_weight is None:
            return np.diff(self.indptr).astype(np.float64)
        mass = np.zeros(self.num_rows)
        # Blocks of rows, because the products of all interactions at once may not fit in memory.
        edges = np.searchsorted(self.indptr, np.arange(0, self.nnz, BLOCK))
        edges = np.unique(np.append(edges, self.num_rows))
        for first, last in pairwise(edges):
            begin, end = self.indptr[first], self.indptr[last]
            products = np.ones(end - begin)
            if self.weights is not None:
                products *= self.weights[begin:end]
            if column_weight is not None:
                products *= column_weight[self.indices[begin:end]]
            # reduceat gives an empty row its successor's first value, so it only sees the others.
            starts = self.indptr[first:last] - begin
            filled = np.flatnonzero(np.diff(self.indptr[first : last + 1]))
            if filled.size:
                mass[first + filled] = np.add.reduceat(products, starts[filled])
        return mass


def check_matrix(
    matrix: Any,
    *,
    name: str = "user_items",
    columns: int | None = None,
    allow_empty: bool = False,
) -> Csr:
    """Return `matrix` as a `Csr`, or say what is wrong with it, where, and what to try.

    Any scipy.sparse matrix or array of finite values >= 0 is welcome; the caller's is never
    modified. Other formats than CSR are converted and duplicate entries are summed, each with a
    `ParameterWarning`; explicit zeros are dropped. `columns` is the number of items of the model
    that the matrix is for.

    >>> check_matrix(scipy.sparse.csr_matrix([[0, 2, 1]])).indices
    array([1, 2], dtype=int32)
    """
    _check_type(matrix, name)
    shape = _checked_shape(matrix, name, columns)
    if matrix.format != "csr":
        matrix = _converted(matrix, name)
    indptr, indices = _checked_structure(matrix, name)
    indptr, indices, data = _canonical(indptr, indices, matrix.data[: indices.size], shape, name)
    if indices.size == 0 and not allow_empty:
        raise ValueError(
            f"{name} has no interactions in any of its {shape[0]} rows; "
            "check the filter and the ids it was made with"
        )
    if data.size == 0 or data.min() == data.max() == 1:
        return Csr(indptr, indices, None, shape)
    return Csr(indptr, indices, np.ascontiguousarray(data, dtype=np.float32), shape)


def _check_type(matrix: Any, name: str) -> None:
    is_sparse: bool = scipy.sparse.issparse(matrix)
    if not is_sparse:
        raise TypeError(
            f"{name} is of type {type(matrix).__name__}, not a scipy sparse matrix; "
            f"try scipy.sparse.csr_matrix({name})"
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
    """Return any other format as CSR, with its duplicates summed."""
    warn(
        f"{name} is a {type(matrix).__name__} and has to be converted to CSR; "
        f"try {name}.tocsr() once, beforehand",
        ParameterWarning,
    )
    if matrix.format in ("csc", "bsr"):
        # scipy's conversions trust the index arrays; the shallow copy is for check_format, which
        # replaces attributes.
        try:
            copy.copy(matrix).check_format(full_check=True)
        except ValueError as problem:
            raise ValueError(f"{name} is damaged: {problem}; build it anew") from problem
    entries = matrix.tocoo(copy=False)
    rows, columns = entries.row, entries.col
    for axis, ids, size in (("row", rows, matrix.shape[0]), ("column", columns, matrix.shape[1])):
        outside = _first_outside(ids, 0, size - 1)
        if outside is not None:
            raise ValueError(
                f"{name}: entry {outside} lies in {axis} {ids[outside]}, outside of 0 to "
                f"{size - 1}; check the ids it was made with"
            )
    _check_values(entries.data, lambda at: (rows[at], columns[at]), name)
    # float64, because small integers overflow, and booleans do not count, when they are summed.
    values = entries.data.astype(np.float64)
    result = scipy.sparse.coo_matrix((values, (rows, columns)), shape=matrix.shape).tocsr()
    _warn_of_duplicates(values.size - result.nnz, name)
    return result


def _checked_structure(matrix: Any, name: str) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return `indptr` and `indices`, after looking at everything that native code relies on."""
    indptr, indices = np.asarray(matrix.indptr), np.asarray(matrix.indices)
    num_rows, num_columns = matrix.shape
    remedy = "build it anew, e.g. with scipy.sparse.coo_matrix((values, (rows, columns)))"
    if indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        raise ValueError(f"{name}: indptr and indices have to hold integers; {remedy}")
    if indptr.shape != (num_rows + 1,):
        raise ValueError(
            f"{name}: indptr has shape {indptr.shape}, where {num_rows} rows need "
            f"({num_rows + 1},); {remedy}"
        )
    if indptr[0] != 0:
        raise ValueError(f"{name}: indptr starts at {indptr[0]}, not at 0; {remedy}")
    falling = np.flatnonzero(indptr[1:] < indptr[:-1])
    if falling.size:
        row = falling[0]
        raise ValueError(
            f"{name}: indptr falls from {indptr[row]} to {indptr[row + 1]} at row {row}; {remedy}"
        )
    nnz = int(indptr[-1])
    stored = (indices.shape, np.shape(matrix.data))
    if stored[0] != stored[1] or len(stored[0]) != 1 or stored[0][0] < nnz:
        raise ValueError(
            f"{name}: indptr ends at {nnz}, but indices have shape {stored[0]} and data "
            f"{stored[1]}; {remedy}"
        )
    indptr = np.ascontiguousarray(indptr, dtype=np.int64)
    # scipy allows spare room behind the last row.
    indices = indices[:nnz]
    outside = _first_outside(indices, 0, num_columns - 1)
    if outside is not None:
        raise ValueError(
            f"{name}: row {_row_of(indptr, outside)} holds column {indices[outside]}, outside of "
            f"0 to {num_columns - 1}; check the ids it was made with"
        )
    return indptr, np.ascontiguousarray(indices, dtype=np.int32)


def _canonical(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[Any],
    shape: tuple[int, int],
    name: str,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]:
    """Sort, sum duplicates and drop zeros, on a copy; return the arrays where all is well."""
    _check_values(data, lambda at: (_row_of(indptr, at), indices[at]), name)
    if _is_ascending(indptr, indices) and (data.size == 0 or np.float32(data.min()) > 0):
        return indptr, indices, data
    clean = scipy.sparse.csr_matrix(
        (data.astype(np.float64), indices, indptr), shape=shape, copy=True
    )
    clean.sum_duplicates()
    _warn_of_duplicates(data.size - clean.nnz, name)
    _check_values(clean.data, lambda at: (_row_of(clean.indptr, at), clean.indices[at]), name)
    clean.data = clean.data.astype(np.float32)
    clean.eliminate_zeros()
    return clean.indptr.astype(np.int64), clean.indices.astype(np.int32, copy=False), clean.data


def _is_ascending(indptr: NDArray[np.int64], indices: NDArray[np.int32]) -> bool:
    """Whether the columns of every row rise; only where a row starts may they fall."""
    for begin in range(0, indices.size - 1, BLOCK):
        part = indices[begin : begin + BLOCK + 1]
        falls = begin + 1 + np.flatnonzero(part[1:] <= part[:-1])
        starts = np.searchsorted(indptr, falls)
        if not np.array_equal(indptr[starts], falls):
            return False
    return True


def _check_values(values: NDArray[Any], place: Callable[[int], tuple[Any, Any]], name: str) -> None:
    """Refuse values that are no weights; `place` gives the row and column of a position."""
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
        remedy = f"weights are at most {LARGEST_WEIGHT:.1e}: clip or scale them"
    raise ValueError(f"{name} holds {value} at row {row}, column {column}; {remedy}")


def _warn_of_duplicates(count: int, name: str) -> None:
    if count:
        warn(
            f"{name} holds {count} duplicate entries, which are added up; to count each pair "
            "once, set the values to 1 after sum_duplicates()",
            ParameterWarning,
        )


def _first_outside(values: NDArray[Any], low: Any, high: Any) -> int | None:
    """Return the first position whose value is not in low..high (NaN is not), or None."""
    if values.size == 0 or (values.min() >= low and values.max() <= high):
        return None
    return int(np.argmin((values >= low) & (values <= high)))


def _row_of(indptr: NDArray[Any], position: int) -> int:
    return int(np.searchsorted(indptr, position, side="right")) - 1
