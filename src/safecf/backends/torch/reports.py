"""What a half-step did to its rows, on the device."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from safecf.als.capabilities import PerRow
from safecf.als.rows import Rows
from safecf.backends.torch.systems import as_tensor
from safecf.caching import cached_property
from safecf.errors import SolveError


@dataclass(frozen=True)
class TorchReport:
    """A report by row, |x_new - x_old|^2 and |x_new|^2, on the device; only sums leave it."""

    squares: Tensor

    @classmethod
    def of(cls, factors: Tensor) -> "TorchReport":
        """Return a report on these factors, to be filled in row by row before it is read."""
        return cls(factors.new_empty(2, len(factors)))

    @property
    def changes(self) -> Tensor:
        """|x_new - x_old|^2."""
        return self.squares[0]

    @property
    def norms(self) -> Tensor:
        """|x_new|^2."""
        return self.squares[1]

    def part(self, rows: slice) -> "TorchReport":
        """Return the report on some rows, which shares its memory."""
        return TorchReport(self.squares[:, rows])

    def write(self, factors: Tensor, rows: Any, found: Tensor) -> None:
        """Replace some rows of the factors: all of it, or nothing if memory runs out."""
        changes, norms = squares(found - factors[rows]), squares(found)
        factors[rows], self.changes[rows], self.norms[rows] = found, changes, norms

    @cached_property
    def _sums(self) -> list[float]:
        """sum_r |x_new - x_old|^2, sum_r |x_new|^2 and max_r |x_new|^2, all in one transfer."""
        if not self.squares.numel():
            return [0.0, 0.0, 0.0]
        sums = self.squares.sum(1, dtype=torch.float64)
        found: list[float] = torch.cat([sums, self.norms.max()[None]]).tolist()
        return found

    def check_solved(self, rows: Rows) -> None:
        """Raise if a row could not be solved."""
        if not math.isfinite(self._sums[1]):
            first = int((~self.norms.isfinite()).to(torch.int8).argmax())
            raise SolveError.at(rows.first + first, float(rows.ridge[first]))

    def change(self) -> float:
        """sum_r |x_new - x_old|^2."""
        return self._sums[0]

    def penalty(self, ridge: PerRow) -> float:
        """sum_r ridge_r |x_new|^2."""
        norms = self.norms.double()
        return float(as_tensor(ridge, norms) @ norms)

    def largest(self) -> float:
        """max_r |x_new|^2."""
        return self._sums[2]

    def below(self, bound: float, count: PerRow) -> float:
        """sum_r count_r 1{|x_new|^2 <= bound}."""
        inside = (self.norms <= bound).double()
        return float(as_tensor(count, inside) @ inside)

    def __add__(self, other: "TorchReport") -> "TorchReport":
        return TorchReport(self.squares + other.squares)


def squares(rows: Tensor) -> Tensor:
    """|x_r|^2."""
    return (rows * rows).sum(dim=1)
