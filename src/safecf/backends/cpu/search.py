"""Search by dot product in C++."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf import _core
from safecf.data.matrices.csr import Csr

Floats = NDArray[np.float32]
Ids = NDArray[np.int32]


class CpuIndex:
    """Factors, and a bfloat16 copy that tells most of them from the best for few queries."""

    def __init__(self, factors: Floats, num_threads: int, isa: str) -> None:
        self._factors = np.ascontiguousarray(factors, dtype=np.float32)
        self._run = num_threads, isa
        self._sketch: tuple[Any, float] | None = None

    def search(
        self,
        queries: Floats,
        k: int,
        exclude: Csr | None = None,
        exclude_all: Ids | None = None,
    ) -> tuple[Ids, Floats]:
        """Score in tiles and keep the best of each row."""
        ids = np.empty((len(queries), k), dtype=np.int32)
        scores = np.empty((len(queries), k), dtype=np.float32)
        words, longest = self._low_precision() if len(queries) <= _core.few_queries else (None, 0.0)
        _core.topk(
            np.ascontiguousarray(queries, dtype=np.float32),
            self._factors,
            words,
            longest,
            None if exclude is None else exclude.indptr,
            None if exclude is None else exclude.indices,
            None if exclude_all is None else np.unique(exclude_all).astype(np.int32),
            ids,
            scores,
            *self._run,
        )
        return ids, scores

    def _low_precision(self) -> tuple[Any, float]:
        width = -(-self._factors.shape[1] // 32) * 16
        if width >= self._factors.shape[1]:
            return None, 0.0
        if self._sketch is None:
            words = np.empty((len(self._factors), width), dtype=np.uint32)
            _core.roughen(self._factors, words, *self._run)
            squares = np.einsum("ij,ij->i", self._factors, self._factors)
            self._sketch = words, float(np.sqrt(squares.max()))
        return self._sketch
