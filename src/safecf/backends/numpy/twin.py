"""The readable twin: every verb as its formula, in float64, one row at a time.

It specifies what the other backends compute and is not meant to be fast.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safecf.als.capabilities import HostReport, Ids
from safecf.als.loss import Vector
from safecf.als.population import NUMPY, LossSums
from safecf.als.rows import Rows
from safecf.als.solvers import CG, Exact, RowSolver, SpectralCG
from safecf.backends.blas import eigenbasis, single_threaded_blas
from safecf.backends.host import HostBackend, HostGradients
from safecf.data.matrices.csr import Csr
from safecf.errors import SolveError

Matrix = NDArray[np.float64]
Factors = NDArray[Any]
Positions = NDArray[np.int64]
Fixed = tuple[Factors, Factors]


class System(NamedTuple):
    """One row: ( g G + Y' diag(p) Y + ridge I ) x = Y' p."""

    gram: Matrix
    gram_weight: float
    ridge: float
    fixed: Matrix
    pairs: Vector

    def multiply(self, x: Vector) -> Vector:
        """A x, without forming A."""
        shared = self.gram_weight * (self.gram @ x) + self.ridge * x
        return np.asarray(shared + self.fixed.T @ (self.pairs * (self.fixed @ x)))

    def right_hand_side(self) -> Vector:
        """Y' p."""
        return np.asarray(self.fixed.T @ self.pairs)


def solve_dense(system: System, right: Vector) -> Vector:
    """A^-1 right, by Cholesky."""
    gram, gram_weight, ridge, fixed, pairs = system
    shared = gram_weight * gram + ridge * np.eye(len(right))
    lower = np.linalg.cholesky(shared + fixed.T @ (pairs[:, None] * fixed))
    return np.asarray(np.linalg.solve(lower.T, np.linalg.solve(lower, right)))


def solve_exact(system: System, start: Vector, solver: Exact) -> Vector:
    """X = A^-1 b."""
    return solve_dense(system, system.right_hand_side())


def conjugate_gradients(
    system: System, start: Vector, preconditioner: Vector, solver: CG | SpectralCG
) -> Vector:
    """Minimise 1/2 x'Ax - b'x along A-conjugate directions, from `start`.

    Spectral CG takes the start for one of them.
    """
    x, b = start.copy(), system.right_hand_side()
    start_image = system.multiply(x)
    residual, known = b - start_image, 0.0
    enough = solver.tolerance * np.linalg.norm(b)
    if np.linalg.norm(residual) <= enough:
        return x
    start_energy = float(start @ start_image)
    if isinstance(solver, SpectralCG) and start_energy > np.finfo(np.float64).tiny:
        stretch = b @ start / start_energy
        if abs(stretch) <= solver.most_stretch:
            x, residual = stretch * start, b - stretch * start_image
            known = 1 / start_energy
    scaled = residual / preconditioner
    step = scaled - known * (start_image @ scaled) * start
    energy = residual @ scaled
    for _ in range(solver.max_iterations):
        if np.linalg.norm(residual) <= enough:
            break
        image = system.multiply(step)
        slope, curvature = residual @ step, step @ image
        if slope <= 0 or curvature == 0:  # nothing but rounding is left
            break
        length = slope / curvature
        x += length * step
        residual -= length * image
        scaled = residual / preconditioner
        energy, previous = residual @ scaled, energy
        step = scaled - known * (start_image @ scaled) * start + energy / previous * step
    return x


def solve_cg(system: System, start: Vector, solver: CG) -> Vector:
    """Plain CG: the preconditioner is the identity."""
    return conjugate_gradients(system, start, np.ones_like(start), solver)


def solve_spectral_cg(system: System, start: Vector, solver: SpectralCG) -> Vector:
    """CG in the eigenbasis Q of G, preconditioned with the diagonal of Q'AQ."""
    values, basis = np.linalg.eigh(system.gram)
    rotated = system._replace(gram=np.diag(values), fixed=system.fixed @ basis)
    shared = system.gram_weight * values + system.ridge
    diagonal = shared + rotated.pairs @ rotated.fixed**2
    return np.asarray(basis @ conjugate_gradients(rotated, basis.T @ start, diagonal, solver))


ROW_SOLVERS: dict[str, Callable[[System, Vector, Any], Vector]] = {
    "exact": solve_exact,
    "cg": solve_cg,
    "spectral-cg": solve_spectral_cg,
}


class NumpyBackend(HostGradients, HostBackend):
    """float64, single-threaded, whatever the number of threads."""

    name = "numpy"
    dtype: np.dtype[Any] = np.dtype(np.float64)
    row_solvers = tuple(ROW_SOLVERS)

    def gram(
        self,
        factors: Factors,
        weight: Vector | None = None,
        block: slice | None = None,
        solver: RowSolver | None = None,
    ) -> Factors:
        """F' diag(weight) F, or its columns `block`."""
        right = factors if block is None else factors[:, block]
        with single_threaded_blas():
            weighted = right if weight is None else weight[:, None] * right
            return np.asarray(factors.T @ weighted, dtype=self.dtype)

    def rotate(self, factors: Factors, others: Factors, gram: Factors, solver: RowSolver) -> Vector:
        """G = Q diag(values) Q' = diag(values) once both sides are multiplied by Q."""
        values, basis = eigenbasis(gram)
        with single_threaded_blas():
            factors[:], others[:] = factors @ basis, others @ basis
        return values

    def fix_rotated(self, factors: Factors, spectrum: Vector, solver: RowSolver) -> Fixed:
        """G = diag(spectrum), in full precision for any solver."""
        return self.fix(factors, np.diag(spectrum))

    def fix(self, factors: Factors, gram: Factors) -> Fixed:
        """Nothing to prepare: the factors and G as they are."""
        return np.asarray(factors, dtype=self.dtype), np.asarray(gram, dtype=self.dtype)

    def solve_rows(
        self, rows: Rows, fixed: Fixed, factors: Factors, solver: RowSolver
    ) -> HostReport:
        """Solve row by row."""
        solve, (others, gram) = ROW_SOLVERS[solver.name], fixed
        change, norm = np.zeros(len(factors)), np.zeros(len(factors))
        with single_threaded_blas():
            for row, old in enumerate(np.asarray(factors, dtype=self.dtype)):
                system = _system(rows, row, others, gram)
                new = np.zeros_like(old)
                if system.right_hand_side().any():
                    new = _solved(rows, row, solve, system, old, solver)
                change[row], norm[row] = np.sum((new - old) ** 2), np.sum(new**2)
                factors[row] = new
        return HostReport(change, norm)

    def gradients(self, rows: Rows, fixed: Fixed, factors: Factors) -> Factors:
        """A x - b, row by row."""
        gradients = np.empty(factors.shape, dtype=self.dtype)
        with single_threaded_blas():
            for row, x in enumerate(np.asarray(factors, dtype=self.dtype)):
                system = _system(rows, row, *fixed)
                gradients[row] = system.multiply(x) - system.right_hand_side()
        return gradients

    def losses(
        self,
        matrix: Csr,
        pair_weight: Vector,
        factors: Factors,
        fixed: Fixed,
        ridge: Vector | None = None,
    ) -> Vector:
        """a/2 sum_j c_j (1 - x.y_j)^2 + 1/2 x'Gx + ridge/2 |x|^2, row by row."""
        others, gram = fixed
        losses = np.zeros(len(factors))
        with single_threaded_blas():
            for row, x in enumerate(np.asarray(factors, dtype=self.dtype)):
                columns, confidence = matrix.row(row)
                error = confidence @ (1 - others[columns] @ x) ** 2
                losses[row] = pair_weight[row] / 2 * error + x @ gram @ x / 2
        return losses + _penalties(factors, ridge)

    def positions(self, matrix: Csr) -> Positions:
        """Sort the entries by column, and by row within each."""
        return np.argsort(matrix.indices, kind="stable")

    def scores(self, matrix: Csr, factors: Factors, others: Factors) -> Factors:
        """x_r.y_j, row by row."""
        scores = np.empty(matrix.nnz, dtype=self.dtype)
        with single_threaded_blas():
            for row, x in enumerate(factors):
                scores[matrix.indptr[row] : matrix.indptr[row + 1]] = others[matrix.row(row)[0]] @ x
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
        """a/2 sum_j c_j (1 - s_j)^2 + 1/2 x'Gx + ridge/2 |x|^2, row by row."""
        losses = np.zeros(len(factors))
        with single_threaded_blas():
            for row, x in enumerate(factors):
                own = scores[matrix.indptr[row] : matrix.indptr[row + 1]]
                error = matrix.row(row)[1] @ (1 - own) ** 2
                losses[row] = pair_weight[row] / 2 * error + x @ gram @ x / 2
        return losses + _penalties(factors, ridge)

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
        """Solve the block of each row exactly."""
        change, norm = np.zeros(len(factors)), np.zeros(len(factors))
        places = np.arange(rows.matrix.nnz) if positions is None else positions
        with single_threaded_blas():
            for row, x in enumerate(factors):
                system = _system(rows, row, others[:, block], gram[block])
                place = places[rows.matrix.indptr[row] : rows.matrix.indptr[row + 1]]
                step = -x[block]
                if system.pairs.any():
                    shared = system.gram_weight * (gram.T @ x) + system.ridge * x[block]
                    right = system.fixed.T @ (system.pairs * (1 - scores[place])) - shared
                    step = _solved(rows, row, solve_dense, system, right)
                scores[place] += system.fixed @ step
                x[block] += step
                change[row], norm[row] = np.sum(step**2), np.sum(x[block] ** 2)
        return HostReport(change, norm)

    @property
    def loss_sums(self) -> LossSums:
        """The passes as their formulas."""
        return NUMPY

    def index(self, factors: NDArray[np.float32]) -> "NumpyIndex":
        """Nothing to prepare."""
        return NumpyIndex(factors)


class NumpyIndex:
    """The factors as they are."""

    def __init__(self, factors: NDArray[np.float32]) -> None:
        self._factors = factors

    def search(
        self,
        queries: Factors,
        k: int,
        exclude: Csr | None = None,
        exclude_all: Ids | None = None,
    ) -> tuple[Ids, NDArray[np.float32]]:
        """Sort all scores."""
        ids = np.full((len(queries), k), -1, dtype=np.int32)
        best = np.full((len(queries), k), -np.finfo(np.float32).max, dtype=np.float32)
        for row, (order, scores) in enumerate(self._ranked(queries, exclude, exclude_all)):
            first = order[:k]
            ids[row, : len(first)], best[row, : len(first)] = first, scores[first]
        return ids, best

    def ranks(
        self,
        queries: Factors,
        targets: Csr,
        exclude: Csr | None = None,
        exclude_all: Ids | None = None,
    ) -> Ids:
        """Sort all scores, and find the targets."""
        ranks = np.zeros(targets.nnz, dtype=np.int32)
        for row, (order, _) in enumerate(self._ranked(queries, exclude, exclude_all)):
            place = np.zeros(len(self._factors), dtype=np.int32)
            place[order] = 1 + np.arange(len(order))
            ranks[targets.indptr[row] : targets.indptr[row + 1]] = place[targets.row(row)[0]]
        return ranks

    def _ranked(
        self, queries: Factors, exclude: Csr | None, exclude_all: Ids | None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Yield, per query, the rows that are left, best first, and the scores of all rows."""
        for row, query in enumerate(queries):
            keep = np.ones(len(self._factors), dtype=bool)
            if exclude is not None:
                keep[exclude.row(row)[0]] = False
            if exclude_all is not None:
                keep[exclude_all] = False
            with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
                scores = np.asarray(self._factors @ query, dtype=np.float32)
            candidates = np.flatnonzero(keep & (scores > -np.inf))
            yield candidates[np.argsort(-scores[candidates], kind="stable")], scores


def _system(rows: Rows, row: int, others: Matrix, gram: Matrix) -> System:
    columns, confidence = rows.matrix.row(row)
    pairs = rows.row_weight[row] * rows.col_weight[columns] * confidence
    return System(gram, rows.gram_weight[row], rows.ridge[row], others[columns], pairs)


def _solved(rows: Rows, row: int, solve: Callable[..., Vector], *arguments: Any) -> Vector:
    """Return the row's solution, or raise if it has none."""
    try:
        found = solve(*arguments)
    except np.linalg.LinAlgError:
        found = np.array([np.nan])
    if not np.isfinite(found).all():
        raise SolveError.at(rows.first + row, rows.ridge[row])
    return found


def _penalties(factors: Factors, ridge: Vector | None) -> Vector | float:
    """ridge_r/2 |x_r|^2."""
    return (
        0.0 if ridge is None else ridge / 2 * np.sum(np.square(factors, dtype=np.float64), axis=1)
    )
