"""The systems of a half-step as tensors."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from safecf.als.rows import Rows
from safecf.backends.torch.matrices import Chunk, TorchMatrix


class Fixed(NamedTuple):
    """The fixed side in the eigenbasis of G = basis diag(values) basis'.

    Without a basis, all factors are in it already.
    """

    rotated: Tensor
    values: Tensor
    basis: Tensor | None


@dataclass(frozen=True, eq=False)
class Systems:
    """( diag(g_r values + ridge_r) + sum_j p_rj y_j y_j' ) x_r = sum_j p_rj y_j; see `Rows`."""

    matrix: TorchMatrix
    row_weight: Tensor
    col_weight: Tensor
    gram_weight: Tensor
    ridge: Tensor
    fixed: Tensor
    values: Tensor

    @classmethod
    def of(cls, rows: Rows, fixed: Fixed, *, rounded: bool = True) -> "Systems":
        """Return the systems of the rows, in the eigenbasis of G.

        Vectors are rounded to the type of the factors, or left as they are for kernels.
        """
        vectors = rows.row_weight, rows.col_weight, rows.gram_weight, rows.ridge
        row_weight, col_weight, gram_weight, ridge = (
            as_tensor(each, fixed.values, rounded=rounded) for each in vectors
        )
        return cls(
            rows.matrix, row_weight, col_weight, gram_weight, ridge, fixed.rotated, fixed.values
        )

    def part(self, rows: slice, matrix: TorchMatrix | None = None) -> "Systems":
        """Return the systems of some rows, given their part of the matrix if that is streamed."""
        return replace(
            self,
            matrix=self.matrix.rows(rows) if matrix is None else matrix,
            row_weight=self.row_weight[rows],
            gram_weight=self.gram_weight[rows],
            ridge=self.ridge[rows],
        )

    def shared(self, rows: Any = slice(None)) -> Tensor:
        """g_r values + ridge_r of some rows."""
        return torch.addcmul(self.ridge[rows, None], self.gram_weight[rows, None], self.values)

    def pairs(self, chunk: Chunk) -> Tensor:
        """p_rj of some entries."""
        matrix, entries = self.matrix, chunk.entries
        found = self.row_weight[chunk.rows].index_select(0, chunk.row_of)
        found = found * self.col_weight.index_select(0, matrix.indices[entries])
        return found if matrix.weights is None else found * matrix.weights[entries]


def as_tensor(values: Any, like: Tensor, *, rounded: bool = True) -> Tensor:
    """Return a vector, from NumPy or from a device, where another one is, and of its type."""
    if isinstance(values, np.ndarray) and not values.flags.writeable:
        values = values.copy()
    return torch.as_tensor(values, dtype=like.dtype if rounded else None, device=like.device)
