"""The native core: functions on arrays."""

from typing import Annotated

import numpy
from numpy.typing import NDArray


def isas() -> list[str]:
    """The instruction sets that this machine runs, best first."""

class Execution:
    """The number of threads, 0 for all cores, and the instruction set."""

    def __init__(self, threads: int = 0, isa: str = 'auto') -> None: ...

class Matrix:
    """A sparse matrix by rows; weights None stands for ones."""

    def __init__(self, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

class Fixed:
    """
    The fixed side in the eigenbasis of G = basis diag(values) basis'.

    Rows of `rotated` are float32, or uint32 with two bfloat16 numbers per word, and padded. Without a basis, the rows to solve are in it already.
    """

    def __init__(self, rotated: Annotated[NDArray, dict(shape=(None, None), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], basis: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None) -> None: ...

class Rows:
    """
    ( gram_weight_r G + sum_j p_rj y_j y_j' + ridge_r I ) x_r = sum_j p_rj y_j.
    """

    def __init__(self, matrix: Matrix, row_weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], col_weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], gram_weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], ridge: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class Report:
    """Room for |x_new - x_old|^2 and |x_new|^2 of each row."""

    def __init__(self, change: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], norm: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

def solve_rows(rows: Rows, fixed: Fixed, factors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], report: Report, solver: str, max_iterations: int, tolerance: float, execution: Execution) -> int:
    """
    Solve all rows by the solver of this name; the first row that failed, or -1.
    """

def gradients(rows: Rows, fixed: Fixed, factors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], gradients: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], execution: Execution) -> None:
    """Write the gradient of every row's objective."""

def losses(matrix: Matrix, pair_weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], ridge: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, fixed: Fixed, factors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], losses: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], execution: Execution) -> None:
    """Write the loss of every row, with the ridge if there is one."""

def update_block(rows: Rows, fixed: Fixed, gram: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], first: int, factors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], report: Report, scores: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], positions: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, execution: Execution) -> int:
    """
    Solve a block of coordinates of all rows; the first row that failed, or -1.
    """

def scores(matrix: Matrix, factors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], others: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], execution: Execution) -> None:
    """Write the score of every entry of the matrix."""

def scored_losses(matrix: Matrix, pair_weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], ridge: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, scores: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], factors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], gram: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], losses: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], execution: Execution) -> None:
    """Write the loss of every row, given the scores of the matrix's entries."""

def gram(factors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, gram: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], execution: Execution, rough: bool = False) -> None:
    """Write F' diag(weight) F; rough products are good to 2^-16."""

def gram_block(factors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, first: int, gram: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], execution: Execution) -> None:
    """Write the columns of F' diag(weight) F from `first` on."""

def rotate(factors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], first: int, basis: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], rotated: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], execution: Execution, rough: bool = False) -> None:
    """
    Write F_block basis, F_block being columns of F from `first` on, rows padded with zeros; `rotated` may be F itself. Rough products are good to 2^-16.
    """

def eigen(gram: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], basis: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], execution: Execution) -> None:
    """
    Write the eigenvalues of the symmetric gram, ascending, and its eigenvectors in
    columns.
    """

def to_bfloat16(factors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], words: Annotated[NDArray[numpy.uint32], dict(shape=(None, None), order='C', device='cpu')], execution: Execution) -> None:
    """
    Write the factors as bfloat16, two numbers per word, rows padded with zeros.
    """

def transpose(matrix: Matrix, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')] | None) -> None:
    """Write the transposed matrix, entries in ascending order."""

def positions(matrix: Matrix, num_columns: int, positions: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Write where the entries of the transposed matrix stand in the matrix."""

class Catalogue:
    """
    The rows of `factors` to search, with copies of them that are made when they are needed.
    """

    def __init__(self, factors: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], execution: Execution) -> None: ...

    @property
    def nbytes(self) -> int:
        """Bytes of the copies that were made so far."""

    def search(self, queries: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], exclude: Matrix | None, exclude_all: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, ids: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')], scores: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], execution: Execution) -> None:
        """
        Write the best columns of queries @ factors.T per row and their scores.

        `exclude` lists columns to leave out per row, ascending, `exclude_all` for every row. One query and a batch give the same bits.
        """

    def ranks(self, queries: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], targets: Matrix, exclude: Matrix | None, exclude_all: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, ranks: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], execution: Execution) -> None:
        """
        Write the rank of every entry of `targets`, a row per query: its place, from 1 on, in a search of all columns, or 0 if no search finds it.
        """

kernels: tuple = ...

def loss_summary(losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, execution: Execution) -> tuple[float, float, float, float]:
    """
    sum_u c_u, sum_u c_u loss_u, the smallest and the largest loss; counts c None are ones.
    """

def quantile_sums(losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, kernel: str, bandwidth: float, tail: float, xi: float, execution: Execution) -> tuple[float, float, float, float]:
    """
    With u = loss - xi and t = u / h: sum c K(t), sum c k(t), the sum of the smoothed check
    function c [h/2 E|t + Z| + (1/2 - tail) u], Z ~ k, and sum c |u|.
    """

def kernel_weights(losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], kernel: str, bandwidth: float, xi: float, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], execution: Execution) -> None:
    """Write K((loss - xi) / h) of every loss."""
