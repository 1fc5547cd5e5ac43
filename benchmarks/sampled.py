"""How well a rival solves its rows, and how many CG steps they need: a sample, in float64."""

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import Floats, HalfStep, Rival
from safecf.als.loss import Vector
from safecf.als.rows import Rows
from safecf.als.solvers import CG, SpectralCG
from safecf.backends.numpy.twin import System, conjugate_gradients

Iterative = CG | SpectralCG
BATCH = 2**14


class Checked(NamedTuple):
    """|x - exact| / |exact| over the sampled rows, and the mean steps of CG.

    The mean is weighted by the rows' lengths, as the time is. None where nothing was asked.
    """

    error: float
    steps: float | None


def check(rival: Rival, sample: int = 128, solver: Iterative | None = None) -> list[Checked]:
    """Let the rival go on by one epoch, and check its users' and then its items' half-step."""
    of_users, of_items = rival.half_steps()
    problem, weights = rival.problem, rival.weights()
    b, rng = problem.loss.unobserved_weight, np.random.default_rng(0)
    gram = b * _gram(of_users.fixed, np.ones(len(of_users.fixed)))
    chosen = _choose(problem.active_users, sample, rng)
    found = [_side(problem.user_rows(weights), of_users, gram, chosen, solver)]
    gram = b * _gram(of_items.fixed, problem.counted(weights))
    chosen = _choose(problem.active_items, sample, rng)
    return [*found, _side(problem.item_rows(weights), of_items, gram, chosen, solver)]


def _choose(active: NDArray[np.bool_], sample: int, rng: np.random.Generator) -> NDArray[np.int64]:
    candidates = np.flatnonzero(active)
    return rng.choice(candidates, min(sample, candidates.size), replace=False)


def _gram(factors: Floats, weight: Vector) -> Vector:
    """F' diag(weight) F in float64, by batches of rows."""
    gram = np.zeros((factors.shape[1],) * 2)
    for first in range(0, len(factors), BATCH):
        rows = factors[first : first + BATCH].astype(np.float64)
        gram += rows.T @ (rows * weight[first : first + BATCH, None])
    return gram


def _side(
    rows: Rows,
    step: HalfStep,
    gram: Vector,
    chosen: NDArray[np.int64],
    solver: Iterative | None,
) -> Checked:
    """Solve the chosen rows exactly: ( g G + sum_j p_j y_j y_j' + ridge I ) x = sum_j p_j y_j."""
    spectrum, basis = np.linalg.eigh(gram)
    away = size = 0.0
    steps, lengths = [], []
    for row, old, new in zip(chosen, step.before[chosen], step.after[chosen], strict=True):
        columns, confidence = rows.matrix.row(int(row))
        weight = rows.row_weight[row] * rows.col_weight[columns] * confidence
        gathered = step.fixed[columns].astype(np.float64)
        system = rows.gram_weight[row] * gram + (gathered.T * weight) @ gathered
        system[np.diag_indices_from(system)] += rows.ridge[row]
        right = gathered.T @ weight
        exact = np.linalg.solve(system, right)
        away += float(np.sum((new - exact) ** 2))
        size += float(np.sum(exact**2))
        if solver is not None:
            own = System(
                np.diag(spectrum), rows.gram_weight[row], rows.ridge[row], gathered @ basis, weight
            )
            diagonal = np.diag(basis.T @ system @ basis)
            if isinstance(solver, CG):
                diagonal = np.ones_like(diagonal)
            steps.append(_steps(own, diagonal, basis.T @ old, solver))
            lengths.append(columns.size)
    mean = None if solver is None else float(np.average(steps, weights=lengths))
    return Checked(float(np.sqrt(away / size)), mean)


class _Counted(System):
    """A row's system that counts its products."""

    counts: ClassVar[list[int]] = [0]

    def multiply(self, x: Vector) -> Vector:
        """A x."""
        self.counts[0] += 1
        return super().multiply(x)


def _steps(system: System, diagonal: Vector, start: Vector, solver: Iterative) -> int:
    """Count the steps of the float64 twin's CG: one product each, after one at the start."""
    _Counted.counts[0] = 0
    conjugate_gradients(_Counted(*system), start, diagonal, solver)
    return _Counted.counts[0] - 1
