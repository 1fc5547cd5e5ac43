"""Interactions on a device, and the work on them cut to size."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from safecf.data.matrices.csr import Csr

Plan = TypeVar("Plan")


class Chunk(NamedTuple):
    """Some entries of a matrix, and the rows that have them, the first and last maybe in part."""

    entries: slice
    rows: slice
    offsets: Tensor  # where each of the rows begins and ends among the entries
    row_of: Tensor  # the row of every entry, counted from the first of `rows`


class Bucket(NamedTuple):
    """Rows of similar length: their numbers, where they begin, and how long they are."""

    rows: Tensor
    begin: Tensor
    length: Tensor
    width: int  # the longest one

    def part(self, rows: slice) -> "Bucket":
        """Return some of the rows."""
        return Bucket(self.rows[rows], self.begin[rows], self.length[rows], self.width)


class Part(NamedTuple):
    """Consecutive rows of a matrix, on the device."""

    rows: slice
    first: int  # the number of their first entry
    matrix: "TorchMatrix"


@dataclass(frozen=True, eq=False)
class TorchMatrix:
    """A sparse matrix by row: `Csr` on a device."""

    indptr: Tensor
    indices: Tensor
    weights: Tensor | None
    offsets: NDArray[np.int64]  # `indptr` on the host
    _plans: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def place(cls, matrix: Csr, device: torch.device) -> "TorchMatrix":
        """Copy a matrix to a device."""
        weights = matrix.weights
        return cls(
            torch.tensor(matrix.indptr, dtype=torch.int64, device=device),
            torch.tensor(matrix.indices, dtype=torch.int32, device=device),
            None if weights is None else torch.tensor(weights, dtype=torch.float32, device=device),
            matrix.indptr,
        )

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return len(self.indices)

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """The memory that it takes on the device."""
        weights = 0 if self.weights is None else self.weights.nbytes
        return self.indptr.nbytes + self.indices.nbytes + weights

    def parts(self) -> Iterator[Part]:
        """Yield the whole matrix, which is on the device; see `StreamedMatrix`."""
        yield Part(slice(0, self.num_rows), 0, self)

    def rows(self, rows: slice) -> "TorchMatrix":
        """Return some consecutive rows, which share the memory of the entries."""
        if rows == slice(0, self.num_rows):
            return self
        return self.planned((rows.start, rows.stop), lambda matrix: matrix._part(rows))

    def _part(self, rows: slice) -> "TorchMatrix":
        edges = slice(rows.start, rows.stop + 1)
        begin, end = (int(self.offsets[row]) for row in (rows.start, rows.stop))
        return TorchMatrix(
            self.indptr[edges] - begin,
            self.indices[begin:end],
            None if self.weights is None else self.weights[begin:end],
            self.offsets[edges] - begin,
        )

    def chunks(self, size: int) -> Iterator[Chunk]:
        """Cut the entries into chunks of at most `size`."""
        for begin in range(0, self.nnz, size):
            end = min(begin + size, self.nnz)
            first = int(np.searchsorted(self.offsets, begin, side="right")) - 1
            last = int(np.searchsorted(self.offsets, end, side="left"))
            offsets = (self.indptr[first : last + 1] - begin).clamp(0, end - begin)
            rows = torch.arange(last - first, dtype=torch.int32, device=offsets.device)
            row_of = rows.repeat_interleave(offsets.diff(), output_size=end - begin)
            yield Chunk(slice(begin, end), slice(first, last), offsets, row_of)

    def planned(self, name: Any, plan: Callable[["TorchMatrix"], Plan]) -> Plan:
        """Return a plan of the work on this matrix, made once."""
        if name not in self._plans:
            self._plans[name] = plan(self)
        found: Plan = self._plans[name]
        return found

    @property
    def by_length(self) -> list[Bucket]:
        """All rows, in buckets whose lengths differ by at most a factor of 2."""
        return self.planned("by length", _by_length)


def _by_length(matrix: TorchMatrix) -> list[Bucket]:
    """Sort by length, and cut at lengths of 0, 1, 2, 4, 8 and so on."""
    length, rows = matrix.indptr.diff().sort(stable=True)
    begin = matrix.indptr[rows]
    powers = torch.tensor([0, *(2**power for power in range(63))], device=length.device)
    edges = torch.searchsorted(length, powers, right=True)
    widths = length[(edges - 1).clamp(min=0)] if len(length) else edges
    found, first = [], 0
    for last, width in zip(edges.tolist(), widths.tolist(), strict=True):
        if last > first:
            part = slice(first, last)
            found.append(Bucket(rows[part], begin[part], length[part], width))
        first = last
    return found
