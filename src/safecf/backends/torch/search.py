"""Search by dot product in PyTorch: scores of some queries at a time, and a selection from them."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from safecf.als.capabilities import Ids
from safecf.backends.torch.passes import NUMBERS
from safecf.data.matrices.csr import Csr

NONE_LEFT = -float(np.finfo(np.float32).max)


class TorchIndex:
    """Factors on a device, to be searched again and again."""

    def __init__(self, factors: Tensor) -> None:
        self._factors = factors

    def search(
        self,
        queries: NDArray[np.float32],
        k: int,
        exclude: Csr | None = None,
        exclude_all: Ids | None = None,
    ) -> tuple[Ids, NDArray[np.float32]]:
        """Return the k best rows per query; see `Index`."""
        ids = np.full((len(queries), k), -1, dtype=np.int32)
        best = np.full((len(queries), k), NONE_LEFT, dtype=np.float32)
        width = min(k, len(self._factors))
        for part, scores in self._scored(queries, exclude, exclude_all):
            values, found = _best(scores, width)
            found = torch.where(values == -torch.inf, -1, found)
            values = torch.where(values == -torch.inf, NONE_LEFT, values)
            ids[part, :width] = found.to(torch.int32).cpu().numpy()
            best[part, :width] = values.cpu().numpy()
        return ids, best

    def ranks(
        self,
        queries: NDArray[np.float32],
        targets: Csr,
        exclude: Csr | None = None,
        exclude_all: Ids | None = None,
    ) -> Ids:
        """Return the rank of every target, from sorted scores; see `Index`."""
        ranks = np.zeros(targets.nnz, dtype=np.int32)
        for part, scores in self._scored(queries, exclude, exclude_all):
            rows, columns, entries = _entries(targets, part, scores.device)
            if len(rows):
                order = scores.argsort(dim=1, descending=True, stable=True)
                place = torch.empty_like(order)
                counted = torch.arange(1, order.shape[1] + 1, device=order.device)
                place.scatter_(1, order, counted.expand_as(order))
                there = scores[rows, columns] > -torch.inf
                found = torch.where(there, place[rows, columns], 0)
                ranks[entries] = found.to(torch.int32).cpu().numpy()
        return ranks

    def _scored(
        self, queries: NDArray[np.float32], exclude: Csr | None, exclude_all: Ids | None
    ) -> Iterator[tuple[slice, Tensor]]:
        """Yield parts of the queries, and their scores; -inf where a row is left out."""
        factors = self._factors
        everywhere = None
        if exclude_all is not None:
            everywhere = torch.as_tensor(np.array(exclude_all, dtype=np.int64)).to(factors.device)
        size = max(1, NUMBERS // max(len(factors), 1))
        for first in range(0, len(queries), size):
            part = slice(first, min(first + size, len(queries)))
            asked = torch.as_tensor(np.array(queries[part], dtype=np.float32)).to(factors.device)
            scores = asked @ factors.T
            scores.masked_fill_(scores.isnan(), -torch.inf)
            if exclude is not None:
                rows, columns, _ = _entries(exclude, part, factors.device)
                scores[rows, columns] = -torch.inf
            if everywhere is not None:
                scores[:, everywhere] = -torch.inf
            yield part, scores


def _entries(matrix: Csr, rows: slice, device: torch.device) -> tuple[Tensor, Tensor, slice]:
    """Return the rows, from 0 on, and columns of the entries of some rows, and which these are."""
    indptr = matrix.indptr[rows.start : rows.stop + 1]
    entries = slice(int(indptr[0]), int(indptr[-1]))
    numbers = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    columns = matrix.indices[entries].astype(np.int64)
    return torch.as_tensor(numbers).to(device), torch.as_tensor(columns).to(device), entries


def _best(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k best of every row, best first; those that tie by index."""
    values, ids = scores.topk(k, dim=1)
    # topk takes any of those that tie with the last: where there are more, sort the row
    worst = values[:, -1:]
    tied = (scores == worst).sum(dim=1) != (values == worst).sum(dim=1)
    tied &= worst[:, 0] > -torch.inf
    ids, order = ids.sort(dim=1)
    values, order = values.gather(1, order).sort(dim=1, descending=True, stable=True)
    ids = ids.gather(1, order)
    for row in tied.nonzero()[:, 0].split(max(1, NUMBERS // (4 * scores.shape[1]))):
        whole, by_score = scores[row].sort(dim=1, descending=True, stable=True)
        values[row], ids[row] = whole[:, :k], by_score[:, :k]
    return values, ids
