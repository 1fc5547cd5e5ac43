"""The native backend: float32 on all cores, through `safecf._core`."""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from safecf import _core
from safecf.als.capabilities import HostReport
from safecf.als.loss import Vector
from safecf.als.rows import Rows
from safecf.als.solvers import RowSolver
from safecf.backends.blas import eigenbasis, single_threaded_blas
from safecf.backends.cpu.arrays import Floats, as_floats, as_matrix
from safecf.backends.cpu.search import CpuIndex
from safecf.backends.cpu.sums import NativeSums
from safecf.backends.host import CACHE_LINE, HostBackend, HostGradients, aligned
from safecf.data.matrices.csr import Csr
from safecf.errors import SolveError

Factors = NDArray[Any]
Positions = NDArray[np.uint32]

PAD = CACHE_LINE // 4
BFLOAT16_PAD = 32


class Fixed(NamedTuple):
    """The fixed side in the eigenbasis of G = basis diag(values) basis'.

    Rows in bfloat16 have two numbers per word. Without a basis, all factors are in it already.
    """

    rotated: Floats | NDArray[np.uint32]
    values: Floats
    basis: Floats | None


# The options of the native row solvers: the most iterations, and the tolerance.
ROW_SOLVERS: dict[str, Callable[[Any], tuple[int, float]]] = {
    "exact": lambda solver: (0, 0.0),
    "cg": lambda solver: (solver.max_iterations, solver.tolerance),
    "spectral-cg": lambda solver: (solver.max_iterations, solver.tolerance),
}


class CpuBackend(HostGradients, HostBackend):
    """Run the verbs in C++; `isa` forces the kernels of one instruction set."""

    name = "cpu"
    dtype: np.dtype[Any] = np.dtype(np.float32)
    row_solvers = tuple(ROW_SOLVERS)

    def __init__(self, num_threads: int = 0, isa: str = "auto") -> None:
        super().__init__(num_threads)
        self.isa = isa
        self.execution = _core.Execution(num_threads, isa)

    @classmethod
    def variants(cls, num_threads: int) -> list[Self]:
        """Return one per instruction set that the machine has."""
        return [cls(num_threads, isa) for isa in _core.isas()]

    def __repr__(self) -> str:
        return f"{self.name}-{self.isa}"

    def gram(
        self,
        factors: Factors,
        weight: Vector | None = None,
        block: slice | None = None,
        solver: RowSolver | None = None,
    ) -> Factors:
        """F' diag(weight) F, or its columns `block`."""
        d = factors.shape[1]
        weights = None if weight is None else as_floats(weight)
        if block is None or (block.start, block.stop) == (0, d):
            gram = np.empty((d, d), dtype=np.float32)
            rough = solver is not None and solver.is_rough
            _core.gram(factors, weights, gram, self.execution, rough)
        else:
            gram = np.empty((d, block.stop - block.start), dtype=np.float32)
            _core.gram_block(factors, weights, block.start, gram, self.execution)
        return gram

    def rotate(self, factors: Factors, others: Factors, gram: Factors, solver: RowSolver) -> Vector:
        """Rotate both sides, in place; return the eigenvalues of G."""
        values, basis = eigenbasis(gram, self.execution)
        rotation = as_floats(basis)
        for side in (factors, others):
            _core.rotate(side, 0, rotation, side, self.execution, solver.is_rough)
        return values

    def fix_rotated(self, factors: Factors, spectrum: Vector, solver: RowSolver) -> Fixed:
        """The factors, rows padded to whole cache lines; as bfloat16 where that is good enough."""
        rows = self._bfloat16(factors) if solver.is_rough else _padded(factors)
        return Fixed(rows, as_floats(spectrum), None)

    def fix(self, factors: Factors, gram: Factors) -> Fixed:
        """Rotate the factors into the eigenbasis of G, rows padded to whole cache lines."""
        return self._rotated(factors, 0, gram)

    def _bfloat16(self, factors: Factors) -> NDArray[np.uint32]:
        words = aligned(len(factors), _round_up(factors.shape[1], BFLOAT16_PAD) // 2, np.uint32)
        _core.to_bfloat16(factors, words, self.execution)
        return words

    def _rotated(self, factors: Factors, first: int, gram: Factors) -> Fixed:
        """Rotate a block of coordinates, those from `first` on, into the eigenbasis of `gram`."""
        values, basis = (as_floats(part) for part in eigenbasis(gram, self.execution))
        rotated = aligned(len(factors), _round_up(len(gram), PAD), np.float32)
        _core.rotate(factors, first, basis, rotated, self.execution)
        return Fixed(rotated, values, basis)

    def solve_rows(
        self, rows: Rows, fixed: Fixed, factors: Factors, solver: RowSolver
    ) -> HostReport:
        """Solve all rows in parallel."""
        change, norm = np.empty((2, len(factors)), dtype=np.float32)
        failed = _core.solve_rows(
            _rows(rows),
            _core.Fixed(*fixed),
            factors,
            _core.Report(change, norm),
            solver.name,
            *ROW_SOLVERS[solver.name](solver),
            self.execution,
        )
        return _reported(rows, failed, change, norm)

    def gradients(self, rows: Rows, fixed: Fixed, factors: Factors) -> Factors:
        """A x - b, all rows in parallel."""
        gradients = np.empty_like(factors)
        _core.gradients(_rows(rows), _core.Fixed(*fixed), factors, gradients, self.execution)
        return gradients

    def losses(
        self,
        matrix: Csr,
        pair_weight: Vector,
        factors: Factors,
        fixed: Fixed,
        ridge: Vector | None = None,
    ) -> Vector:
        """a/2 sum_j c_j (1 - x.y_j)^2 + 1/2 x'Gx + ridge/2 |x|^2, all rows in parallel."""
        losses = np.empty(len(factors), dtype=np.float32)
        _core.losses(
            as_matrix(matrix),
            as_floats(pair_weight),
            None if ridge is None else as_floats(ridge),
            _core.Fixed(*fixed),
            factors,
            losses,
            self.execution,
        )
        return losses.astype(np.float64)

    def positions(self, matrix: Csr) -> Positions:
        """Where the entries of the transposed matrix stand in the matrix, 32 bits each."""
        if matrix.nnz > np.iinfo(np.uint32).max:
            raise ValueError(
                f"{matrix.nnz} interactions are too many for the subspace solver; try another one"
            )
        found = np.empty(matrix.nnz, dtype=np.uint32)
        _core.positions(as_matrix(matrix), matrix.num_columns, found)
        return found

    def scores(self, matrix: Csr, factors: Factors, others: Factors) -> Factors:
        """x_r.y_j for every entry of the matrix."""
        scores = np.empty(matrix.nnz, dtype=np.float32)
        both = _padded(factors), _padded(others)
        _core.scores(as_matrix(matrix), *both, scores, self.execution)
        return scores

    def scored_losses(
        self,
        matrix: Csr,
        pair_weight: Vector,
        scores: Factors,
        factors: Factors,
        gram: Factors,
        ridge: Vector | None = None,
    ) -> Vector:
        """a/2 sum_j c_j (1 - s_j)^2 + 1/2 x'Gx + ridge/2 |x|^2, all rows in parallel."""
        losses = np.empty(len(factors), dtype=np.float32)
        _core.scored_losses(
            as_matrix(matrix),
            as_floats(pair_weight),
            None if ridge is None else as_floats(ridge),
            scores,
            _padded(factors),
            as_floats(gram),
            losses,
            self.execution,
        )
        return losses.astype(np.float64)

    def update_block(
        self,
        rows: Rows,
        block: slice,
        others: Factors,
        gram: Factors,
        factors: Factors,
        scores: Factors,
        positions: Positions | None = None,
    ) -> HostReport:
        """Solve the block in the eigenbasis of G's diagonal block, all rows in parallel."""
        fixed = self._rotated(others, block.start, gram[block])
        with single_threaded_blas():
            rotated_gram = as_floats(gram) @ np.asarray(fixed.basis)
        change, norm = np.empty((2, len(factors)), dtype=np.float32)
        failed = _core.update_block(
            _rows(rows),
            _core.Fixed(*fixed),
            rotated_gram,
            block.start,
            factors,
            _core.Report(change, norm),
            scores,
            positions,
            self.execution,
        )
        return _reported(rows, failed, change, norm)

    @property
    def loss_sums(self) -> NativeSums:
        """Sum over losses in one parallel pass."""
        return NativeSums(self.execution)

    def index(self, factors: Factors) -> CpuIndex:
        """The factors, to be searched again and again."""
        return CpuIndex(factors, self.execution)


def _rows(rows: Rows) -> _core.Rows:
    weights = rows.row_weight, rows.col_weight, rows.gram_weight, rows.ridge
    return _core.Rows(as_matrix(rows.matrix), *map(as_floats, weights))


def _round_up(count: int, step: int) -> int:
    return -(-count // step) * step


def _padded(factors: Factors) -> Floats:
    """Return the factors with rows padded with zeros to whole cache lines: themselves, if so."""
    rows, columns = factors.shape
    if columns % PAD == 0:
        return as_floats(factors)
    padded = aligned(rows, _round_up(columns, PAD), np.float32)
    padded[:, :columns], padded[:, columns:] = factors, 0
    return padded


def _reported(rows: Rows, failed: int, change: Floats, norm: Floats) -> HostReport:
    """Return what was reported, or raise if a row failed."""
    if failed >= 0:
        raise SolveError.at(rows.first + failed, rows.ridge[failed])
    return HostReport(change.astype(np.float64), norm.astype(np.float64))
