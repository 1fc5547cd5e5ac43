"""Interactions on a device, and the work on them cut to size."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from safecf.caching import cached_property
from safecf.data.matrices.csr import Csr

Plan = TypeVar("Plan")


class Chunk(NamedTuple):
    """Some entries of a matrix, and the rows that have them, the first and last maybe in part."""

    entries: slice
    rows: slice
    offsets: Tensor  # where each of the rows begins and ends among the entries


class Bucket(NamedTuple):
    """Rows of similar length: their numbers, where they begin, and how long they are."""

    rows: Tensor
    begin: Tensor
    length: Tensor
    width: int  # the longest one


@dataclass(frozen=True, eq=False)
class TorchMatrix:
    """A sparse matrix by row: `Csr` on a device."""

    indptr: Tensor
    indices: Tensor
    weights: Tensor | None
    host: Csr
    _plans: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def place(cls, matrix: Csr, device: torch.device) -> "TorchMatrix":
        """Copy a matrix to a device."""
        weights = matrix.weights
        return cls(
            torch.tensor(matrix.indptr, dtype=torch.int64, device=device),
            torch.tensor(matrix.indices, dtype=torch.int32, device=device),
            None if weights is None else torch.tensor(weights, dtype=torch.float32, device=device),
            matrix,
        )

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return len(self.indices)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of entries of every row, on the host."""
        return np.diff(self.host.indptr)

    @cached_property
    def row_of(self) -> Tensor:
        """The row of every entry."""
        counts = self.indptr.diff()
        rows = torch.arange(len(counts), dtype=torch.int32, device=self.indptr.device)
        return rows.repeat_interleave(counts, output_size=self.nnz)

    def chunks(self, size: int) -> Iterator[Chunk]:
        """Cut the entries into chunks of at most `size`."""
        indptr = self.host.indptr
        for begin in range(0, self.nnz, size):
            end = min(begin + size, self.nnz)
            first = int(np.searchsorted(indptr, begin, side="right")) - 1
            last = int(np.searchsorted(indptr, end, side="left"))
            offsets = (self.indptr[first : last + 1] - begin).clamp(0, end - begin)
            yield Chunk(slice(begin, end), slice(first, last), offsets)

    def planned(self, plan: Callable[["TorchMatrix"], Plan]) -> Plan:
        """Return a plan of the work on this matrix, made once."""
        if plan not in self._plans:
            self._plans[plan] = plan(self)
        found: Plan = self._plans[plan]
        return found

    @cached_property
    def by_length(self) -> list[Bucket]:
        """All rows that have entries, in buckets whose lengths differ by at most a factor of 2."""
        lengths = self.lengths
        order = np.argsort(lengths, kind="stable")
        order = order[lengths[order] > 0]
        powers = np.ceil(np.log2(lengths[order])).astype(np.int64)
        found = []
        for rows in np.split(order, np.flatnonzero(np.diff(powers)) + 1):
            if rows.size:
                numbers = torch.as_tensor(rows, device=self.indptr.device)
                begin = self.indptr[numbers]
                length = self.indptr[numbers + 1] - begin
                found.append(Bucket(numbers, begin, length, int(lengths[rows].max())))
        return found
