"""Factors between Arrow's lists and NumPy's matrices."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def matrix(features: pa.Array, width: int) -> Floats:
    """Return lists of `width` numbers as the rows of a matrix.

    >>> matrix(pa.array([[1.0, 2.0], [3.0, 4.0]]), 2).shape
    (2, 2)
    """
    values = features.flatten().to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(values.reshape(-1, width), dtype=np.float32)


def lists(rows: Floats) -> pa.Array:
    """Return the rows of a matrix as lists of float32.

    >>> lists(np.zeros((3, 2), dtype=np.float32)).type
    ListType(list<item: float>)
    """
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.ListArray.from_arrays(offsets, pa.array(rows.reshape(-1)))
