"""The PyTorch backend: everything stays on one device."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
from safecf.als.solvers import Exact, Gradient, RowSolver, SpectralCG
from safecf.backends.torch import passes
from safecf.backends.torch.devices import choose_device, devices_here
from safecf.backends.torch.matrices import Bucket, TorchMatrix
from safecf.backends.torch.passes import NUMBERS, PlainProducts
from safecf.backends.torch.search import TorchIndex
from safecf.backends.torch.solvers import ROW_SOLVERS, cut, entries_of, gather_pairs
from safecf.backends.torch.sums import TorchSums
from safecf.backends.torch.systems import Fixed, Systems, as_tensor
from safecf.data.matrices.csr import Csr
from safecf.errors import SolveError

# As in the backend "cpu": each coordinate is off by up to 2^-8, which averages out.
BFLOAT16_TOLERANCE = 2**-10


@dataclass(frozen=True)
class TorchReport:
    """A report by row, |x_new - x_old|^2 and |x_new|^2, on the device; only sums leave it."""

    changes: Tensor
    norms: Tensor

    def change(self) -> float:
        """sum_r |x_new - x_old|^2."""
        return float(self.changes.sum(dtype=torch.float64))

    def penalty(self, ridge: PerRow) -> float:
        """sum_r ridge_r |x_new|^2."""
        norms = self.norms.double()
        return float(as_tensor(ridge, norms) @ norms)

    def largest(self) -> float:
        """max_r |x_new|^2."""
        return float(self.norms.max()) if len(self.norms) else 0.0

    def below(self, bound: float, count: PerRow) -> float:
        """sum_r count_r 1{|x_new|^2 <= bound}."""
        inside = (self.norms <= bound).double()
        return float(as_tensor(count, inside) @ inside)

    def __add__(self, other: "TorchReport") -> "TorchReport":
        return TorchReport(self.changes + other.changes, self.norms + other.norms)


class TorchBackend:
    """float32 on a device: a GPU if there is one, else the CPU.

    A batch of rows may round differently from one row alone; reruns give the same bits.
    """

    name = "torch"
    row_solvers = tuple(ROW_SOLVERS)
    same_bits = False
    has_devices = True

    def __init__(self, num_threads: int = 0, device: str = "auto") -> None:
        self.num_threads = num_threads  # of no use on a GPU; PyTorch's own on the CPU
        self.device = choose_device(device)
        self.fused = _fused(self.device)

    @classmethod
    def variants(cls, num_threads: int) -> list[Self]:
        """Return the backend on every kind of device that is here; tests compare them all."""
        return [cls(num_threads, device) for device in devices_here()]

    def __repr__(self) -> str:
        return f"{self.name}-{self.device}"

    def place_matrix(self, matrix: Csr) -> TorchMatrix:
        """Copy the matrix to the device."""
        return TorchMatrix.place(matrix, self.device)

    def place(self, factors: NDArray[Any]) -> Tensor:
        """Copy the factors to the device, in float32."""
        return torch.tensor(np.ascontiguousarray(factors, dtype=np.float32), device=self.device)

    def place_vector(self, values: NDArray[Any]) -> Tensor:
        """Copy a vector to the device, as it is."""
        return torch.tensor(values, device=self.device)

    def fetch(self, factors: Tensor) -> NDArray[Any]:
        """Copy factors or a vector to the host."""
        return factors.cpu().numpy()

    def copy(self, factors: Tensor) -> Tensor:
        """Return a copy on the device."""
        return factors.clone()

    def zeros(self, rows: int, columns: int) -> Tensor:
        """Return zeros on the device."""
        return torch.zeros(rows, columns, device=self.device)

    def gram(
        self,
        factors: Tensor,
        weight: PerRow | None = None,
        block: slice | None = None,
        solver: RowSolver | None = None,
    ) -> Tensor:
        """F' diag(weight) F, or its columns `block`, a part of the rows at a time."""
        right = factors if block is None else factors[:, block]
        found = factors.new_zeros(factors.shape[1], right.shape[1])
        size = max(1, NUMBERS // max(factors.shape[1], 1))
        weights = None if weight is None else as_tensor(weight, factors)
        with _precision(_is_rough(solver)):
            for first in range(0, len(factors), size):
                part = slice(first, first + size)
                given = right[part] if weights is None else weights[part, None] * right[part]
                found.addmm_(factors[part].T, given)
        return found

    def rotate(self, factors: Tensor, others: Tensor, gram: Tensor, solver: RowSolver) -> Tensor:
        """Rotate both sides, in place; return the eigenvalues of G."""
        values, basis = _eigenbasis(gram)
        with _precision(_is_rough(solver)):
            for side in (factors, others):
                for first in range(0, len(side), max(1, NUMBERS // len(basis))):
                    part = side[first : first + NUMBERS // len(basis)]
                    part.copy_(part @ basis)
        return values

    def fix_rotated(self, factors: Tensor, spectrum: PerRow, solver: RowSolver) -> Fixed:
        """The factors, as bfloat16 where that is good enough."""
        rotated = factors.bfloat16() if _is_rough(solver) else factors
        return Fixed(rotated, as_tensor(spectrum, factors), None)

    def fix(self, factors: Tensor, gram: Tensor) -> Fixed:
        """Rotate the factors into the eigenbasis of G."""
        values, basis = _eigenbasis(gram)
        return Fixed(factors @ basis, values.to(factors.dtype), basis)

    def solve_rows(
        self, rows: Rows, fixed: Fixed, factors: Tensor, solver: RowSolver
    ) -> TorchReport:
        """Solve all rows in the eigenbasis of G."""
        systems, x = Systems.of(rows, fixed), _rotated(factors, fixed)
        if self.fused is not None and not isinstance(solver, Exact):
            report = TorchReport(*self.fused.solve_iteratively(systems, x, solver))
        else:
            found = ROW_SOLVERS[solver.name](systems, x, solver)
            report, x = TorchReport(_squares(found - x), _squares(found)), found
        _check_solved(rows, report.norms)
        if x is not factors:
            factors.copy_(x if fixed.basis is None else x @ fixed.basis.T)
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
        gradient = self.gradients(rows, fixed, factors)
        direction, moments = solver.optimizer.direction(gradient, moments, epoch)
        step = -solver.step_size * direction
        new = factors + step
        return new, moments, TorchReport(_squares(step), _squares(new))

    def gradients(self, rows: Rows, fixed: Fixed, factors: Tensor) -> Tensor:
        """A x - b of all rows."""
        systems, x = Systems.of(rows, fixed), _rotated(factors, fixed)
        right, _, image = PlainProducts(systems).first(x)
        found = image + systems.shared * x - right
        return found if fixed.basis is None else found @ fixed.basis.T

    def losses(
        self,
        matrix: TorchMatrix,
        pair_weight: PerRow,
        factors: Tensor,
        fixed: Fixed,
        ridge: PerRow | None = None,
    ) -> Tensor:
        """a/2 sum_j c_j (1 - x.y_j)^2 + 1/2 x'Gx + ridge/2 |x|^2 of all rows."""
        x = _rotated(factors, fixed)
        errors = (self.fused or passes).pair_errors(matrix, fixed.rotated, x)
        return _losses(errors, x * x @ fixed.values, pair_weight, x, ridge)

    def positions(self, matrix: TorchMatrix) -> Tensor:
        """Sort the entries by column, and by row within each."""
        return torch.argsort(matrix.indices, stable=True)

    def scores(self, matrix: TorchMatrix, factors: Tensor, others: Tensor) -> Tensor:
        """x_r.y_j for every entry of the matrix."""
        return passes.pair_scores(matrix, others, factors)

    def scored_losses(
        self,
        matrix: TorchMatrix,
        pair_weight: PerRow,
        scores: Tensor,
        factors: Tensor,
        gram: Tensor,
        ridge: PerRow | None = None,
    ) -> Tensor:
        """a/2 sum_j c_j (1 - s_j)^2 + 1/2 x'Gx + ridge/2 |x|^2 of all rows."""
        each = (1 - scores) ** 2
        if matrix.weights is not None:
            each *= matrix.weights
        errors = torch.segment_reduce(each, "sum", offsets=matrix.indptr, initial=0)
        return _losses(errors, (factors @ gram * factors).sum(1), pair_weight, factors, ridge)

    def update_block(
        self,
        rows: Rows,
        block: slice,
        others: Tensor,
        gram: Tensor,
        factors: Tensor,
        scores: Tensor,
        positions: Tensor | None = None,
    ) -> TorchReport:
        """Solve the block of every row exactly, rows of similar length together."""
        x, size = factors[:, block], block.stop - block.start
        systems = Systems.of(rows, Fixed(others[:, block], gram[block].diagonal(), None))
        own = systems.gram_weight[:, None] * (factors @ gram) + systems.ridge[:, None] * x
        step = -x.clone()  # of rows without pairs
        for bucket in rows.matrix.by_length:
            for part in cut(bucket, max(1, NUMBERS // max(size * size, bucket.width * size))):
                self._update_part(systems, part, gram[block], own, step, scores, positions)
        report = TorchReport(_squares(step), _squares(x + step))
        _check_solved(rows, report.norms)
        factors[:, block] += step
        return report

    def _update_part(
        self,
        systems: Systems,
        part: Bucket,
        gram: Tensor,
        own: Tensor,
        step: Tensor,
        scores: Tensor,
        positions: Tensor | None,
    ) -> None:
        """Find the steps of some rows, and update their scores."""
        columns, pairs = gather_pairs(systems, part, 0, part.width)
        entry, there = entries_of(part, 0, part.width)
        place = entry if positions is None else positions[entry]
        fixed = systems.fixed[columns]
        weighted = pairs[:, :, None] * fixed
        matrix = fixed.mT @ weighted + systems.gram_weight[part.rows][:, None, None] * gram
        matrix.diagonal(dim1=1, dim2=2).add_(systems.ridge[part.rows][:, None])
        right = (weighted.mT @ (1 - scores[place])[:, :, None])[:, :, 0] - own[part.rows]
        lower, failed = torch.linalg.cholesky_ex(matrix)
        solved = torch.cholesky_solve(right[:, :, None], lower)
        solved = torch.where((failed == 0)[:, None, None], solved, torch.nan)
        empty = (pairs == 0).all(dim=1)[:, None]
        found = torch.where(empty, step[part.rows], solved[:, :, 0])
        step[part.rows] = found
        scores[place[there]] += (fixed @ found[:, :, None])[:, :, 0][there]

    @property
    def loss_sums(self) -> TorchSums:
        """Sum over losses on the device."""
        return TorchSums(self.device)

    def index(self, factors: NDArray[np.float32]) -> TorchIndex:
        """The factors, to be searched again and again."""
        return TorchIndex(self.place(factors))


def _fused(device: torch.device) -> Any:
    """Return the module that works by Triton, where there is one for this device."""
    if device.type == "cuda" and find_spec("triton") is not None:
        return import_module("safecf.backends.torch.fused")
    return None


def _eigenbasis(gram: Tensor) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues of G, and its eigenvectors in columns; see `backends.blas`.

    float64 is faster than float32 here: NVIDIA's solver takes 5 ms for d = 512, where it takes 12.
    """
    if not bool(gram.isfinite().all()):
        raise SolveError.of_gramian()
    values, basis = torch.linalg.eigh(gram.double())
    return values.maximum(-values[0]), basis.to(gram.dtype)


def _is_rough(solver: RowSolver | None) -> bool:
    """Whether the solver's tolerance hides what 8 bits of the fixed side's factors leave out."""
    return isinstance(solver, SpectralCG) and solver.tolerance >= BFLOAT16_TOLERANCE


@contextmanager
def _precision(rough: bool) -> Iterator[None]:
    """Multiply in TF32 while the context lasts, if `rough`, else in float32."""
    options = torch.backends.cuda.matmul
    before, options.allow_tf32 = options.allow_tf32, rough
    try:
        yield
    finally:
        options.allow_tf32 = before


def _rotated(factors: Tensor, fixed: Fixed) -> Tensor:
    return factors if fixed.basis is None else factors @ fixed.basis


def _losses(
    errors: Tensor, spread: Tensor, pair_weight: PerRow, factors: Tensor, ridge: PerRow | None
) -> Tensor:
    """Return the losses, given sum_j c_j (1 - x.y_j)^2 and x'Gx."""
    found = as_tensor(pair_weight, errors) / 2 * errors + spread / 2
    if ridge is not None:
        found = found + as_tensor(ridge, errors) / 2 * _squares(factors)
    return found.double()


def _check_solved(rows: Rows, norms: Tensor) -> None:
    """Raise if a row could not be solved."""
    solved = norms.isfinite()
    if not bool(solved.all()):
        first = int((~solved).to(torch.int8).argmax())
        raise SolveError.at(rows.first + first, float(rows.ridge[first]))


def _squares(rows: Tensor) -> Tensor:
    """|x_r|^2."""
    return (rows * rows).sum(dim=1)
