"""Sweeps: the order in which an epoch updates users and items, given the users' weights."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from safecf.als.loss import Vector
from safecf.als.rows import Problem, Rows
from safecf.als.solvers import RowSolver, Solver, Subspace
from safecf.backends.base import Backend, Factors, Solved
from safecf.errors import SolveError

Timer = Callable[[str], AbstractContextManager[None]]


@dataclass
class State:
    """What an epoch starts from; enough to go on with the same bits."""

    users: Factors
    items: Factors
    weights: Vector
    xi: float | None = None
    epoch: int = 0


class Sweep(Protocol):
    """How users and items are updated, once each, at fixed weights w_u."""

    def losses(self, state: State) -> Vector:
        """Return loss_u of every user; what it finds out on the way serves the next `run`."""

    def run(self, state: State, weights: Vector, timer: Timer) -> tuple[Solved, Solved]:
        """Update both sides of `state` in place, and report on users and items."""


@dataclass
class Alternating:
    """All users given the items, then all items given the new users: ALS."""

    problem: Problem
    backend: Backend
    solver: RowSolver
    _items: Any = field(default=None, init=False)

    def losses(self, state: State) -> Vector:
        """loss_u in the eigenbasis of b Y'Y, which the users' half-step needs as well."""
        problem, backend = self.problem, self.backend
        gram = problem.loss.unobserved_weight * backend.gram(state.items)
        self._items = backend.prepare(state.items, gram)
        users = problem.interactions.users
        return backend.losses(users, problem.pair_weight, state.users, self._items)

    def run(self, state: State, weights: Vector, timer: Timer) -> tuple[Solved, Solved]:
        """X from Y by G = b Y'Y, then Y from X by G = b X' diag(w) X."""
        problem, backend = self.problem, self.backend
        with timer("users"):
            rows = problem.user_rows(weights)
            users = self._solve("user", rows, self._items, state.users)
        self._items = None  # its memory goes to the rotated users
        with timer("items"):
            gram = problem.loss.unobserved_weight * backend.gram(state.users, weights)
            fixed = backend.prepare(state.users, gram)
            items = self._solve("item", problem.item_rows(weights), fixed, state.items)
        return users, items

    def _solve(self, side: str, rows: Rows, fixed: Any, factors: Factors) -> Solved:
        with naming(side):
            return self.backend.solve_rows(rows, fixed, factors, self.solver)


@dataclass
class Cyclic:
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

    def losses(self, state: State) -> Vector:
        """loss_u from the scores of the observed pairs, which the blocks need as well."""
        problem, backend = self.problem, self.backend
        users = problem.interactions.users
        self._scores = backend.scores(users, state.users, state.items)
        gram = problem.loss.unobserved_weight * backend.gram(state.items)
        return backend.scored_losses(users, problem.pair_weight, self._scores, state.users, gram)

    def run(self, state: State, weights: Vector, timer: Timer) -> tuple[Solved, Solved]:
        """One Newton step for each block of coordinates, which solves it given all the others."""
        problem, backend = self.problem, self.backend
        unobserved_weight, scores = problem.loss.unobserved_weight, self._scores
        user_rows, item_rows = problem.user_rows(weights), problem.item_rows(weights)
        found: tuple[list[Solved], list[Solved]] = [], []
        for block in blocks(state.users.shape[1], self.solver.block_size):
            with timer("users"), naming("user"):
                gram = unobserved_weight * backend.gram(state.items, None, block)
                found[0].append(
                    backend.update_block(user_rows, block, state.items, gram, state.users, scores)
                )
            with timer("items"), naming("item"):
                gram = unobserved_weight * backend.gram(state.users, weights, block)
                found[1].append(
                    backend.update_block(
                        item_rows, block, state.users, gram, state.items, scores, problem.positions
                    )
                )
        users, items = (Solved(*map(sum, zip(*side, strict=True))) for side in found)
        return users, items


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
        raise SolveError(f"{side} {problem}") from None


def make_sweep(problem: Problem, backend: Backend, solver: Solver) -> Sweep:
    """Return the sweep that the solver belongs to."""
    if isinstance(solver, Subspace):
        return Cyclic(problem, backend, solver)
    return Alternating(problem, backend, solver)
