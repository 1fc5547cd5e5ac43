"""Passes over all pairs of a half-step in plain PyTorch, on any device."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from safecf.backends.torch.matrices import Chunk, TorchMatrix
from safecf.backends.torch.systems import Systems

# How many numbers of gathered factors are in memory at a time.
NUMBERS = 2**26


class Products(Protocol):
    """Products with the pairs of rows; each reads the fixed factors y_j of all rows once."""

    def first(self, vectors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return sum_j p y_j, sum_j p y_j^2 and sum_j p (y_j.v) y_j of every row."""
        ...

    def image(self, vectors: Tensor) -> Tensor:
        """Return sum_j p (y_j.v) y_j of every row."""
        ...


@dataclass(frozen=True)
class PlainProducts:
    """Gather, multiply, and add up row by row, a chunk of the pairs at a time."""

    systems: Systems

    def first(self, vectors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Add up all three in one pass."""
        systems = self.systems
        right, squares, image = (torch.zeros_like(vectors) for _ in range(3))
        for chunk, fixed, scores in _chunks(systems.matrix, systems.fixed, vectors):
            weighted = systems.pairs(chunk.entries)[:, None] * fixed
            right[chunk.rows] += _sum_rows(weighted, chunk.offsets)
            squares[chunk.rows] += _sum_rows(weighted * fixed, chunk.offsets)
            image[chunk.rows] += _sum_rows(scores[:, None] * weighted, chunk.offsets)
        return right, squares, image

    def image(self, vectors: Tensor) -> Tensor:
        """Add up the images."""
        systems, image = self.systems, torch.zeros_like(vectors)
        for chunk, fixed, scores in _chunks(systems.matrix, systems.fixed, vectors):
            weighted = (systems.pairs(chunk.entries) * scores)[:, None] * fixed
            image[chunk.rows] += _sum_rows(weighted, chunk.offsets)
        return image


def pair_errors(matrix: TorchMatrix, fixed: Tensor, vectors: Tensor) -> Tensor:
    """Return sum_j c_j (1 - y_j.v)^2 of every row."""
    errors = vectors.new_zeros(len(vectors))
    for chunk, _, scores in _chunks(matrix, fixed, vectors):
        each = (1 - scores) ** 2
        if matrix.weights is not None:
            each *= matrix.weights[chunk.entries]
        errors[chunk.rows] += _sum_rows(each, chunk.offsets)
    return errors


def pair_scores(matrix: TorchMatrix, fixed: Tensor, vectors: Tensor) -> Tensor:
    """Return y_j.v of every pair."""
    found = [scores for _, _, scores in _chunks(matrix, fixed, vectors)]
    return torch.cat(found) if found else vectors.new_zeros(0)


def _chunks(
    matrix: TorchMatrix, fixed: Tensor, vectors: Tensor
) -> Iterator[tuple[Chunk, Tensor, Tensor]]:
    """Yield chunks of the pairs, with the fixed factors and the scores of each."""
    for chunk in matrix.chunks(max(1, NUMBERS // fixed.shape[1])):
        gathered = fixed.index_select(0, matrix.indices[chunk.entries]).to(vectors.dtype)
        own = vectors.index_select(0, matrix.row_of[chunk.entries])
        yield chunk, gathered, (gathered * own).sum(1)


def _sum_rows(values: Tensor, offsets: Tensor) -> Tensor:
    """Add up the values of every row, in their order."""
    return torch.segment_reduce(values, "sum", offsets=offsets, axis=0, initial=0)
