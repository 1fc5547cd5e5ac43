"""The native backend: float32 on all cores, through `safecf._core`."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from safecf import _core
from safecf.als.loss import Vector
from safecf.als.rows import Rows
from safecf.als.solvers import CG, Exact, RowSolver, SpectralCG
from safecf.backends.base import Factors, Ids, Positions, Solved
from safecf.backends.blas import eigenbasis, single_threaded_blas
from safecf.backends.memory import CACHE_LINE, aligned
from safecf.data.matrices.csr import Csr
from safecf.errors import SolveError, choose

Floats = NDArray[np.float32]

PAD = CACHE_LINE // 4
ROUGH_PAD = 32


class Fixed(NamedTuple):
    """The fixed side in the eigenbasis of G = basis diag(values) basis'.

    Rough rows are bfloat16, two to a word. Without a basis, all factors are in it already.
    """

    rotated: Floats | NDArray[np.uint32]
    values: Floats
    basis: Floats | None


class Sketch(NamedTuple):
    """Rough rows of the factors, and the norm of the longest one."""

    rough: NDArray[np.uint32]
    longest: float


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


ROW_SOLVERS: dict[str, Callable[[dict[str, Any], Any], int]] = {
    "exact": solve_exact,
    "cg": solve_cg,
    "spectral-cg": solve_spectral_cg,
}


class CpuBackend:
    """Run the verbs in C++; `isa` forces the kernels of one instruction set."""

    name = "cpu"
    dtype: np.dtype[Any] = np.dtype(np.float32)
    few_queries = _core.few_queries

    def __init__(self, num_threads: int = 0, isa: str = "auto") -> None:
        self.num_threads = num_threads
        self.isa = isa

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

    def turn(self, factors: Factors, others: Factors, gram: Factors) -> Vector:
        """Rotate both sides, in place; return the eigenvalues of G."""
        values, basis = eigenbasis(gram)
        rotation = _floats(basis)
        for side in (factors, others):
            self._rotate(side, 0, rotation, side)
        return values

    def prepare_turned(self, factors: Factors, values: Vector, *, rough: bool = False) -> Fixed:
        """The factors, rows padded to whole cache lines, or rough."""
        return Fixed(self._rough(factors) if rough else _padded(factors), _floats(values), None)

    def prepare(self, factors: Factors, gram: Factors) -> Fixed:
        """Rotate the factors into the eigenbasis of G, rows padded to whole cache lines."""
        return self._rotated(factors, 0, gram)

    def _rough(self, factors: Factors) -> NDArray[np.uint32]:
        rough = aligned(len(factors), _words(factors.shape[1]), np.uint32)
        _core.roughen(factors, rough, self.num_threads, self.isa)
        return rough

    def _rotated(self, factors: Factors, first: int, gram: Factors) -> Fixed:
        """Rotate a block of coordinates, those from `first` on, into the eigenbasis of `gram`."""
        values, basis = (_floats(part) for part in eigenbasis(gram))
        rotated = aligned(len(factors), _round_up(len(gram), PAD), np.float32)
        self._rotate(factors, first, basis, rotated)
        return Fixed(rotated, values, basis)

    def _rotate(self, factors: Factors, first: int, basis: Floats, rotated: Floats) -> None:
        _core.rotate(factors, first, basis, rotated, self.num_threads, self.isa)

    def solve_rows(self, rows: Rows, fixed: Fixed, factors: Factors, solver: RowSolver) -> Solved:
        """Solve all rows in parallel."""
        solve = choose("solver of the cpu backend", solver.name, ROW_SOLVERS)
        systems = self._systems(rows, fixed, factors) | _report(len(factors))
        return _solved(rows, systems, solve(systems, solver))

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
    ) -> Solved:
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
        return _solved(rows, systems, _core.update_block(**systems))

    def sketch(self, factors: Factors) -> Sketch | None:
        """Rough rows and the largest norm, unless they take as much room as the factors."""
        if _words(factors.shape[1]) >= factors.shape[1]:
            return None
        squares = np.einsum("ij,ij->i", factors, factors)
        return Sketch(self._rough(factors), float(np.sqrt(squares.max())))

    def topk(
        self,
        queries: Factors,
        factors: Factors,
        k: int,
        *,
        sketch: Sketch | None = None,
        exclude: Csr | None = None,
        exclude_all: Ids | None = None,
    ) -> tuple[Ids, Floats]:
        """Score in tiles, keep a buffer of hits per row; with a sketch, score it, and the hits."""
        ids = np.empty((len(queries), k), dtype=np.int32)
        scores = np.empty((len(queries), k), dtype=np.float32)
        rough, longest = sketch or (None, 0.0)
        _core.topk(
            _floats(queries),
            _floats(factors),
            rough,
            longest,
            None if exclude is None else exclude.indptr,
            None if exclude is None else exclude.indices,
            None if exclude_all is None else np.unique(exclude_all).astype(np.int32),
            ids,
            scores,
            self.num_threads,
            self.isa,
        )
        return ids, scores


def _floats(values: ArrayLike) -> Floats:
    return np.ascontiguousarray(values, dtype=np.float32)


def _round_up(count: int, step: int) -> int:
    return -(-count // step) * step


def _words(factors: int) -> int:
    """Return the length of a rough row, of which each word holds two numbers."""
    return _round_up(factors, ROUGH_PAD) // 2


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


def _solved(rows: Rows, systems: dict[str, Any], failed: int) -> Solved:
    """Return what was reported, or raise if a row failed."""
    if failed >= 0:
        raise SolveError.at(failed, rows.ridge[failed])
    return Solved(systems["change"].astype(np.float64), systems["norm"].astype(np.float64))
