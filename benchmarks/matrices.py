"""Synthetic matrices with the shapes of the paper's data sets, for measuring time."""

import functools
from typing import Any

import scipy.sparse

from safecf.data.datasets.synthetic import synthetic

# the training users of either
SHAPES = {
    "ml-20m": (116_677, 20_108, 8_300_000),
    "msd": (471_355, 41_140, 27_000_000),
}


def setting_of(matrix: scipy.sparse.csr_matrix, **more: Any) -> dict[str, Any]:
    """Return the size of a matrix and whatever else was the same for all of a part."""
    users, items = matrix.shape
    return {"users": users, "items": items, "interactions": int(matrix.nnz), **more}


@functools.lru_cache(maxsize=2)
def long_tailed(users: int, items: int, interactions: int) -> scipy.sparse.csr_matrix:
    """Log-normal activity, long-tailed popularity, planted tastes, items in random order.

    Parts share the matrix: do not change it.
    """
    return synthetic(users, items, interactions, exponent=1.0, shift=0.01, seed=0).matrix
