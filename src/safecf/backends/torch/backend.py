"""The PyTorch backend: everything that fits stays on one device."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from safecf.als.capabilities import PerRow
from safecf.als.optimizers import Moments
from safecf.als.rows import Rows
from safecf.als.solvers import Exact, Gradient, RowSolver
from safecf.backends.torch import passes
from safecf.backends.torch.blocks import BlockUpdate, Unkept
from safecf.backends.torch.budget import Budget, at_work, out_of_memory
from safecf.backends.torch.devices import choose_device, devices_here
from safecf.backends.torch.matrices import Part, TorchMatrix
from safecf.backends.torch.passes import Products
from safecf.backends.torch.reports import TorchReport, squares
from safecf.backends.torch.search import TorchIndex
from safecf.backends.torch.solvers import ROW_SOLVERS
from safecf.backends.torch.streaming import StreamedMatrix
from safecf.backends.torch.sums import TorchSums
from safecf.backends.torch.systems import Fixed, Systems, as_tensor
from safecf.caching import cached_property
from safecf.data.matrices.csr import Csr
from safecf.errors import SolveError, warn
from safecf.free_memory import fetched_bytes, training_bytes

Matrix = TorchMatrix | StreamedMatrix


class TorchBackend:
    """float32 on a device: a GPU if there is one, else the CPU.

    A batch of rows may round differently from one row alone; reruns give the same bits, if memory
    suffices for the same batches. It is bounded as docs/memory.md says; `budget` is all of the
    device's by default.
    """

    name = "torch"
    row_solvers = tuple(ROW_SOLVERS)
    same_bits = False
    has_devices = True

    def __init__(
        self, num_threads: int = 0, device: str = "auto", budget: Budget | None = None
    ) -> None:
        self.num_threads = num_threads  # of no use on a GPU; PyTorch's own on the CPU
        self.device = choose_device(device)
        self.budget = budget or Budget(self.device)

    @cached_property
    def fused(self) -> Any:
        """The module that works by Triton, or None; found out when it is first needed."""
        return _fused(self.device)

    @classmethod
    def variants(cls, num_threads: int) -> list[Self]:
        """Return the backend on every kind of device that is here; tests compare them all."""
        return [cls(num_threads, device) for device in devices_here()]

    def __repr__(self) -> str:
        return f"{self.name}-{self.device}"

    def guarded(self) -> AbstractContextManager[None]:
        """Report memory that runs out; see `Budget`."""
        return self.budget.guarded()

    def host_bytes(self, users: int, items: int, interactions: int, factors: int) -> int:
        """Return what the host draws and fetches, for a GPU; else all that training takes."""
        if self.device.type == "cuda":
            return fetched_bytes(users, items, factors)
        return training_bytes(users, items, interactions, factors, self.num_threads)

    def place_matrix(self, matrix: Csr) -> Matrix:
        """Copy the matrix to the device if it fits; else stream it from the host's memory."""
        return self.budget.hold("interactions", self.budget.run(lambda: self._place(matrix)))

    def _place(self, matrix: Csr) -> Matrix:
        arrays = matrix.indptr, matrix.indices, matrix.weights
        if self.budget.fits(sum(each.nbytes for each in arrays if each is not None)):
            return TorchMatrix.place(matrix, self.device)
        # with weights, both buffers together are as large as one temporary
        return StreamedMatrix.place(matrix, self.device, self.budget.numbers // 4)

    def place(self, factors: NDArray[Any]) -> Tensor:
        """Copy the factors to the device, in float32."""
        values = np.ascontiguousarray(factors, dtype=np.float32)
        return self._placed(lambda: torch.tensor(values, device=self.device))

    def place_vector(self, values: NDArray[Any]) -> Tensor:
        """Copy a vector to the device, as it is."""
        return self.budget.run(lambda: torch.tensor(values, device=self.device))

    def fetch(self, factors: Tensor) -> NDArray[Any]:
        """Copy factors or a vector to the host."""
        return factors.cpu().numpy()

    def copy(self, factors: Tensor) -> Tensor:
        """Return a copy on the device."""
        return self._placed(factors.clone)

    def zeros(self, rows: int, columns: int) -> Tensor:
        """Return zeros on the device."""
        return self._placed(
            lambda: torch.zeros(rows, columns, dtype=torch.float32, device=self.device)
        )

    def _placed(self, make: Callable[[], Tensor]) -> Tensor:
        return self.budget.hold("factors", self.budget.run(make))

    def gram(
        self,
        factors: Tensor,
        weight: PerRow | None = None,
        block: slice | None = None,
        solver: RowSolver | None = None,
    ) -> Tensor:
        """F' diag(weight) F, or its columns `block`, a part of the rows at a time."""
        right = factors if block is None else factors[:, block]
        shape, run = (factors.shape[1], right.shape[1]), self.budget.run
        with at_work(self.device, tf32=solver is not None and solver.is_rough):
            found = run(lambda: (factors.new_empty if len(factors) else factors.new_zeros)(shape))
            weights = None if weight is None else run(lambda: as_tensor(weight, factors))

            def add(rows: slice) -> None:
                given = right[rows] if weights is None else weights[rows, None] * right[rows]
                found.addmm_(factors[rows].T, given, beta=float(rows.start > 0))

            self._by_rows(factors, add)
        return found

    def rotate(self, factors: Tensor, others: Tensor, gram: Tensor, solver: RowSolver) -> Tensor:
        """Rotate both sides, in place; return the eigenvalues of G."""
        with at_work(self.device, tf32=solver.is_rough):
            values, basis = self.budget.run(lambda: _eigenbasis(gram))
            for side in (factors, others):
                self._turn(side, basis, side)
        return values

    def fix_rotated(self, factors: Tensor, spectrum: PerRow, solver: RowSolver) -> Fixed:
        """The factors, as bfloat16 where that is good enough."""
        with at_work(self.device):
            values = self.budget.run(lambda: as_tensor(spectrum, factors))
            rotated = self.budget.run(factors.bfloat16) if solver.is_rough else factors
        return Fixed(rotated, values, None)

    def fix(self, factors: Tensor, gram: Tensor) -> Fixed:
        """Rotate the factors into the eigenbasis of G."""
        values, basis = self.budget.run(lambda: _eigenbasis(gram))
        rotated = self.budget.run(lambda: torch.empty_like(factors))
        self._turn(factors, basis, rotated)
        return Fixed(rotated, self.budget.run(values.float), basis)

    def _turn(self, factors: Tensor, basis: Tensor | None, out: Tensor) -> None:
        """Multiply factors by a basis, if there is one; `out` may be the factors."""
        if basis is not None:
            self._by_rows(factors, lambda rows: out[rows].copy_(factors[rows] @ basis))

    def _by_rows(self, factors: Tensor, work: Callable[[slice], object]) -> None:
        self.budget.each(range(len(factors) + 1), factors.shape[1], work)

    def _begin(
        self, rows: Rows, fixed: Fixed, factors: Tensor, *, rounded: bool = True
    ) -> tuple[Systems, TorchReport]:
        """Return the systems of a half-step, and a report to be filled in."""
        return self.budget.run(
            lambda: (Systems.of(rows, fixed, rounded=rounded), TorchReport.of(factors))
        )

    def _by_parts(
        self, matrix: Matrix, factors: Tensor, work: Callable[[slice, TorchMatrix], None]
    ) -> None:
        """Work on so many rows, with their entries, that temporaries as wide as factors fit."""
        for part in matrix.parts():
            self._by_rows(factors[part.rows], partial(_within, part, work))

    def solve_rows(
        self, rows: Rows, fixed: Fixed, factors: Tensor, solver: RowSolver
    ) -> TorchReport:
        """Solve all rows in the eigenbasis of G."""
        by_kernels = self.fused is not None and not isinstance(solver, Exact)
        solve = self.fused.solve_iteratively if by_kernels else ROW_SOLVERS[solver.name]
        with at_work(self.device):
            systems, report = self._begin(rows, fixed, factors, rounded=not by_kernels)
            self._turn(factors, fixed.basis, factors)
            for some, _, matrix in rows.matrix.parts():
                part = systems.part(some, matrix)
                solve(part, factors[some], report.part(some), solver, self.budget)
            self.budget.run(lambda: report.check_solved(rows))
            self._turn(factors, None if fixed.basis is None else fixed.basis.T, factors)
        return report

    def descend(
        self,
        rows: Rows,
        fixed: Fixed,
        factors: Tensor,
        moments: Moments | None,
        solver: Gradient,
        epoch: int,
    ) -> tuple[Tensor, Moments | None, TorchReport]:
        """X - step_size * direction."""
        systems, report = self._begin(rows, fixed, factors)
        new = self.copy(factors)
        kept: list[Moments] = []  # the new ones, if the optimizer has some

        def step(some: slice, matrix: TorchMatrix) -> None:
            gradient = self._gradients(systems.part(some, matrix), fixed, factors[some])
            before = moments and moments.map(lambda moment: moment[some])
            direction, after = solver.optimizer.direction(gradient, before, epoch)
            if after is not None and not kept:
                kept.append(after.map(lambda _: torch.empty_like(factors)))
            for whole, moment in zip(kept[0] if kept else (), after or (), strict=True):
                whole[some] = moment
            report.write(new, some, factors[some] - solver.step_size * direction)

        self._by_parts(rows.matrix, factors, step)
        return new, kept[0] if kept else None, report

    def _gradients(self, systems: Systems, fixed: Fixed, factors: Tensor) -> Tensor:
        """A x - b of all rows."""
        x = _rotated(factors, fixed)
        right, _, image = Products(systems, self.budget.numbers).first(x)
        found = image.addcmul_(systems.shared(), x).sub_(right)
        return found if fixed.basis is None else found @ fixed.basis.T

    def losses(
        self,
        matrix: Matrix,
        pair_weight: PerRow,
        factors: Tensor,
        fixed: Fixed,
        ridge: PerRow | None = None,
    ) -> Tensor:
        """a/2 sum_j c_j (1 - x.y_j)^2 + 1/2 x'Gx + ridge/2 |x|^2 of all rows."""
        place = partial(as_tensor, like=factors, rounded=self.fused is None)

        def measure(rows: slice, part: TorchMatrix) -> None:
            x, penalty = _rotated(factors[rows], fixed), None if ridges is None else ridges[rows]
            given = found[rows], part, weights[rows], x, fixed, penalty
            if self.fused is None:
                passes.write_losses(*given, self.budget.numbers)
            else:
                self.fused.write_losses(*given)

        with at_work(self.device):
            found = self.budget.run(lambda: factors.new_empty(len(factors), dtype=torch.float64))
            weights = self.budget.run(lambda: place(pair_weight))
            ridges = None if ridge is None else self.budget.run(lambda: place(ridge))
            self._by_parts(matrix, factors, measure)
        return found

    def positions(self, matrix: Matrix) -> Tensor | None:
        """Sort the entries by column, and by row within each; where they would not fit, nothing."""
        if isinstance(matrix, StreamedMatrix):
            return None

        def sort() -> Tensor:
            # a sort takes up to 32 bytes per entry
            small = 8 * matrix.nnz <= self.budget.numbers
            found = torch.argsort(matrix.indices if small else matrix.indices.cpu(), stable=True)
            kind = torch.int32 if matrix.nnz < 2**31 else torch.int64
            return found.to(kind).to(self.device)

        return self.budget.run(sort)

    def scores(self, matrix: Matrix, factors: Tensor, others: Tensor) -> Tensor | Unkept:
        """x_r.y_j for every entry of the matrix; of a streamed one, when they are needed."""
        if isinstance(matrix, StreamedMatrix):
            return Unkept(others)
        return self.budget.run(
            lambda: passes.pair_scores(matrix, others, factors, self.budget.numbers)
        )

    def scored_losses(
        self,
        matrix: Matrix,
        pair_weight: PerRow,
        scores: Tensor | Unkept,
        factors: Tensor,
        gram: Tensor,
        ridge: PerRow | None = None,
    ) -> Tensor:
        """a/2 sum_j c_j (1 - s_j)^2 + 1/2 x'Gx + ridge/2 |x|^2 of all rows."""
        errors, spread, norms = self.budget.run(lambda: factors.new_empty(3, len(factors)))

        def measure(rows: slice, part: TorchMatrix) -> None:
            x = factors[rows]
            spread[rows], norms[rows] = (x @ gram * x).sum(1), squares(x)
            if isinstance(scores, Unkept):
                errors[rows] = passes.pair_errors(part, scores.others, x, self.budget.numbers)

        self._by_parts(matrix, factors, measure)
        if isinstance(matrix, TorchMatrix) and not isinstance(scores, Unkept):
            errors = self.budget.run(
                lambda: passes.scored_errors(matrix, scores, self.budget.numbers)
            )
        weights = self.budget.run(lambda: as_tensor(pair_weight, factors))
        ridges = None if ridge is None else self.budget.run(lambda: as_tensor(ridge, factors))
        return self.budget.run(
            lambda: passes.losses_of(errors, spread, norms, weights, ridges).double()
        )

    def update_block(
        self,
        rows: Rows,
        block: slice,
        others: Tensor,
        gram: Tensor,
        factors: Tensor,
        scores: Tensor | Unkept,
        positions: Tensor | None = None,
    ) -> TorchReport:
        """Solve the block of every row exactly, rows of similar length together."""
        fixed = Fixed(others[:, block], gram[block].diagonal(), None)
        systems, report = self._begin(rows, fixed, factors)
        for some, first, matrix in rows.matrix.parts():
            x = factors[some]
            where: tuple[Any, Tensor | None, int] = scores, positions, first
            if isinstance(scores, Unkept):
                where = self.scores(matrix, x, others), None, 0
            part = systems.part(some, matrix)
            BlockUpdate(part, block, gram, x, *where, report.part(some)).run(self.budget)
        self.budget.run(lambda: report.check_solved(rows))
        return report

    @property
    def loss_sums(self) -> TorchSums:
        """Sum over losses on the device."""
        return TorchSums(self.device)

    def index(self, factors: NDArray[np.float32]) -> TorchIndex:
        """The factors, to be searched again and again."""
        placed = self.place(factors)
        return self.budget.run(lambda: TorchIndex(placed, self.budget))


@cache
def _fused(device: torch.device) -> Any:
    """Return the module that works by Triton, where that is installed and works on this device."""
    if device.type != "cuda" or find_spec("triton") is None:
        return None
    try:
        module = import_module("safecf.backends.torch.fused")
        module.try_out(device)
    except Exception as problem:  # whatever a broken installation raises
        if out_of_memory(problem):
            raise
        warn(
            f"Triton does not work on {device} ({type(problem).__name__}: {problem}): plain "
            "PyTorch is used, which is slower; install a C compiler such as gcc, or the version of "
            "triton that belongs to PyTorch; a GPU below compute capability 8.0 may be too old",
            UserWarning,
        )
        return None
    return module


def _eigenbasis(gram: Tensor) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues of G, and its eigenvectors in columns; see `backends.blas`.

    float64 is faster than float32 here: NVIDIA's solver takes 5 ms for d = 512, where it takes 12.
    """
    if not math.isfinite(float(gram.sum(dtype=torch.float64))):
        raise SolveError.of_gramian()
    values, basis = torch.linalg.eigh(gram.double())
    return values.maximum(-values[0]), basis.to(gram.dtype)


def _within(part: Part, work: Callable[[slice, TorchMatrix], None], rows: slice) -> None:
    """Work on some rows of a part, which are counted from its first one."""
    first = part.rows.start
    work(slice(first + rows.start, first + rows.stop), part.matrix.rows(rows))


def _rotated(factors: Tensor, fixed: Fixed) -> Tensor:
    return factors if fixed.basis is None else factors @ fixed.basis
