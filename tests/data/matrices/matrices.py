"""Matrices for tests."""

import numpy as np
import scipy.sparse as sp

EXAMPLE = np.array([[0, 2, 1], [0, 0, 0], [3, 0, 0]], dtype=np.float32)


def raw_csr(data, indices, indptr, shape, container=sp.csr_matrix):
    """Return a CSR matrix with these arrays, without any check."""
    matrix = container(shape, dtype=np.asarray(data).dtype)
    matrix.data, matrix.indices, matrix.indptr = map(np.asarray, (data, indices, indptr))
    return matrix
