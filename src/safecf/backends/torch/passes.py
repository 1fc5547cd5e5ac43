"""Passes over all pairs of a half-step in plain PyTorch, on any device."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from safecf.backends.torch.matrices import Chunk, TorchMatrix
from safecf.backends.torch.systems import Fixed, Systems


@dataclass(frozen=True)
class Products:
    """Products with the pairs of rows; each reads the fixed factors y_j of all rows once.

    They gather, multiply, and add up row by row: `numbers` numbers of the pairs' at a time.
    """

    systems: Systems
    numbers: int

    def first(self, vectors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return sum_j p y_j, sum_j p y_j^2 and sum_j p (y_j.v) y_j of every row."""
        systems = self.systems
        right, squares, image = (torch.zeros_like(vectors) for _ in range(3))
        for chunk, fixed, scores in self._chunks(vectors):
            weighted = systems.pairs(chunk)[:, None] * fixed
            right[chunk.rows] += _sum_rows(weighted, chunk.offsets)
            squares[chunk.rows] += _sum_rows(fixed.mul_(weighted), chunk.offsets)
            image[chunk.rows] += _sum_rows(weighted.mul_(scores[:, None]), chunk.offsets)
        return right, squares, image

    def image(self, vectors: Tensor) -> Tensor:
        """Return sum_j p (y_j.v) y_j of every row."""
        systems, image = self.systems, torch.zeros_like(vectors)
        for chunk, fixed, scores in self._chunks(vectors):
            weighted = fixed.mul_((systems.pairs(chunk) * scores)[:, None])
            image[chunk.rows] += _sum_rows(weighted, chunk.offsets)
        return image

    def _chunks(self, vectors: Tensor) -> Iterator[tuple[Chunk, Tensor, Tensor]]:
        return _chunks(self.systems.matrix, self.systems.fixed, vectors, self.numbers)


def write_losses(
    losses: Tensor,
    matrix: TorchMatrix,
    pair_weight: Tensor,
    factors: Tensor,
    fixed: Fixed,
    ridge: Tensor | None,
    numbers: int,
) -> None:
    """Write a/2 sum_j c_j (1 - x.y_j)^2 + 1/2 sum_k values_k x_k^2 + ridge/2 |x|^2 of all rows."""
    errors = pair_errors(matrix, fixed.rotated, factors, numbers)
    squared = factors * factors
    spread, norms = squared @ fixed.values, squared.sum(1)
    losses.copy_(losses_of(errors, spread, norms, pair_weight, ridge))


def losses_of(
    errors: Tensor, spread: Tensor, norms: Tensor, pair_weight: Tensor, ridge: Tensor | None
) -> Tensor:
    """Return the losses, given sum_j c_j (1 - x.y_j)^2, x'Gx and |x|^2."""
    found = pair_weight / 2 * errors + spread / 2
    return found if ridge is None else found + ridge / 2 * norms


def pair_errors(matrix: TorchMatrix, fixed: Tensor, vectors: Tensor, numbers: int) -> Tensor:
    """Return sum_j c_j (1 - y_j.v)^2 of every row."""
    chunks = _chunks(matrix, fixed, vectors, numbers)
    return _errors(matrix, ((chunk, scores) for chunk, _, scores in chunks), vectors)


def scored_errors(matrix: TorchMatrix, scores: Tensor, numbers: int) -> Tensor:
    """Return sum_j c_j (1 - s_j)^2 of every row, given the scores of all entries."""
    chunks = matrix.chunks(max(1, numbers // 2))  # an index has 64 bits
    return _errors(matrix, ((chunk, scores[chunk.entries]) for chunk in chunks), scores)


def pair_scores(matrix: TorchMatrix, fixed: Tensor, vectors: Tensor, numbers: int) -> Tensor:
    """Return y_j.v of every pair."""
    found = vectors.new_empty(matrix.nnz)
    for chunk, _, scores in _chunks(matrix, fixed, vectors, numbers):
        found[chunk.entries] = scores
    return found


def _errors(matrix: TorchMatrix, scored: Iterable[tuple[Chunk, Tensor]], like: Tensor) -> Tensor:
    """Return sum_j c_j (1 - s_j)^2 of every row, given chunks of the scores."""
    errors = like.new_zeros(matrix.num_rows)
    for chunk, scores in scored:
        each = (1 - scores) ** 2
        if matrix.weights is not None:
            each *= matrix.weights[chunk.entries]
        errors[chunk.rows] += _sum_rows(each, chunk.offsets)
    return errors


def _chunks(
    matrix: TorchMatrix, fixed: Tensor, vectors: Tensor, numbers: int
) -> Iterator[tuple[Chunk, Tensor, Tensor]]:
    """Yield chunks of the pairs, with the fixed factors and the scores of each."""
    for chunk in matrix.chunks(max(1, numbers // fixed.shape[1])):
        gathered = fixed.index_select(0, matrix.indices[chunk.entries]).to(vectors.dtype)
        scores = vectors[chunk.rows].index_select(0, chunk.row_of).mul_(gathered).sum(1)
        yield chunk, gathered, scores


def _sum_rows(values: Tensor, offsets: Tensor) -> Tensor:
    """Add up the values of every row, in their order."""
    return torch.segment_reduce(values, "sum", offsets=offsets, axis=0, initial=0)
