"""Updates of coordinate blocks; see `Subspace`."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from safecf.backends.torch.budget import Budget
from safecf.backends.torch.matrices import Bucket
from safecf.backends.torch.reports import TorchReport, squares
from safecf.backends.torch.solvers import each_bucket, entries_of, gather_pairs
from safecf.backends.torch.systems import Systems


class Unkept(NamedTuple):
    """Scores of streamed interactions: they are not kept, but computed again from the factors."""

    others: Tensor


@dataclass(frozen=True, eq=False)
class BlockUpdate:
    """Newton steps of all rows in the coordinates `block`: `systems` are those of the block.

    `gram` holds the columns `block` of G. Entry e has its score at positions[e + first], or at
    e + first.
    """

    systems: Systems
    block: slice
    gram: Tensor
    factors: Tensor
    scores: Tensor
    positions: Tensor | None
    first: int
    report: TorchReport

    def run(self, budget: Budget) -> None:
        """Update rows of similar length together."""
        d, size = self.gram.shape
        for bucket in budget.run(lambda: self.systems.matrix.by_length):
            each_bucket(bucket, max(d, size * max(size, bucket.width)), self._update, budget)

    def _update(self, rows: Bucket) -> None:
        """Update some rows and their scores: all of them, or nothing if memory runs out."""
        systems, block, scores = self.systems, self.block, self.scores
        old, own = self.factors[rows.rows, block], self._shared_slopes(rows.rows)
        columns, pairs = gather_pairs(systems, rows, 0, rows.width)
        entry, there = entries_of(rows, 0, rows.width)
        entry = entry + self.first
        place = entry if self.positions is None else self.positions[entry].long()
        fixed = systems.fixed[columns]
        weighted = pairs[:, :, None] * fixed
        matrix = fixed.mT @ weighted
        matrix += systems.gram_weight[rows.rows][:, None, None] * self.gram[block]
        matrix.diagonal(dim1=1, dim2=2).add_(systems.ridge[rows.rows][:, None])
        right = (weighted.mT @ (1 - scores[place])[:, :, None])[:, :, 0] - own
        lower, failed = torch.linalg.cholesky_ex(matrix)
        solved = torch.cholesky_solve(right[:, :, None], lower)[:, :, 0]
        solved = torch.where((failed == 0)[:, None], solved, torch.nan)
        empty = (pairs == 0).all(dim=1)[:, None]
        step = torch.where(empty, -old, solved)
        new, place = old + step, place[there]
        scored = scores[place] + (fixed @ step[:, :, None])[:, :, 0][there]
        changes, norms = squares(step), squares(new)
        self.factors[rows.rows, block], scores[place] = new, scored
        self.report.changes[rows.rows], self.report.norms[rows.rows] = changes, norms

    def _shared_slopes(self, rows: Tensor) -> Tensor:
        """Return g (x'G)_block + ridge x_block."""
        x, systems = self.factors[rows], self.systems
        slopes = systems.gram_weight[rows, None] * (x @ self.gram)
        return slopes.addcmul_(systems.ridge[rows, None], x[:, self.block])
