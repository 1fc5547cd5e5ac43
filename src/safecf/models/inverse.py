"""The inverse of a large symmetric matrix, in place and on all cores."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from safecf.backends import thread_count
from safecf.backends.blas import single_threaded_blas

Matrix = NDArray[np.float64]

BLOCK = 256


def blocks(size: int) -> list[slice]:
    """Cut 0..size into blocks, the same for any number of threads, so that the bits are too."""
    return [slice(begin, min(begin + BLOCK, size)) for begin in range(0, size, BLOCK)]


def invert(matrix: Matrix, num_threads: int, report: Callable[[int], None]) -> None:
    """A <- A^-1 for a symmetric, positive definite A, by sweeping one block k after the other.

    With D = A_kk^-1 (Cholesky), a sweep replaces, for all other blocks i and j,

        A_ij by A_ij - A_ik D A_kj ,   A_ik by A_ik D ,   A_kk by -D

    and after all sweeps there is -A^-1. That is n^3 operations, as for Cholesky's inverse, nearly
    all of them in large products that run side by side. Only the lower triangle is computed.
    `report` is told the number of blocks done. Raises numpy's `LinAlgError` where some A_kk is
    not positive definite, or its inverse not finite.
    Reference: Goodnight, A Tutorial on the SWEEP Operator, The American Statistician 1979.
    """
    parts = blocks(len(matrix))
    with single_threaded_blas(), ThreadPoolExecutor(thread_count(num_threads)) as pool:
        for done, pivot in enumerate(parts, start=1):
            left, below = slice(0, pivot.start), slice(pivot.stop, None)
            factor = scipy.linalg.cho_factor(matrix[pivot, pivot], lower=True)
            inverse = scipy.linalg.cho_solve(factor, np.eye(pivot.stop - pivot.start))
            if not np.isfinite(inverse).all():
                raise np.linalg.LinAlgError("the inverse is beyond float64")
            row = np.hstack([matrix[pivot, : pivot.stop], matrix[below, pivot].T])
            scaled = inverse @ row

            def update(part: slice, row: Matrix = row, scaled: Matrix = scaled) -> None:
                matrix[part, : part.stop] -= row[:, part].T @ scaled[:, : part.stop]

            list(pool.map(update, parts))
            matrix[pivot, left] = scaled[:, left]
            matrix[below, pivot] = scaled[:, below].T
            matrix[pivot, pivot] = -inverse
            report(done)
    for part in parts:
        rows = matrix[part, : part.stop]
        np.negative(rows, out=rows)
        matrix[: part.start, part] = matrix[part, : part.start].T
