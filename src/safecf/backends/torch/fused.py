"""Passes and whole solves by Triton, on CUDA."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from safecf.als.solvers import CG, SpectralCG
from safecf.backends.torch import kernels
from safecf.backends.torch.budget import Budget, at_work
from safecf.backends.torch.matrices import TorchMatrix
from safecf.backends.torch.reports import TorchReport
from safecf.backends.torch.solvers import SMALLEST, conjugate_gradients
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
    edges: list[int]  # `offsets` on the host

    def part(self, rows: slice) -> "LongRows":
        """Return some of the long rows."""
        if rows == slice(0, len(self.rows)):
            return self
        edges = self.edges[rows.start : rows.stop + 1]
        tasks = self.tasks[edges[0] : edges[-1]].clone()
        tasks[:, 0] -= rows.start
        offsets = self.offsets[rows.start : rows.stop + 1] - edges[0]
        return LongRows(self.rows[rows], tasks, offsets, [each - edges[0] for each in edges])


class Order(NamedTuple):
    """The rows with the longest first, so that no long one is left at the end."""

    all: Tensor
    short: Tensor
    long: LongRows


def order_of(matrix: TorchMatrix, long: int = LONG, task: int = TASK) -> Order:
    """Plan the work on a matrix."""
    lengths, order = matrix.indptr.diff().sort(descending=True, stable=True)
    split = int((lengths > long).sum())
    rows, counts = order[:split], (lengths[:split] + task - 1) // task
    offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    edges: list[int] = offsets.tolist()
    place = torch.arange(split, device=order.device).repeat_interleave(counts)
    first = (torch.arange(edges[-1], device=order.device) - offsets[place]) * task
    tasks = torch.stack([place, rows[place], first], dim=1)
    every = order.int()
    return Order(every, every[split:], LongRows(rows, tasks, offsets, edges))


def pair_errors(matrix: TorchMatrix, fixed: Tensor, vectors: Tensor, numbers: int) -> Tensor:
    """Return sum_j c_j (1 - y_j.v)^2 of every row; there are no temporaries to be cut."""
    d = vectors.shape[1]
    order = matrix.planned("order", order_of).all
    errors, tile = vectors.new_zeros(len(vectors)), Tile.of(d)
    kernels.row_losses[(len(order),)](
        order, matrix.indptr, matrix.indices, _confidence(matrix), fixed, vectors, errors,
        d, fixed.stride(0), D=tile.columns, N=4 * tile.rows, WEIGHTED=matrix.weights is not None,
        num_warps=2 * tile.warps,
    )  # fmt: skip
    return errors


def solve_iteratively(
    systems: Systems, factors: Tensor, report: TorchReport, solver: CG | SpectralCG, budget: Budget
) -> None:
    """Solve all rows in place: the long ones while a kernel is at work on the others.

    The kernel needs no memory: when that runs out, only long rows that are not done are done again.
    """
    matrix, d = systems.matrix, factors.shape[1]
    order, tile = budget.run(lambda: matrix.planned("order", order_of)), Tile.of(d)

    def solve_long(some: slice) -> None:
        long = order.long.part(some)
        products = LongProducts(systems, long, tile)
        start, shared = factors[long.rows], systems.shared(long.rows)
        found = conjugate_gradients(shared, products, start, solver)
        report.write(factors, long.rows, found)

    def solve_short() -> None:
        kernels.solve_rows[(len(order.short),)](
            order.short, matrix.indptr, matrix.indices, _confidence(matrix),
            systems.row_weight, systems.col_weight, systems.gram_weight, systems.ridge,
            systems.fixed, systems.values, factors, report.changes, report.norms,
            d, systems.fixed.stride(0),
            solver.max_iterations, solver.tolerance, SpectralCG.most_stretch, SMALLEST,
            D=tile.columns, N=tile.rows, WEIGHTED=matrix.weights is not None,
            SCALED=isinstance(solver, SpectralCG), num_warps=tile.warps,
        )  # fmt: skip

    with at_work(factors.device), beside(factors.device) as long_stream:
        if len(order.short):
            solve_short()
        with long_stream:
            budget.each(order.long.edges, d, solve_long)


@contextmanager
def beside(device: torch.device) -> Iterator[AbstractContextManager[Any]]:
    """Give a stream for what is done beside the block; the device goes on when both are done."""
    if device.type != "cuda":
        yield nullcontext()
        return
    current, other = torch.cuda.current_stream(device), _stream(device)
    other.wait_stream(current)
    try:
        yield torch.cuda.stream(other)
    finally:
        current.wait_stream(other)


@cache
def _stream(device: torch.device) -> Any:
    """Return a stream that goes first: what waits for the host on its way should not wait twice."""
    kind: Any = torch.cuda.Stream
    return kind(device, priority=-1)


@dataclass(frozen=True)
class LongProducts:
    """Products with the pairs of long rows: a program per task, then a sum over those of a row."""

    systems: Systems
    long: LongRows
    tile: Tile

    def first(self, vectors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Add up all three in one pass."""
        image, right, squares = self._run(vectors, first=True)
        return right, squares, image

    def image(self, vectors: Tensor) -> Tensor:
        """Add up the images."""
        return self._run(vectors, first=False)[0]

    def _run(self, vectors: Tensor, *, first: bool) -> list[Tensor]:
        systems, tasks, tile = self.systems, self.long.tasks, self.tile
        matrix, d = systems.matrix, vectors.shape[1]
        sums = [vectors.new_empty(len(tasks), d) for _ in range(3 if first else 1)]
        kernels.pass_over_pairs[(len(tasks),)](
            tasks, matrix.indptr, matrix.indices, _confidence(matrix),
            systems.row_weight, systems.col_weight, systems.fixed, vectors.contiguous(),
            sums[0], sums[-2] if first else sums[0], sums[-1], d, systems.fixed.stride(0),
            D=tile.columns, N=tile.rows, T=TASK, WEIGHTED=matrix.weights is not None, FIRST=first,
            num_warps=tile.warps,
        )  # fmt: skip
        return [self._added(each) for each in sums]

    def _added(self, sums: Tensor) -> Tensor:
        rows, d, width = len(self.long.rows), sums.shape[1], min(self.tile.columns, 128)
        found = sums.new_empty(rows, d)
        grid = (rows, triton.cdiv(d, width))
        kernels.sum_tasks[grid](self.long.offsets, sums, found, d, D=width, num_warps=1)
        return found


def _confidence(matrix: TorchMatrix) -> Tensor:
    """The weights; anything where there are none, as the kernels do not read it."""
    return matrix.indptr if matrix.weights is None else matrix.weights
