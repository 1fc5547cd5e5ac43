"""Half-steps by parts: what a worker solves, and how the results of all parts are merged.

One machine solves all rows at once, in place (`sweeps`). A cluster cuts them: every worker gets
the fixed side, G, and some `Rows`, and returns new factors and sums. How the rows are cut changes
no bit of the factors.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from numpy.typing import NDArray

from safecf.als.capabilities import Fixed, HalfSteps
from safecf.als.loss import Vector
from safecf.als.rows import Rows
from safecf.als.solvers import RowSolver


@dataclass(frozen=True)
class RowSums:
    """Sums over solved rows: sum |x_new - x_old|^2, sum ridge |x_new|^2, and max |x_new|^2.

    `gram` is F' diag(weight) F of the new factors, for the other side's half-step.
    """

    change: float
    penalty: float
    largest: float
    gram: NDArray[Any]

    def merge(self, other: "RowSums") -> "RowSums":
        """Return the sums over both parts."""
        return RowSums(
            self.change + other.change,
            self.penalty + other.penalty,
            max(self.largest, other.largest),
            self.gram + other.gram,
        )


def solve_part(
    backend: HalfSteps,
    rows: Rows,
    fixed: Fixed,
    start: NDArray[Any],
    solver: RowSolver,
    weight: Vector | None = None,
) -> tuple[NDArray[Any], RowSums]:
    """Solve a part of the rows from `start`; return their factors, and the sums over them.

    `fixed` is what the backend's `fix` made of the other side, and `weight` that of the rows in
    the Gramian. Nothing is kept, and `start` is left as it is.
    """
    factors = backend.copy(backend.place(start))
    report = backend.solve_rows(rows, fixed, factors, solver)
    sums = RowSums(
        change=report.change(),
        penalty=report.penalty(rows.ridge),
        largest=report.largest(),
        gram=backend.fetch(backend.gram(factors, weight)),
    )
    return backend.fetch(factors), sums


def merge(parts: Iterable[RowSums]) -> RowSums:
    """Merge the sums of all parts, in their order, so that a rerun gives the same bits."""
    return reduce(RowSums.merge, parts)
