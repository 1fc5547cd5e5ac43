"""Sweeps: the order in which an epoch updates users and items, given the users' weights."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

from safecf.als.capabilities import (
    Blocks,
    Factors,
    Fixed,
    Gradients,
    HalfSteps,
    PairScores,
    PerRow,
    Positions,
    RowReport,
)
from safecf.als.optimizers import Moments
from safecf.als.rows import Problem, Rows, gramian, naming
from safecf.als.solvers import Gradient, RowSolver, Solver, Subspace
from safecf.als.state import State
from safecf.caching import cached_property
from safecf.errors import DivergenceError

# Gradient steps diverge when the mean loss is this many times that of factors of zero, which is
# what training improves on.
HOPELESS = 10
# Up to this sum of squares, the factors' Gramian is sure to be finite in float32.
LARGEST = 1e30
# Step sizes from here on down are worth a try.
USUAL_STEP = 0.2

Timer = Callable[[str], AbstractContextManager[None]]


class Sweep(Protocol):
    """How users and items are updated, once each, at fixed weights w_u."""

    needs: ClassVar[type]  # the capability of the backend
    solves: ClassVar[bool]  # whether rows are solved, so that a few epochs do

    @property
    def forgets(self) -> bool:
        """Whether a user of weight zero loses its factors, so that training may collapse."""

    def backup(self, state: State) -> State:
        """Return what `state` has to be restored to if an epoch does not end."""

    def kept_weights(self, state: State, weights: PerRow) -> PerRow:
        """Return the weights that the items' fold-in uses: the last w, or their running mean."""

    def prepare(self, state: State, timer: Timer) -> None:
        """Get ready for the losses and the next `run`; may rotate both sides of `state`."""

    def losses(self, state: State, timer: Timer) -> PerRow:
        """Return loss_u of every user, with the ridge if it is in the risk; after `prepare`."""

    def run(self, state: State, weights: PerRow, timer: Timer) -> tuple[RowReport, RowReport]:
        """Update both sides of `state`, after `prepare`, and report on users and items."""


class InPlace:
    """What the sweeps share that solve for one side given the other, in place."""

    problem: Problem
    backend: HalfSteps
    solves: ClassVar[bool] = True

    @property
    def forgets(self) -> bool:
        """Not if the ridge is in the risk: the users' half-step has no weights then."""
        return not self.problem.ridge.in_risk

    def backup(self, state: State) -> State:
        """Back up the items only; users are recomputed by fold-in."""
        return replace(state, items=self.backend.copy(state.items))

    def kept_weights(self, state: State, weights: PerRow) -> PerRow:
        """w_u: the factors follow from the last weights alone."""
        return weights


@dataclass
class Alternating(InPlace):
    """All users given the items, then all items given the new users: ALS.

    Before each half-step both sides are rotated into the eigenbasis of its G, in which they stay.
    """

    problem: Problem
    backend: HalfSteps
    solver: RowSolver
    needs: ClassVar[type] = HalfSteps
    _items: Fixed = field(default=None, init=False)

    def prepare(self, state: State, timer: Timer) -> None:
        """Rotate into the eigenbasis of b Y'Y, that of the users' half-step."""
        with timer("rotate"):
            if state.spectrum is None:
                gram = gramian(self.problem.loss, self.backend, state.items, solver=self.solver)
                state.spectrum = self.backend.rotate(state.items, state.users, gram, self.solver)
            self._items = self.backend.fix_rotated(state.items, state.spectrum, self.solver)

    def losses(self, state: State, timer: Timer) -> PerRow:
        """loss_u in the eigenbasis of b Y'Y."""
        problem = self.problem
        with timer("losses"):
            return self.backend.losses(
                problem.users, problem.pair_weight, state.users, self._items, problem.risk_ridge
            )

    def run(self, state: State, weights: PerRow, timer: Timer) -> tuple[RowReport, RowReport]:
        """X from Y by G = b Y'Y, then Y from X by G = b X' diag(count w) X."""
        problem, backend, solver = self.problem, self.backend, self.solver
        with timer("users"), naming("user", problem.interactions.user_ids):
            rows = problem.user_rows(weights)
            users = backend.solve_rows(rows, self._items, state.users, solver)
        self._items = state.spectrum = None  # free this before the users are fixed
        with timer("rotate"), naming("item", problem.interactions.item_ids):
            counted = problem.counted(weights)
            gram = gramian(problem.loss, backend, state.users, counted, solver=solver)
            spectrum = backend.rotate(state.users, state.items, gram, solver)
            fixed = backend.fix_rotated(state.users, spectrum, solver)
        with timer("items"), naming("item", problem.interactions.item_ids):
            rows = problem.item_rows(weights)
            items = backend.solve_rows(rows, fixed, state.items, solver)
        return users, items


@dataclass
class Cyclic(InPlace):
    """Block by block of coordinates, users then items: iALS++ and SAFER2++.

    The scores x_u.y_i of the observed pairs are kept up to date, so that a block of size B costs
    O(|S| B) and not O(|S| d) beside its systems. They are one float per interaction, and the
    items find them through one 32-bit position each. Every epoch starts with fresh ones: rounding
    does not build up, and a resumed run has the same bits.
    """

    problem: Problem
    backend: Blocks
    solver: Subspace
    needs: ClassVar[type] = Blocks
    _scores: PairScores = field(default=None, init=False)

    @cached_property
    def _positions(self) -> Positions:
        return self.backend.positions(self.problem.users)

    def prepare(self, state: State, timer: Timer) -> None:
        """Score the observed pairs."""
        self._scores = None  # free this before there are new ones
        with timer("losses"):
            self._scores = self.backend.scores(self.problem.users, state.users, state.items)

    def losses(self, state: State, timer: Timer) -> PerRow:
        """loss_u from the scores of the observed pairs."""
        problem, backend = self.problem, self.backend
        with timer("losses"):
            gram = gramian(problem.loss, backend, state.items)
            return backend.scored_losses(
                problem.users,
                problem.pair_weight,
                self._scores,
                state.users,
                gram,
                problem.risk_ridge,
            )

    def run(self, state: State, weights: PerRow, timer: Timer) -> tuple[RowReport, RowReport]:
        """One Newton step for each block of coordinates, which solves it given all the others."""
        problem, backend, scores = self.problem, self.backend, self._scores
        user_rows, item_rows = problem.user_rows(weights), problem.item_rows(weights)
        counted = problem.counted(weights)
        reports: tuple[list[RowReport], list[RowReport]] = [], []
        for block in blocks(state.users.shape[1], self.solver.block_size):
            with timer("users"), naming("user", problem.interactions.user_ids):
                gram = gramian(problem.loss, backend, state.items, None, block)
                reports[0].append(
                    backend.update_block(user_rows, block, state.items, gram, state.users, scores)
                )
            with timer("items"), naming("item", problem.interactions.item_ids):
                gram = gramian(problem.loss, backend, state.users, counted, block)
                reports[1].append(
                    backend.update_block(
                        item_rows, block, state.users, gram, state.items, scores, self._positions
                    )
                )
        return _joined(reports[0]), _joined(reports[1])


@dataclass
class Simultaneous:
    """One gradient step for users and items, both from the old factors: CVaR-MF.

    The new factors replace the state's only once both sides are there and finite: what an epoch
    starts from is never changed.
    """

    problem: Problem
    backend: Gradients
    solver: Gradient
    needs: ClassVar[type] = Gradients
    solves: ClassVar[bool] = False
    forgets: ClassVar[bool] = False
    _items: Fixed = field(default=None, init=False)

    def backup(self, state: State) -> State:
        """Keep everything, which costs nothing."""
        return replace(state)

    def kept_weights(self, state: State, weights: PerRow) -> PerRow:
        """1/t sum_t w_u: the mean over the epochs, since one has zeros for most users."""
        return state.weights + (weights - state.weights) / (state.epoch + 1)

    def prepare(self, state: State, timer: Timer) -> None:
        """Fix the items with G = b Y'Y."""
        with timer("rotate"):
            gram = gramian(self.problem.loss, self.backend, state.items)
            self._items = self.backend.fix(state.items, gram)

    def losses(self, state: State, timer: Timer) -> PerRow:
        """loss_u; an error where they show that the steps diverge."""
        problem = self.problem
        with timer("losses"):
            losses = self.backend.losses(
                problem.users, problem.pair_weight, state.users, self._items, problem.risk_ridge
            )
        users, zero = problem.population(losses, self.backend.loss_sums), problem.loss_of_zero
        if not users.mean_loss <= HOPELESS * zero:
            raise self._diverges(
                f"the mean loss is {users.mean_loss:.2g}, where factors of zero have {zero:.2g}"
            )
        return losses

    def run(self, state: State, weights: PerRow, timer: Timer) -> tuple[RowReport, RowReport]:
        """X by G = b Y'Y, and Y by G = b X' diag(count w) X of the old X."""
        problem, backend, epoch = self.problem, self.backend, state.epoch + 1
        of_users, of_items = state.moments
        with timer("users"):
            rows = problem.user_rows(weights)
            users, of_users, about_users = self._step(
                rows, self._items, state.users, of_users, epoch
            )
        self._items = None  # free this before the users are fixed
        with timer("items"):
            gram = gramian(problem.loss, backend, state.users, problem.counted(weights))
            rows, fixed = problem.item_rows(weights), backend.fix(state.users, gram)
            items, of_items, about_items = self._step(rows, fixed, state.items, of_items, epoch)
        state.users, state.items, state.moments = users, items, (of_users, of_items)
        return about_users, about_items

    def _step(
        self, rows: Rows, fixed: Fixed, factors: Factors, moments: Moments | None, epoch: int
    ) -> tuple[Factors, Moments | None, RowReport]:
        """Return the new factors of a side, its new moments, and the report."""
        found = self.backend.descend(rows, fixed, factors, moments, self.solver, epoch)
        if not found[2].penalty(0 * rows.ridge + 1) <= LARGEST:
            raise self._diverges("the factors are beyond float32")
        return found

    def _diverges(self, what: str) -> DivergenceError:
        lower = min(self.solver.step_size / 2, USUAL_STEP)
        remedy = f"lower step_size, e.g. step_size={lower:g}, or regularization or init_std"
        return DivergenceError(f"{what}; {remedy}")


def _joined(reports: list[RowReport]) -> RowReport:
    """Add up the reports on the blocks."""
    whole = reports[0]
    for report in reports[1:]:
        whole = whole + report
    return whole


def blocks(factors: int, size: int) -> Iterator[slice]:
    """Cut the coordinates 0 to d - 1 into blocks, the last of which may be smaller."""
    for first in range(0, factors, size):
        yield slice(first, min(first + size, factors))


# By the name that a solver gives as its `sweep`.
SWEEPS: dict[str, type[Any]] = {
    "alternating": Alternating,
    "cyclic": Cyclic,
    "simultaneous": Simultaneous,
}


def make_sweep(problem: Problem, backend: HalfSteps, solver: Solver) -> Sweep:
    """Return the sweep that the solver belongs to."""
    sweep: Sweep = SWEEPS[solver.sweep](problem, backend, solver)
    return sweep


def capability_for(solver: Solver) -> type:
    """Return the capability that the solver's sweep needs of a backend."""
    capability: type = SWEEPS[solver.sweep].needs
    return capability


def row_solvers_for(solver: Solver) -> list[str]:
    """Return the row solvers that the solver's sweep needs: itself, if it solves row by row."""
    return [solver.name] if SWEEPS[solver.sweep] is Alternating else []
