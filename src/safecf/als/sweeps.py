"""Sweeps: the order in which an epoch updates users and items, given the users' weights."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from safecf.als.loss import Vector
from safecf.als.optimizers import Moments
from safecf.als.rows import Problem, Rows
from safecf.als.solvers import Gradient, RowSolver, Solver, Subspace
from safecf.backends.base import Backend, Factors, Solved
from safecf.backends.memory import as_aligned
from safecf.errors import DivergenceError, SolveError

# Gradient steps diverge when the mean loss is this many times that of factors of zero, which is
# what training improves on.
HOPELESS = 10
# Up to this sum of squares, the factors' Gramian is sure to be finite in float32.
LARGEST = 1e30

Timer = Callable[[str], AbstractContextManager[None]]


@dataclass
class State:
    """What an epoch starts from; enough to go on with the same bits.

    `spectrum` are the eigenvalues of b Y'Y, if both sides are in its eigenbasis.
    """

    users: Factors
    items: Factors
    weights: Vector
    xi: float | None = None
    epoch: int = 0
    moments: tuple[Moments | None, Moments | None] = (None, None)
    spectrum: Vector | None = None

    def cast(self, dtype: np.dtype[Any]) -> None:
        """Be in the type of numbers that a backend works with."""
        self.users, self.items = (as_aligned(side, dtype) for side in (self.users, self.items))
        of_users, of_items = self.moments
        self.moments = of_users and of_users.cast(dtype), of_items and of_items.cast(dtype)

    def restore(self, kept: "State") -> None:
        """Be what a sweep's `backup` has kept."""
        vars(self).update(vars(kept))


class Sweep(Protocol):
    """How users and items are updated, once each, at fixed weights w_u."""

    @property
    def forgets(self) -> bool:
        """Whether a user of weight zero loses its factors, so that training may collapse."""

    def backup(self, state: State) -> State:
        """Return what `state` has to be restored to if an epoch does not end."""

    def remember(self, state: State, weights: Vector) -> Vector:
        """Return how users have counted up to this epoch, given its weights."""

    def losses(self, state: State, timer: Timer) -> Vector:
        """Return loss_u of every user; what it finds out on the way serves the next `run`."""

    def run(self, state: State, weights: Vector, timer: Timer) -> tuple[Solved, Solved]:
        """Update both sides of `state`, and report on users and items."""


class Solving:
    """What sweeps share that solve for one side given the other, in place."""

    forgets: ClassVar[bool] = True

    def backup(self, state: State) -> State:
        """Keep the items; users are folded in anew before anybody sees them."""
        return replace(state, items=state.items.copy())

    def remember(self, state: State, weights: Vector) -> Vector:
        """w_u: the factors follow from the last weights alone."""
        return weights


@dataclass
class Alternating(Solving):
    """All users given the items, then all items given the new users: ALS.

    Before each half-step both sides are turned into the eigenbasis of its G, in which they stay.
    """

    problem: Problem
    backend: Backend
    solver: RowSolver
    _items: Any = field(default=None, init=False)

    def losses(self, state: State, timer: Timer) -> Vector:
        """loss_u in the eigenbasis of b Y'Y, which is that of the users' half-step."""
        problem, backend = self.problem, self.backend
        with timer("turn"):
            if state.spectrum is None:
                gram = gramian(problem, backend, state.items)
                state.spectrum = backend.turn(state.items, state.users, gram)
            self._items = backend.prepare_turned(
                state.items, state.spectrum, rough=self.solver.rough
            )
        with timer("losses"):
            matrix = problem.interactions.users
            return backend.losses(matrix, problem.pair_weight, state.users, self._items)

    def run(self, state: State, weights: Vector, timer: Timer) -> tuple[Solved, Solved]:
        """X from Y by G = b Y'Y, then Y from X by G = b X' diag(count w) X."""
        problem, backend, solver = self.problem, self.backend, self.solver
        with timer("users"), naming("user"):
            rows = problem.user_rows(weights)
            users = backend.solve_rows(rows, self._items, state.users, solver)
        self._items = state.spectrum = None  # the items' memory goes to the users, made ready
        with timer("turn"), naming("item"):
            gram = gramian(problem, backend, state.users, problem.counted(weights))
            values = backend.turn(state.users, state.items, gram)
            fixed = backend.prepare_turned(state.users, values, rough=solver.rough)
        with timer("items"), naming("item"):
            rows = problem.item_rows(weights)
            items = backend.solve_rows(rows, fixed, state.items, solver)
        return users, items


@dataclass
class Cyclic(Solving):
    """Block by block of coordinates, users then items: iALS++ and SAFER2++.

    The scores x_u.y_i of the observed pairs are kept up to date, so that a block of size B costs
    O(|S| B) and not O(|S| d) beside its systems. They are one float per interaction, and the
    items find them through one 32-bit position each. Every epoch starts with fresh ones: rounding
    does not build up, and a resumed run has the same bits.
    """

    problem: Problem
    backend: Backend
    solver: Subspace
    _scores: Any = field(default=None, init=False)

    def losses(self, state: State, timer: Timer) -> Vector:
        """loss_u from the scores of the observed pairs, which the blocks need as well."""
        problem, backend, weight = self.problem, self.backend, self.problem.pair_weight
        users = problem.interactions.users
        self._scores = None  # its memory goes to the new ones
        with timer("losses"):
            self._scores = backend.scores(users, state.users, state.items)
            gram = gramian(problem, backend, state.items)
            return backend.scored_losses(users, weight, self._scores, state.users, gram)

    def run(self, state: State, weights: Vector, timer: Timer) -> tuple[Solved, Solved]:
        """One Newton step for each block of coordinates, which solves it given all the others."""
        problem, backend = self.problem, self.backend
        scores = self._scores
        user_rows, item_rows = problem.user_rows(weights), problem.item_rows(weights)
        counted = problem.counted(weights)
        found: tuple[list[Solved], list[Solved]] = [], []
        for block in blocks(state.users.shape[1], self.solver.block_size):
            with timer("users"), naming("user"):
                gram = gramian(problem, backend, state.items, None, block)
                found[0].append(
                    backend.update_block(user_rows, block, state.items, gram, state.users, scores)
                )
            with timer("items"), naming("item"):
                gram = gramian(problem, backend, state.users, counted, block)
                found[1].append(
                    backend.update_block(
                        item_rows, block, state.users, gram, state.items, scores, problem.positions
                    )
                )
        return _whole(found[0]), _whole(found[1])


@dataclass
class Simultaneous:
    """One gradient step for users and items, both from the old factors: CVaR-MF.

    The new factors are made aside, and are the state's only once all of them are there and
    finite: what an epoch starts from is never changed.
    """

    problem: Problem
    backend: Backend
    solver: Gradient
    forgets: ClassVar[bool] = False
    _items: Any = field(default=None, init=False)

    def backup(self, state: State) -> State:
        """Keep everything, which costs nothing."""
        return replace(state)

    def remember(self, state: State, weights: Vector) -> Vector:
        """1/t sum_t w_u: who counts changes from step to step, the factors follow from them all."""
        return state.weights + (weights - state.weights) / (state.epoch + 1)

    def losses(self, state: State, timer: Timer) -> Vector:
        """loss_u in the eigenbasis of b Y'Y, which the users' gradients need as well."""
        with timer("turn"):
            gram = gramian(self.problem, self.backend, state.items)
            self._items = self.backend.prepare(state.items, gram)
        with timer("losses"):
            matrix, weight = self.problem.interactions.users, self.problem.pair_weight
            losses = self.backend.losses(matrix, weight, state.users, self._items)
        population = self.problem.population(losses)
        mean = population.mean(population.losses)
        if not mean <= HOPELESS * self._loss_of_zero:
            zero = self._loss_of_zero
            raise self._diverges(
                f"the mean loss is {mean:.2g}, where factors of zero have {zero:.2g}"
            )
        return losses

    def run(self, state: State, weights: Vector, timer: Timer) -> tuple[Solved, Solved]:
        """X by G = b Y'Y, and Y by G = b X' diag(count w) X of the old X."""
        problem, backend, epoch = self.problem, self.backend, state.epoch + 1
        of_users, of_items = state.moments
        with timer("users"):
            rows = problem.user_rows(weights)
            users, of_users, about_users = self._step(
                rows, self._items, state.users, of_users, epoch
            )
        self._items = None  # its memory goes to the rotated users
        with timer("items"):
            gram = gramian(problem, backend, state.users, problem.counted(weights))
            rows, fixed = problem.item_rows(weights), backend.prepare(state.users, gram)
            items, of_items, about_items = self._step(rows, fixed, state.items, of_items, epoch)
        state.users, state.items, state.moments = users, items, (of_users, of_items)
        return about_users, about_items

    @np.errstate(all="ignore")
    def _step(
        self, rows: Rows, fixed: Any, factors: Factors, moments: Moments | None, epoch: int
    ) -> tuple[Factors, Moments | None, Solved]:
        """Return the new factors of a side, its new moments, and what there is to report."""
        gradient = self.backend.gradients(rows, fixed, factors)
        step, moments = self.solver.optimizer.direction(gradient, moments, epoch)
        step *= -self.solver.step_size
        new = factors + step
        solved = Solved(_squares(step), _squares(new))
        if not solved.norm.sum() <= LARGEST:
            raise self._diverges("the factors are beyond float32")
        return new, moments, solved

    @cached_property
    def _loss_of_zero(self) -> float:
        """The mean of loss_u = a_u/2 m_u, that of x_u = 0."""
        mass = self.problem.interactions.users.row_mass()
        population = self.problem.population(self.problem.pair_weight * mass / 2)
        return population.mean(population.losses)

    def _diverges(self, what: str) -> DivergenceError:
        remedy = f"lower step_size, e.g. step_size={self.solver.step_size / 2:g}, or init_std"
        return DivergenceError(f"{what}; {remedy}")


@np.errstate(over="ignore")
def gramian(
    problem: Problem,
    backend: Backend,
    factors: Factors,
    weight: Vector | None = None,
    block: slice | None = None,
) -> Factors:
    """G = b F' diag(weight) F, or its columns `block`."""
    gram: Factors = problem.loss.unobserved_weight * backend.gram(factors, weight, block)
    return gram


def _squares(rows: Factors) -> Vector:
    """|x_r|^2."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))


def _whole(reports: list[Solved]) -> Solved:
    """Add up the reports on the blocks."""
    change, norm = np.sum(reports, axis=0)
    return Solved(change, norm)


def blocks(factors: int, size: int) -> Iterator[slice]:
    """Cut the coordinates 0 to d - 1 into blocks, the last of which may be smaller."""
    for first in range(0, factors, size):
        yield slice(first, min(first + size, factors))


@contextmanager
def naming(side: str) -> Iterator[None]:
    """Say whose row it was that could not be solved."""
    try:
        yield
    except SolveError as problem:
        where = f"{side} " if str(problem).startswith("row ") else ""
        raise SolveError(f"{where}{problem}") from None


def make_sweep(problem: Problem, backend: Backend, solver: Solver) -> Sweep:
    """Return the sweep that the solver belongs to."""
    if isinstance(solver, Subspace):
        return Cyclic(problem, backend, solver)
    if isinstance(solver, Gradient):
        return Simultaneous(problem, backend, solver)
    return Alternating(problem, backend, solver)
