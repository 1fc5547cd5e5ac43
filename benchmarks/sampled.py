"""How well a rival solves its rows, and how many CG steps they need: a sample, in float64."""

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import Floats, HalfStep, Rival
from safecf.als.loss import Vector
from safecf.als.rows import Rows
from safecf.als.solvers import CG, SpectralCG
from safecf.backends.numpy.twin import System, conjugate_gradients, solve_dense

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
    problem, weights, rng = rival.problem, rival.weights(), np.random.default_rng(0)
    users, items = problem.user_rows(weights), problem.item_rows(weights)
    found = []
    for step, rows, active, weight in (
        (of_users, users, problem.active_users, np.ones(len(of_users.fixed))),
        (of_items, items, problem.active_items, problem.counted(weights)),
    ):
        candidates = np.flatnonzero(active)
        chosen = rng.choice(candidates, min(sample, candidates.size), replace=False)
        gram = problem.loss.unobserved_weight * _gram(step.fixed, weight)
        found.append(_side(rows, step, gram, chosen, solver))
    return found


def _gram(factors: Floats, weight: Vector) -> Vector:
    """F' diag(weight) F in float64, by batches of rows."""
    gram = np.zeros((factors.shape[1],) * 2)
    for first in range(0, len(factors), BATCH):
        rows = factors[first : first + BATCH].astype(np.float64)
        gram += rows.T @ (rows * weight[first : first + BATCH, None])
    return gram


class _Counted(System):
    """A row's system that counts its products."""

    counts: ClassVar[list[int]] = [0]

    def multiply(self, x: Vector) -> Vector:
        """A x."""
        self.counts[0] += 1
        return super().multiply(x)


def _side(
    rows: Rows,
    step: HalfStep,
    gram: Vector,
    chosen: NDArray[np.int64],
    solver: Iterative | None,
) -> Checked:
    """Solve the chosen rows in float64, in the eigenbasis of G: exactly, and by the twin's CG.

    CG has one product for each step, after one at the start.
    """
    spectrum, basis = np.linalg.eigh(gram)
    away = size = 0.0
    steps, lengths = [], []
    befores, afters = step.before[chosen] @ basis, step.after[chosen] @ basis
    for row, before, after in zip(chosen, befores, afters, strict=True):
        columns, confidence = rows.matrix.row(int(row))
        pairs = rows.row_weight[row] * rows.col_weight[columns] * confidence
        weight, ridge, fixed = rows.gram_weight[row], rows.ridge[row], step.fixed[columns] @ basis
        system = _Counted(np.diag(spectrum), weight, ridge, fixed, pairs)
        exact = solve_dense(system, system.right_hand_side())
        away += float(np.sum((after - exact) ** 2))
        size += float(np.sum(exact**2))
        if solver is not None:
            diagonal = weight * spectrum + ridge + pairs @ fixed**2
            if isinstance(solver, CG):
                diagonal = np.ones_like(diagonal)
            system.counts[0] = 0
            conjugate_gradients(system, before, diagonal, solver)
            steps.append(system.counts[0] - 1)
            lengths.append(columns.size)
    mean = None if solver is None else float(np.average(steps, weights=lengths))
    return Checked(float(np.sqrt(away / size)), mean)
