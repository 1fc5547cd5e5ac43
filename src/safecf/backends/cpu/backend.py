"""The native backend: float32 on all cores, through `safecf._core`."""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from safecf import _core
from safecf.als.backend import HostReport
from safecf.als.loss import Vector
from safecf.als.rows import Rows
from safecf.als.solvers import CG, Exact, RowSolver, SpectralCG
from safecf.backends.blas import eigenbasis, single_threaded_blas
from safecf.backends.cpu.search import CpuIndex
from safecf.backends.cpu.sums import NativeSums
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

    Words hold two bfloat16 numbers each. Without a basis, all factors are in it already.
    """

    rotated: Floats | NDArray[np.uint32]
    values: Floats
    basis: Floats | None


def solve_exact(systems: dict[str, Any], solver: Exact) -> int:
    """Cholesky, primal or dual; the first row that failed, or -1."""
    return _core.solve_exact(**systems)


def solve_cg(systems: dict[str, Any], solver: CG) -> int:
    """CG in the eigenbasis of G, which changes none of its iterates."""
    return _conjugate_gradients(systems, solver, precondition=False)


def solve_spectral_cg(systems: dict[str, Any], solver: SpectralCG) -> int:
    """CG in the eigenbasis of G with the diagonal of A as the preconditioner."""
    return _conjugate_gradients(systems, solver, precondition=True)


def _conjugate_gradients(
    systems: dict[str, Any], solver: CG | SpectralCG, *, precondition: bool
) -> int:
    return _core.solve_cg(
        **systems,
        precondition=precondition,
        max_iterations=solver.max_iterations,
        tolerance=solver.tolerance,
    )


class NativeSolver(NamedTuple):
    """A row solver, and whether it may read the fixed side as bfloat16."""

    run: Callable[[dict[str, Any], Any], int]
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
            _core.gram(factors, weights, gram, self.num_threads, self.isa)
        else:
            gram = np.empty((d, block.stop - block.start), dtype=np.float32)
            _core.gram_block(factors, weights, block.start, gram, self.num_threads, self.isa)
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
        words = aligned(len(factors), _words(factors.shape[1]), np.uint32)
        _core.roughen(factors, words, self.num_threads, self.isa)
        return words

    def _rotated(self, factors: Factors, first: int, gram: Factors) -> Fixed:
        """Rotate a block of coordinates, those from `first` on, into the eigenbasis of `gram`."""
        values, basis = (_floats(part) for part in eigenbasis(gram))
        rotated = aligned(len(factors), _round_up(len(gram), PAD), np.float32)
        self._rotate(factors, first, basis, rotated)
        return Fixed(rotated, values, basis)

    def _rotate(self, factors: Factors, first: int, basis: Floats, rotated: Floats) -> None:
        _core.rotate(factors, first, basis, rotated, self.num_threads, self.isa)

    def solve_rows(
        self, rows: Rows, fixed: Fixed, factors: Factors, solver: RowSolver
    ) -> HostReport:
        """Solve all rows in parallel."""
        systems = self._systems(rows, fixed, factors) | _report(len(factors))
        return _reported(rows, systems, ROW_SOLVERS[solver.name].run(systems, solver))

    def _systems(self, rows: Rows, fixed: Fixed, factors: Factors) -> dict[str, Any]:
        """Return the arguments that all verbs over rows share."""
        return {
            "indptr": rows.matrix.indptr,
            "indices": rows.matrix.indices,
            "weights": rows.matrix.weights,
            "row_weight": _floats(rows.row_weight),
            "col_weight": _floats(rows.col_weight),
            "gram_weight": _floats(rows.gram_weight),
            "ridge": _floats(rows.ridge),
            **fixed._asdict(),
            "factors": factors,
            "threads": self.num_threads,
            "isa": self.isa,
        }

    def gradients(self, rows: Rows, fixed: Fixed, factors: Factors) -> Factors:
        """A x - b, all rows in parallel."""
        gradients = np.empty_like(factors)
        _core.gradients(**self._systems(rows, fixed, factors), gradients=gradients)
        return gradients

    def losses(self, matrix: Csr, pair_weight: Vector, factors: Factors, fixed: Fixed) -> Vector:
        """a/2 sum_j c_j (1 - x.y_j)^2 + 1/2 x'Gx, all rows in parallel."""
        losses = np.empty(len(factors), dtype=np.float32)
        _core.losses(
            matrix.indptr,
            matrix.indices,
            matrix.weights,
            _floats(pair_weight),
            *fixed,
            factors,
            losses,
            self.num_threads,
            self.isa,
        )
        return losses.astype(np.float64)

    def positions(self, matrix: Csr) -> Positions:
        """Where the entries of the transposed matrix stand in the matrix, 32 bits each."""
        if matrix.nnz > np.iinfo(np.uint32).max:
            raise ValueError(
                f"{matrix.nnz} interactions are too many for the subspace solver; try another one"
            )
        found = np.empty(matrix.nnz, dtype=np.uint32)
        _core.positions(matrix.indptr, matrix.indices, matrix.num_columns, found)
        return found

    def scores(self, matrix: Csr, factors: Factors, others: Factors) -> Factors:
        """x_r.y_j for every entry of the matrix."""
        scores = np.empty(matrix.nnz, dtype=np.float32)
        both = _padded(factors), _padded(others)
        _core.scores(matrix.indptr, matrix.indices, *both, scores, self.num_threads, self.isa)
        return scores

    def scored_losses(
        self, matrix: Csr, pair_weight: Vector, scores: Factors, factors: Factors, gram: Factors
    ) -> Vector:
        """a/2 sum_j c_j (1 - s_j)^2 + 1/2 x'Gx, all rows in parallel."""
        losses = np.empty(len(factors), dtype=np.float32)
        _core.scored_losses(
            matrix.indptr,
            matrix.indices,
            matrix.weights,
            _floats(pair_weight),
            scores,
            _padded(factors),
            _floats(gram),
            losses,
            self.num_threads,
            self.isa,
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
        systems = self._systems(rows, fixed, factors) | _report(len(factors))
        systems |= {
            "gram": rotated_gram,
            "first": block.start,
            "scores": scores,
            "positions": positions,
        }
        return _reported(rows, systems, _core.update_block(**systems))

    @property
    def loss_sums(self) -> NativeSums:
        """Sum over losses in one parallel pass."""
        return NativeSums(self.num_threads, self.isa)

    def index(self, factors: NDArray[np.float32]) -> CpuIndex:
        """Prepare the factors for searches by one or by many queries."""
        return CpuIndex(factors, self.num_threads, self.isa)


def _floats(values: ArrayLike) -> Floats:
    return np.ascontiguousarray(values, dtype=np.float32)


def _round_up(count: int, step: int) -> int:
    return -(-count // step) * step


def _words(factors: int) -> int:
    """Return the length of a bfloat16 row, of which each word holds two numbers."""
    return _round_up(factors, BFLOAT16_PAD) // 2


def _padded(factors: Factors) -> Floats:
    """Return the factors with rows padded with zeros to whole cache lines: themselves, if so."""
    rows, columns = factors.shape
    if columns % PAD == 0:
        return _floats(factors)
    padded = aligned(rows, _round_up(columns, PAD), np.float32)
    padded[:, :columns], padded[:, columns:] = factors, 0
    return padded


def _report(count: int) -> dict[str, Floats]:
    """Return the room for what a solver reports of each row."""
    change, norm = np.empty((2, count), dtype=np.float32)
    return {"change": change, "norm": norm}


def _reported(rows: Rows, systems: dict[str, Any], failed: int) -> HostReport:
    """Return what was reported, or raise if a row failed."""
    if failed >= 0:
        raise SolveError.at(rows.first + failed, rows.ridge[failed])
    return HostReport(systems["change"].astype(np.float64), systems["norm"].astype(np.float64))
