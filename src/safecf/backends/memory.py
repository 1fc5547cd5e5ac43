"""Matrices that start on a cache line: vectors of their rows then never lie across two lines."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

CACHE_LINE = 64  # bytes


def aligned(rows: int, columns: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return an empty matrix that starts on a cache line."""
    size = rows * columns * np.dtype(dtype).itemsize
    raw = np.empty(size + CACHE_LINE, dtype=np.uint8)
    offset = -raw.ctypes.data % CACHE_LINE
    return np.asarray(raw[offset : offset + size].view(dtype).reshape(rows, columns))


def as_aligned(matrix: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """Return the matrix in a type, on a cache line: itself, if it is so already."""
    if matrix.dtype == dtype and matrix.ctypes.data % CACHE_LINE == 0:
        return matrix
    rows, columns = matrix.shape
    copy = aligned(rows, columns, dtype)
    copy[:] = matrix
    return copy
