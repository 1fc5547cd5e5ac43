"""Passes and whole solves by Triton, on CUDA."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from safecf.als.solvers import CG, SpectralCG
from safecf.backends.torch import kernels, long_kernels
from safecf.backends.torch.budget import Budget, at_work
from safecf.backends.torch.matrices import TorchMatrix
from safecf.backends.torch.reports import TorchReport
from safecf.backends.torch.solvers import SMALLEST
from safecf.backends.torch.systems import Fixed, Systems

# A block of CUDA has at most 32 warps; losses are launched with twice as many as solves.
MOST_WARPS = 16
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
        """A warp has 512 columns of a tile at most, unless there would be too many warps.

        With more columns, only few registers would be left for its rows.
        """
        columns = triton.next_power_of_2(factors)
        warps = min(MOST_WARPS, max(1, columns // 512))
        return cls(columns, max(4, 1024 // columns), warps)


def try_out(device: torch.device) -> None:
    """Compile and run a tiny kernel; raise if Triton, its C compiler or the GPU cannot do that."""
    with at_work(device):
        values = torch.ones(16, dtype=torch.bfloat16, device=device)
        found = torch.zeros(16, dtype=torch.float32, device=device)
        kernels.widen[(1,)](values, found, N=16)
        if found.tolist() != [1.0] * 16:
            raise RuntimeError("a kernel did not write what it should")


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


def write_losses(
    losses: Tensor,
    matrix: TorchMatrix,
    pair_weight: Tensor,
    factors: Tensor,
    fixed: Fixed,
    ridge: Tensor | None,
) -> None:
    """Write the losses of all rows, as `passes` does; there are no temporaries to be cut."""
    d, order = factors.shape[1], matrix.planned("order", order_of).all
    tile = Tile.of(d)
    kernels.row_losses[(len(order),)](
        order, matrix.indptr, matrix.indices, _confidence(matrix), pair_weight,
        pair_weight if ridge is None else ridge, fixed.rotated, fixed.values, factors, losses,
        d, fixed.rotated.stride(0), D=tile.columns, N=4 * tile.rows,
        WEIGHTED=matrix.weights is not None, PENALISED=ridge is not None,
        num_warps=2 * tile.warps,
    )  # fmt: skip


def solve_iteratively(
    systems: Systems, factors: Tensor, report: TorchReport, solver: CG | SpectralCG, budget: Budget
) -> None:
    """Solve all rows in place: the long ones while a kernel is at work on the others.

    The kernel needs no memory: when that runs out, only long rows that are not done are done again.
    """
    matrix, d = systems.matrix, factors.shape[1]
    order, tile = budget.run(lambda: matrix.planned("order", order_of)), Tile.of(d)
    pairs = (
        matrix.indptr, matrix.indices, _confidence(matrix),
        systems.row_weight, systems.col_weight, systems.fixed,
    )  # fmt: skip
    own = systems.gram_weight, systems.ridge, systems.values
    out = factors, report.changes, report.norms
    precision = solver.tolerance, SpectralCG.most_stretch, SMALLEST
    sizes: dict[str, Any] = {"D": tile.columns, "N": tile.rows, "num_warps": tile.warps}
    weighted, scaled = matrix.weights is not None, isinstance(solver, SpectralCG)
    stride = systems.fixed.stride(0)

    def solve_short() -> None:
        kernels.solve_rows[(len(order.short),)](
            order.short, *pairs, *own, *out, d, stride, solver.max_iterations, *precision,
            WEIGHTED=weighted, SCALED=scaled, **sizes,
        )  # fmt: skip

    def solve_long(some: slice) -> None:
        """Take all memory at the start: what comes then changes the factors, and cannot fail."""
        long = order.long.part(some)
        count, tasks = len(long.rows), len(long.tasks)
        sums = [factors.new_empty(tasks, d) for _ in range(3)]
        start, start_image, preconditioner, residuals, steps = (
            factors.new_empty(count, d) for _ in range(5)
        )
        numbers, going = factors.new_empty(count, 3), long.rows.new_empty(count)
        kept = start, start_image, preconditioner, residuals, steps, numbers, going

        def add_up(vectors: Tensor, *, first: bool) -> None:
            long_kernels.pass_over_pairs[(tasks,)](
                long.tasks, *pairs, going, vectors, *sums, d, stride,
                T=TASK, WEIGHTED=weighted, FIRST=first, **sizes,
            )  # fmt: skip

        add_up(factors, first=True)
        long_kernels.begin_rows[(count,)](
            long.rows, long.offsets, *sums, *own, *out, *kept, d, *precision, SCALED=scaled, **sizes
        )
        for _ in range(solver.max_iterations):
            if not going.cpu().numpy().any():
                break
            add_up(steps, first=False)
            long_kernels.advance_rows[(count,)](
                long.rows, long.offsets, sums[0], *own, *out, *kept, d, SMALLEST, **sizes
            )

    with beside(factors.device) as long_stream:
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


def _confidence(matrix: TorchMatrix) -> Tensor:
    """The weights; anything where there are none, as the kernels do not read it."""
    return matrix.indptr if matrix.weights is None else matrix.weights
