"""The native backend: float32 on all cores, through `safecf._core`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from safecf import _core
from safecf.als.backend import HostReport, Ids
from safecf.als.loss import Vector
from safecf.als.population import NUMPY, LossSums, Smoothing, Sums, Totals
from safecf.als.rows import Rows
from safecf.als.solvers import CG, Exact, RowSolver, SpectralCG
from safecf.backends.blas import eigenbasis, single_threaded_blas
from safecf.backends.host import CACHE_LINE, HostBackend, aligned
from safecf.data.matrices.csr import Csr
from safecf.errors import SolveError

Floats = NDArray[np.float32]
Factors = NDArray[Any]
Positions = NDArray[np.uint32]

PAD = CACHE_LINE // 4
BFLOAT16_PAD = 32
# Spectral CG reads the fixed side as bfloat16 from this tolerance on: each coordinate is off by up
# to 2^-8, which averages out to about 1e-3 in a residual.
BFLOAT16_TOLERANCE = 2**-10


class Fixed(NamedTuple):
    """The fixed side in the eigenbasis of G = basis diag(values) basis'.

    Rows in bfloat16 have two numbers per word. Without a basis, all factors are in it already.
    """

    rotated: Floats | NDArray[np.uint32]
    values: Floats
    basis: Floats | None


class HalfStep(NamedTuple):
    """What all native solvers take: the systems, their fixed side, and where to write."""

    rows: _core.Rows
    fixed: _core.Fixed
    factors: Factors
    report: _core.Report


def solve_exact(step: HalfStep, solver: Exact, execution: _core.Execution) -> int:
    """Cholesky, primal or dual; the first row that failed, or -1."""
    return _core.solve_exact(*step, execution)


def solve_cg(step: HalfStep, solver: CG, execution: _core.Execution) -> int:
    """CG in the eigenbasis of G, which changes none of its iterates."""
    return _core.solve_cg(*step, False, solver.max_iterations, solver.tolerance, execution)


def solve_spectral_cg(step: HalfStep, solver: SpectralCG, execution: _core.Execution) -> int:
    """CG in the eigenbasis of G with the diagonal of A as the preconditioner."""
    return _core.solve_cg(*step, True, solver.max_iterations, solver.tolerance, execution)


class NativeSolver(NamedTuple):
    """A row solver, and whether it may read the fixed side as bfloat16."""

    run: Callable[[HalfStep, Any, _core.Execution], int]
    reads_bfloat16: Callable[[Any], bool] = lambda solver: False


ROW_SOLVERS: dict[str, NativeSolver] = {
    "exact": NativeSolver(solve_exact),
    "cg": NativeSolver(solve_cg),
    "spectral-cg": NativeSolver(
        solve_spectral_cg, lambda solver: solver.tolerance >= BFLOAT16_TOLERANCE
    ),
}


class CpuBackend(HostBackend):
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
        self, factors: Factors, weight: Vector | None = None, block: slice | None = None
    ) -> Factors:
        """F' diag(weight) F, or its columns `block`."""
        d = factors.shape[1]
        weights = None if weight is None else _floats(weight)
        if block is None or (block.start, block.stop) == (0, d):
            gram = np.empty((d, d), dtype=np.float32)
            _core.gram(factors, weights, gram, self.execution)
        else:
            gram = np.empty((d, block.stop - block.start), dtype=np.float32)
            _core.gram_block(factors, weights, block.start, gram, self.execution)
        return gram

    def rotate(self, factors: Factors, others: Factors, gram: Factors) -> Vector:
        """Rotate both sides, in place; return the eigenvalues of G."""
        values, basis = eigenbasis(gram)
        rotation = _floats(basis)
        for side in (factors, others):
            self._rotate(side, 0, rotation, side)
        return values

    def fix_rotated(self, factors: Factors, spectrum: Vector, solver: RowSolver) -> Fixed:
        """The factors, rows padded to whole cache lines; as bfloat16 where that is good enough."""
        low_precision = ROW_SOLVERS[solver.name].reads_bfloat16(solver)
        rows = self._bfloat16(factors) if low_precision else _padded(factors)
        return Fixed(rows, _floats(spectrum), None)

    def fix(self, factors: Factors, gram: Factors) -> Fixed:
        """Rotate the factors into the eigenbasis of G, rows padded to whole cache lines."""
        return self._rotated(factors, 0, gram)

    def _bfloat16(self, factors: Factors) -> NDArray[np.uint32]:
        words = aligned(len(factors), _round_up(factors.shape[1], BFLOAT16_PAD) // 2, np.uint32)
        _core.to_bfloat16(factors, words, self.execution)
        return words

    def _rotated(self, factors: Factors, first: int, gram: Factors) -> Fixed:
        """Rotate a block of coordinates, those from `first` on, into the eigenbasis of `gram`."""
        values, basis = (_floats(part) for part in eigenbasis(gram))
        rotated = aligned(len(factors), _round_up(len(gram), PAD), np.float32)
        self._rotate(factors, first, basis, rotated)
        return Fixed(rotated, values, basis)

    def _rotate(self, factors: Factors, first: int, basis: Floats, rotated: Floats) -> None:
        _core.rotate(factors, first, basis, rotated, self.execution)

    def solve_rows(
        self, rows: Rows, fixed: Fixed, factors: Factors, solver: RowSolver
    ) -> HostReport:
        """Solve all rows in parallel."""
        solve = ROW_SOLVERS[solver.name].run
        change, norm = np.empty((2, len(factors)), dtype=np.float32)
        step = HalfStep(_rows(rows), _core.Fixed(*fixed), factors, _core.Report(change, norm))
        return _reported(rows, solve(step, solver, self.execution), change, norm)

    def gradients(self, rows: Rows, fixed: Fixed, factors: Factors) -> Factors:
        """A x - b, all rows in parallel."""
        gradients = np.empty_like(factors)
        _core.gradients(_rows(rows), _core.Fixed(*fixed), factors, gradients, self.execution)
        return gradients

    def losses(self, matrix: Csr, pair_weight: Vector, factors: Factors, fixed: Fixed) -> Vector:
        """a/2 sum_j c_j (1 - x.y_j)^2 + 1/2 x'Gx, all rows in parallel."""
        losses = np.empty(len(factors), dtype=np.float32)
        side = _core.Fixed(*fixed)
        _core.losses(_matrix(matrix), _floats(pair_weight), side, factors, losses, self.execution)
        return losses.astype(np.float64)

    def positions(self, matrix: Csr) -> Positions:
        """Where the entries of the transposed matrix stand in the matrix, 32 bits each."""
        if matrix.nnz > np.iinfo(np.uint32).max:
            raise ValueError(
                f"{matrix.nnz} interactions are too many for the subspace solver; try another one"
            )
        found = np.empty(matrix.nnz, dtype=np.uint32)
        _core.positions(_matrix(matrix), matrix.num_columns, found)
        return found

    def scores(self, matrix: Csr, factors: Factors, others: Factors) -> Factors:
        """x_r.y_j for every entry of the matrix."""
        scores = np.empty(matrix.nnz, dtype=np.float32)
        both = _padded(factors), _padded(others)
        _core.scores(_matrix(matrix), *both, scores, self.execution)
        return scores

    def scored_losses(
        self, matrix: Csr, pair_weight: Vector, scores: Factors, factors: Factors, gram: Factors
    ) -> Vector:
        """a/2 sum_j c_j (1 - s_j)^2 + 1/2 x'Gx, all rows in parallel."""
        losses = np.empty(len(factors), dtype=np.float32)
        _core.scored_losses(
            _matrix(matrix),
            _floats(pair_weight),
            scores,
            _padded(factors),
            _floats(gram),
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
            rotated_gram = _floats(gram) @ np.asarray(fixed.basis)
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
    def loss_sums(self) -> LossSums:
        """Sum over losses in one parallel pass."""
        return NativeSums(self.execution)

    def index(self, factors: Factors) -> "CpuIndex":
        """The factors, to be searched again and again."""
        return CpuIndex(factors, self.execution)


@dataclass(frozen=True)
class NativeSums:
    """The quantile step's passes over losses; kernels that are not native take NumPy's way."""

    execution: _core.Execution

    def totals(self, losses: Vector, counts: Vector | None) -> Totals:
        """N = sum_u count_u, sum_u count_u loss_u, min and max."""
        return Totals(*_core.loss_summary(losses, counts, self.execution))

    def sums(self, losses: Vector, counts: Vector | None, smoothing: Smoothing, xi: float) -> Sums:
        """Sum K, k, the smoothed check function and |loss_u - xi|."""
        tail, kernel, bandwidth = smoothing
        if kernel.name not in _core.kernels:
            return NUMPY.sums(losses, counts, smoothing, xi)
        return Sums(
            *_core.quantile_sums(losses, counts, kernel.name, bandwidth, tail, xi, self.execution)
        )

    def weights(self, losses: Vector, smoothing: Smoothing, xi: float) -> Vector:
        """K((loss_u - xi) / h)."""
        _, kernel, bandwidth = smoothing
        if kernel.name not in _core.kernels:
            return NUMPY.weights(losses, smoothing, xi)
        weights = np.empty_like(losses)
        _core.kernel_weights(losses, kernel.name, bandwidth, xi, weights, self.execution)
        return weights


class CpuIndex:
    """Factors to search, with the native core's copies of them."""

    def __init__(self, factors: Factors, execution: _core.Execution) -> None:
        self.catalogue = _core.Catalogue(_floats(factors), execution)
        self.execution = execution

    def search(
        self,
        queries: Factors,
        k: int,
        exclude: Csr | None = None,
        exclude_all: Ids | None = None,
    ) -> tuple[Ids, Floats]:
        """Return the k best rows per query; see `Index`."""
        ids = np.empty((len(queries), k), dtype=np.int32)
        scores = np.empty((len(queries), k), dtype=np.float32)
        self.catalogue.search(
            _floats(queries),
            None if exclude is None else _matrix(exclude),
            None if exclude_all is None else np.asarray(exclude_all, dtype=np.int32),
            ids,
            scores,
            self.execution,
        )
        return ids, scores


def _floats(values: ArrayLike) -> Floats:
    return np.ascontiguousarray(values, dtype=np.float32)


def _matrix(matrix: Csr) -> _core.Matrix:
    return _core.Matrix(matrix.indptr, matrix.indices, matrix.weights)


def _rows(rows: Rows) -> _core.Rows:
    weights = rows.row_weight, rows.col_weight, rows.gram_weight, rows.ridge
    return _core.Rows(_matrix(rows.matrix), *map(_floats, weights))


def _round_up(count: int, step: int) -> int:
    return -(-count // step) * step


def _padded(factors: Factors) -> Floats:
    """Return the factors with rows padded with zeros to whole cache lines: themselves, if so."""
    rows, columns = factors.shape
    if columns % PAD == 0:
        return _floats(factors)
    padded = aligned(rows, _round_up(columns, PAD), np.float32)
    padded[:, :columns], padded[:, columns:] = factors, 0
    return padded


def _reported(rows: Rows, failed: int, change: Floats, norm: Floats) -> HostReport:
    """Return what was reported, or raise if a row failed."""
    if failed >= 0:
        raise SolveError.at(rows.first + failed, rows.ridge[failed])
    return HostReport(change.astype(np.float64), norm.astype(np.float64))
