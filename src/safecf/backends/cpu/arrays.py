"""NumPy arrays and matrices as the native core takes them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from safecf import _core
from safecf.data.matrices.csr import Csr

Floats = NDArray[np.float32]


def as_floats(values: ArrayLike) -> Floats:
    """Return a contiguous float32 array, without a copy if it is one."""
    return np.ascontiguousarray(values, dtype=np.float32)


def as_matrix(matrix: Csr) -> _core.Matrix:
    """Return a view of the matrix."""
    return _core.Matrix(matrix.indptr, matrix.indices, matrix.weights)
