"""`Csr`: the one matrix type inside the library."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from safecf import _core
from safecf.data.matrices.read_only import ReadOnly
from safecf.free_memory import check_free

# Interactions that are worked on at a time, which bounds the memory.
BLOCK = 2**18
# Bytes for a row of the transpose: its offset, and where its next and its last entry go.
TRANSPOSED_ROW = 24


@dataclass(frozen=True, eq=False)
class Csr(ReadOnly):
    """Interactions by row: row r has the columns `indices[indptr[r]:indptr[r + 1]]`, ascending.

    `weights` are the confidences c_rj > 0; None means all ones. The arrays can only be read. The
    constructor is internal: it checks nothing, and takes arrays that nobody else writes to;
    `check_matrix` makes a `Csr` from any matrix.
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
        """Return the confidences as a scipy.sparse matrix, which shares what can only be read."""
        weights = np.ones(self.nnz, dtype=np.float32) if self.weights is None else self.weights
        arrays = (weights, self.indices, self.indptr)
        return scipy.sparse.csr_matrix(arrays, shape=self.shape, copy=False)

    def part(self, start: int, stop: int) -> "Csr":
        """Return the rows `start` to `stop` - 1."""
        indptr = self.indptr[start : stop + 1]
        entries = slice(indptr[0], indptr[-1])
        weights = None if self.weights is None else self.weights[entries]
        shape = (stop - start, self.num_columns)
        return Csr(indptr - indptr[0], self.indices[entries], weights, shape)

    def take(self, rows: NDArray[np.int64]) -> "Csr":
        """Return these rows, in this order; -1 stands for an empty one.

        >>> matrix.take(np.array([2, -1, 2])).shape
        (3, 15)
        """
        starts = self.indptr[rows]
        lengths = np.where(rows < 0, 0, self.indptr[rows + 1] - starts)
        indptr = np.append(0, np.cumsum(lengths))
        entries = np.repeat(starts - indptr[:-1], lengths) + np.arange(indptr[-1])
        weights = None if self.weights is None else self.weights[entries]
        return Csr(indptr, self.indices[entries], weights, (rows.size, self.num_columns))

    def transpose(self) -> "Csr":
        """Return the same interactions by column."""
        check_fits(
            self.num_columns, self.num_rows, self.nnz, "the matrix by column", TRANSPOSED_ROW
        )
        indptr = np.empty(self.num_columns + 1, dtype=np.int64)
        indices = np.empty_like(self.indices)
        weights = None if self.weights is None else np.empty_like(self.weights)
        matrix = _core.Matrix(self.indptr, self.indices, self.weights)
        _core.transpose(matrix, indptr, indices, weights)
        return Csr(indptr, indices, weights, (self.num_columns, self.num_rows))

    def row_mass(self, column_weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """mass_r = sum_j c_rj a_j, where a is `column_weight`, by default all ones."""
        if self.weights is None and column_weight is None:
            return np.diff(self.indptr).astype(np.float64)
        mass = np.zeros(self.num_rows)
        edges = np.searchsorted(self.indptr, np.arange(0, self.nnz, BLOCK))
        edges = np.unique(np.append(edges, self.num_rows))
        for first, last in pairwise(edges):
            begin, end = self.indptr[first], self.indptr[last]
            products = np.ones(end - begin)
            if self.weights is not None:
                products *= self.weights[begin:end]
            if column_weight is not None:
                products *= column_weight[self.indices[begin:end]]
            # Empty rows are left out: reduceat would give them the first value of the next row.
            starts = self.indptr[first:last] - begin
            filled = np.flatnonzero(np.diff(self.indptr[first : last + 1]))
            if filled.size:
                mass[first + filled] = np.add.reduceat(products, starts[filled])
        return mass


def check_fits(
    rows: int, columns: int, nnz: int, what: str, bytes_per_row: int = np.dtype(np.int64).itemsize
) -> None:
    """Raise if a `Csr` with weights of this size needs more memory than is free."""
    remedy = "use a part of the data"
    if rows > 10 * nnz:
        remedy = (
            "if raw ids are used as row or column numbers, number users and items without gaps, "
            "as Interactions.from_frame does"
        )
    check_free(bytes_per_row * (rows + 1) + 8 * nnz, f"{what}, {rows:,} x {columns:,},", remedy)
