"""Search by dot product in C++."""

import numpy as np

from safecf import _core
from safecf.als.capabilities import Ids
from safecf.backends.cpu.arrays import Floats, as_floats, as_matrix
from safecf.data.matrices.csr import Csr


class CpuIndex:
    """Factors to search, with the native core's copies of them."""

    def __init__(self, factors: Floats, execution: _core.Execution) -> None:
        self.catalogue = _core.Catalogue(as_floats(factors), execution)
        self.execution = execution

    def search(
        self,
        queries: Floats,
        k: int,
        exclude: Csr | None = None,
        exclude_all: Ids | None = None,
    ) -> tuple[Ids, Floats]:
        """Return the k best rows per query; see `Index`."""
        ids = np.empty((len(queries), k), dtype=np.int32)
        scores = np.empty((len(queries), k), dtype=np.float32)
        excluded = _excluded(exclude, exclude_all)
        self.catalogue.search(as_floats(queries), *excluded, ids, scores, self.execution)
        return ids, scores

    def ranks(
        self,
        queries: Floats,
        targets: Csr,
        exclude: Csr | None = None,
        exclude_all: Ids | None = None,
    ) -> Ids:
        """Return the rank of every target, counted tile by tile; see `Index`."""
        ranks = np.empty(targets.nnz, dtype=np.int32)
        excluded = _excluded(exclude, exclude_all)
        wanted = as_matrix(targets)
        self.catalogue.ranks(as_floats(queries), wanted, *excluded, ranks, self.execution)
        return ranks


def _excluded(
    exclude: Csr | None, exclude_all: Ids | None
) -> tuple[_core.Matrix | None, Ids | None]:
    return (
        None if exclude is None else as_matrix(exclude),
        None if exclude_all is None else np.asarray(exclude_all, dtype=np.int32),
    )
