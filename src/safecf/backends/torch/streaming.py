"""Interactions that stay on the host, and come to the device part by part."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from safecf.backends.torch.budget import cut
from safecf.backends.torch.matrices import Part, TorchMatrix
from safecf.data.matrices.csr import Csr

KINDS = torch.int32, torch.float32  # of columns and weights

Arrays = list[Tensor]  # columns, and weights if there are some


@dataclass(frozen=True, eq=False)
class StreamedMatrix:
    """A sparse matrix by row whose entries are in the host's memory, pinned if the device is a GPU.

    Parts take turns in two buffers on the device: while one is worked on, the next one is copied,
    on a stream of its own. A part is as long as the longest row at least.
    """

    _host: list[Arrays]  # the entries of every part
    _parts: list[Part]  # the parts, in their buffers
    _buffers: tuple[Arrays, Arrays]
    _copies: Any  # the stream of the copies, if the device has streams

    @classmethod
    def place(cls, matrix: Csr, device: torch.device, size: int) -> "StreamedMatrix":
        """Keep a matrix on the host, in parts of `size` entries, or of one row if that is more."""
        offsets, edges = matrix.indptr, [0]
        while edges[-1] < matrix.num_rows:
            edges.append(cut(offsets, edges[-1], size))
        entries = [slice(*offsets[[*span]].tolist()) for span in pairwise(edges)]
        longest = max((each.stop - each.start for each in entries), default=0)
        streams: Any = torch.cuda.Stream
        copies = streams(device) if device.type == "cuda" else None
        arrays = [each for each in (matrix.indices, matrix.weights) if each is not None]
        buffers = _empty(len(arrays), longest, device), _empty(len(arrays), longest, device)
        host, parts = [], []
        for number, (span, some) in enumerate(zip(pairwise(edges), entries, strict=True)):
            size, own = some.stop - some.start, offsets[span[0] : span[1] + 1] - some.start
            host.append(_empty(len(arrays), size, torch.device("cpu"), pinned=copies is not None))
            for kept, array in zip(host[-1], arrays, strict=True):
                kept.numpy()[:] = array[some]
            indices, *weights = (each[:size] for each in buffers[number % 2])
            indptr = torch.tensor(own, device=device)
            placed = TorchMatrix(indptr, indices, weights[0] if weights else None, own)
            parts.append(Part(slice(*span), some.start, placed))
        return cls(host, parts, buffers, copies)

    @property
    def nbytes(self) -> int:
        """The memory that it takes on the device."""
        buffers = sum(each.nbytes for each in (*self._buffers[0], *self._buffers[1]))
        return buffers + sum(part.matrix.indptr.nbytes for part in self._parts)

    def parts(self) -> Iterator[Part]:
        """Yield part after part; one is good until the next one is asked for."""
        for number, part in enumerate(self._parts):
            if number == 0:
                self._copy(0)
            if self._copies is not None:
                torch.cuda.current_stream(self._copies.device).wait_stream(self._copies)
            if number + 1 < len(self._parts):
                self._copy(number + 1)
            yield part

    def _copy(self, number: int) -> None:
        """Copy a part to its buffer, once all work that was begun so far is done."""
        buffers, arrays = self._buffers[number % 2], self._host[number]
        if self._copies is None:
            _fill(buffers, arrays)
            return
        self._copies.wait_stream(torch.cuda.current_stream(self._copies.device))
        with torch.cuda.stream(self._copies):
            _fill(buffers, arrays)
            for buffer in buffers:
                buffer.record_stream(self._copies)


def _fill(buffers: Arrays, arrays: Arrays) -> None:
    for buffer, array in zip(buffers, arrays, strict=True):
        buffer[: len(array)].copy_(array, non_blocking=True)


def _empty(count: int, size: int, device: torch.device, *, pinned: bool = False) -> Arrays:
    """Return memory for `size` columns, and as many weights if `count` is 2."""
    return [
        torch.empty(size, dtype=kind, device=device, pin_memory=pinned) for kind in KINDS[:count]
    ]
