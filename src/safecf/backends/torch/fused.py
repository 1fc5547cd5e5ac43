"""Passes and whole solves by Triton, on CUDA."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import triton
from torch import Tensor

from safecf.als.solvers import CG, SpectralCG
from safecf.backends.torch import kernels
from safecf.backends.torch.matrices import TorchMatrix
from safecf.backends.torch.passes import PlainPasses
from safecf.backends.torch.solvers import conjugate_gradients
from safecf.backends.torch.systems import Systems

# A row with more pairs is solved in lockstep with the other long ones, in tasks of so many pairs.
LONG = 1024
TASK = 512


class Tile(NamedTuple):
    """How a program works: on how many fixed factors at a time, how long, by how many warps."""

    columns: int
    rows: int
    warps: int

    @classmethod
    def of(cls, factors: int) -> "Tile":
        """A warp has 256 to 512 columns of a tile, as only few registers are left for its rows."""
        columns = triton.next_power_of_2(factors)
        return cls(columns, max(4, 1024 // columns), max(1, columns // 512))


class LongRows(NamedTuple):
    """Rows that are solved in lockstep, and the tasks into which their pairs are cut."""

    rows: Tensor
    tasks: Tensor  # place among the long rows, row, first pair
    offsets: Tensor  # where the tasks of each long row begin


class Order(NamedTuple):
    """The rows with the longest first, so that no long one is left at the end."""

    all: Tensor
    short: Tensor
    long: LongRows


def order_of(matrix: TorchMatrix, long: int = LONG, task: int = TASK) -> Order:
    """Plan the work on a matrix."""
    lengths, device = matrix.lengths, matrix.indptr.device
    order = np.argsort(-lengths, kind="stable").astype(np.int32)
    split = int(np.count_nonzero(lengths > long))
    rows = order[:split].astype(np.int64)
    counts = -(-lengths[rows] // task)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    place = np.repeat(np.arange(split), counts)
    first = (np.arange(offsets[-1]) - offsets[place]) * task
    tasks = np.stack([place, rows[place], first], axis=1)
    every = torch.tensor(order, device=device)
    return Order(
        every,
        every[split:],
        LongRows(*(torch.tensor(each, device=device) for each in (rows, tasks, offsets))),
    )


@dataclass(frozen=True)
class FusedPasses(PlainPasses):
    """Passes that gather and multiply in one kernel, and keep nothing of what they gather."""

    def errors(self, matrix: TorchMatrix, fixed: Tensor, vectors: Tensor) -> Tensor:
        """Add up the errors, a program per row."""
        d = vectors.shape[1]
        errors, tile = vectors.new_zeros(len(vectors)), Tile.of(d)
        order = matrix.planned(order_of).all
        kernels.row_losses[(len(order),)](
            order, matrix.indptr, matrix.indices, _confidence(matrix), fixed, vectors, errors,
            d, fixed.stride(0), D=tile.columns, N=4 * tile.rows,
            WEIGHTED=matrix.weights is not None, num_warps=2 * tile.warps,
        )  # fmt: skip
        return errors

    def solve(
        self, systems: Systems, factors: Tensor, solver: CG | SpectralCG
    ) -> tuple[Tensor, Tensor]:
        """Solve all rows in place; return |x_new - x_old|^2 and |x_new|^2 by row."""
        matrix, d = systems.matrix, factors.shape[1]
        order, tile = matrix.planned(order_of), Tile.of(d)
        change, norm = factors.new_zeros(2, len(factors))
        if len(order.short):
            kernels.solve_rows[(len(order.short),)](
                order.short, matrix.indptr, matrix.indices, _confidence(matrix),
                systems.row_weight, systems.col_weight, systems.gram_weight, systems.ridge,
                systems.fixed, systems.values, factors, factors, change, norm,
                d, systems.fixed.stride(0), solver.max_iterations, solver.tolerance,
                D=tile.columns, N=tile.rows, WEIGHTED=matrix.weights is not None, OFFSET=False,
                PLAIN=solver.name == CG.name, num_warps=tile.warps,
            )  # fmt: skip
        rows = order.long.rows
        if len(rows):
            start = factors[rows]
            part, scaled = _LongSystems.of(systems, order.long), solver.name != CG.name
            found = conjugate_gradients(part, start, solver, _LongPasses(tile), scaled=scaled)
            factors[rows] = found
            change[rows], norm[rows] = ((found - start) ** 2).sum(1), (found**2).sum(1)
        return change, norm


@dataclass(frozen=True, eq=False)
class _LongSystems(Systems):
    """The systems of long rows; the matrix and the vectors of pairs are those of all."""

    long: LongRows | None = None
    all_row_weight: Tensor | None = None

    @classmethod
    def of(cls, systems: Systems, long: LongRows) -> "_LongSystems":  # type: ignore[override]
        rows = long.rows
        return cls(
            systems.matrix, systems.row_weight[rows], systems.col_weight,
            systems.gram_weight[rows], systems.ridge[rows], systems.fixed, systems.values,
            long, systems.row_weight,
        )  # fmt: skip


@dataclass(frozen=True)
class _LongPasses:
    """Passes over long rows: a program per task, and a sum over the tasks of each row."""

    tile: Tile

    def first(self, systems: _LongSystems, vectors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        image, right, squares = self._run(systems, vectors, first=True)
        return right, squares, image

    def image(self, systems: _LongSystems, vectors: Tensor) -> Tensor:
        return self._run(systems, vectors, first=False)[0]

    def _run(self, systems: _LongSystems, vectors: Tensor, *, first: bool) -> list[Tensor]:
        long, matrix, d = systems.long, systems.matrix, vectors.shape[1]
        tasks, tile = len(long.tasks), self.tile
        sums = [vectors.new_empty(tasks, d) for _ in range(3 if first else 1)]
        image, right, squares = sums if first else sums * 3
        vectors = vectors.contiguous()
        kernels.pass_over_pairs[(tasks,)](
            long.tasks, matrix.indptr, matrix.indices, _confidence(matrix),
            systems.all_row_weight, systems.col_weight, systems.fixed, vectors,
            right, squares, image, d, systems.fixed.stride(0),
            D=tile.columns, N=tile.rows, T=TASK, WEIGHTED=matrix.weights is not None, FIRST=first,
            num_warps=tile.warps,
        )  # fmt: skip
        return [self._added(long, each, d) for each in sums]

    def _added(self, long: LongRows, sums: Tensor, d: int) -> Tensor:
        width = min(self.tile.columns, 128)
        found = sums.new_empty(len(long.rows), d)
        grid = (len(long.rows), triton.cdiv(d, width))
        kernels.sum_tasks[grid](long.offsets, sums, found, d, D=width, num_warps=1)
        return found


def _confidence(matrix: TorchMatrix) -> Tensor:
    """The weights; anything where there are none, as the kernels do not read it."""
    return matrix.indptr if matrix.weights is None else matrix.weights
