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
        self.catalogue.search(
            as_floats(queries),
            None if exclude is None else as_matrix(exclude),
            None if exclude_all is None else np.asarray(exclude_all, dtype=np.int32),
            ids,
            scores,
            self.execution,
        )
        return ids, scores
