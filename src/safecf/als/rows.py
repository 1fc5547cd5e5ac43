"""`Rows`, the linear systems of one half-step, and the `Problem` that makes them for both sides."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.als.capabilities import Factors, Gram, HalfSteps, Matrix, PerRow
from safecf.als.loss import Loss, Ridge, Vector
from safecf.als.population import NUMPY, LossSums, Population
from safecf.als.solvers import RowSolver
from safecf.caching import cached_property
from safecf.data.matrices.ids import IdArray
from safecf.data.matrices.interactions import Interactions
from safecf.errors import SolveError

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Rows:
    """One half-step, or a part of one: a linear system for every row r of `matrix`.

        ( g_r G + sum_j p_rj y_j y_j' + ridge_r I ) x_r = sum_j p_rj y_j ,
        p_rj = row_weight_r col_weight_j c_rj ,   c_rj the confidences in the matrix .

    G and the fixed factors y_j are what the backend's `fix` returns, and `matrix` is what its
    `place_matrix` does. The first row is row number `first` of the whole half-step. From here on
    nothing knows users from items.
    """

    matrix: Matrix
    row_weight: PerRow
    col_weight: PerRow
    gram_weight: PerRow
    ridge: PerRow
    first: int = 0

    def map(self, move: Callable[[Vector], PerRow]) -> "Rows":
        """Return the rows with `move` applied to their vectors."""
        names = "row_weight", "col_weight", "gram_weight", "ridge"
        return replace(self, **{name: move(getattr(self, name)) for name in names})

    def part(self, matrix: Matrix, start: int, stop: int) -> "Rows":
        """Return the rows `start` to `stop` - 1, given their part of the matrix."""
        rows = slice(start, stop)
        return replace(
            self,
            matrix=matrix,
            row_weight=self.row_weight[rows],
            gram_weight=self.gram_weight[rows],
            ridge=self.ridge[rows],
            first=self.first + start,
        )


def user_rows(
    matrix: Matrix, mass: Vector, weight: Vector, loss: Loss, ridge: Ridge, items: tuple[int, int]
) -> Rows:
    """Users: row_weight = w a, col_weight = 1, g = w, to be solved with G = b Y'Y.

    `mass` is m_u, the sum of the row; `items` are the number of columns, and |V|.
    """
    pair_weight = loss.pair_weight(mass)
    columns, num_items = items
    return Rows(
        matrix=matrix,
        row_weight=weight * pair_weight,
        col_weight=np.ones(columns),
        gram_weight=weight,
        ridge=ridge.weights(pair_weight * mass, loss.unobserved_weight * num_items),
    )


def item_rows(
    matrix: Matrix, mass: Vector, col_weight: Vector, loss: Loss, ridge: Ridge, total_weight: float
) -> Rows:
    """Items: row_weight = 1, col_weight = w a, g = 1, to be solved with G = b X' diag(w) X.

    `mass` is the sum of the row, each user weighted by a. Where users count more than once, read
    count a for a, and G = b X' diag(count w) X.
    """
    ones = np.ones(mass.size)
    return Rows(
        matrix=matrix,
        row_weight=ones,
        col_weight=col_weight,
        gram_weight=ones,
        ridge=ridge.weights(mass, loss.unobserved_weight * total_weight),
    )


@dataclass(frozen=True)
class Problem:
    """sum_u count_u (w_u loss_u + ridge_u/2 |x_u|^2) + 1/2 sum_i ridge_i |y_i|^2 on given data.

    With the ridge in the risk, read w_u (loss_u + ridge_u/2 |x_u|^2) for the sum's terms.
    `tail` is the mean of the weights w_u, alpha. User u stands for `user_count`[u] users with the
    same history, for one where that is None; only sums over users know of it, that is the risk
    and the items' half-step. Users and items without interactions have zero factors and count
    nowhere, and so do users of count 0: |V| is the number of items that other users have, and |U|
    the sum of those users' counts.

    What epochs read, matrices and vectors per row, is where `backend` works, if there is one.
    """

    interactions: Interactions
    loss: Loss
    ridge: Ridge
    tail: float
    user_count: Vector | None = None
    backend: HalfSteps | None = None

    def place(self, backend: HalfSteps) -> "Problem":
        """Return the problem where a backend works."""
        return replace(self, backend=backend)

    def _placed(self, values: NDArray[Any]) -> PerRow:
        return values if self.backend is None else self.backend.place_vector(values)

    @cached_property
    def users(self) -> Matrix:
        """The interactions by user, as the backend has them."""
        users = self.interactions.users
        return users if self.backend is None else self.backend.place_matrix(users)

    @cached_property
    def items(self) -> Matrix:
        """The interactions by item, as the backend has them."""
        items = self.interactions.items
        return items if self.backend is None else self.backend.place_matrix(items)

    @cached_property
    def active_users(self) -> Mask:
        """Which users count: the ones whose losses the risk sees."""
        has_some = np.asarray(np.diff(self.interactions.users.indptr) > 0)
        return has_some if self.user_count is None else has_some & (self.user_count > 0)

    @cached_property
    def active_items(self) -> Mask:
        """Which items have interactions with users that count."""
        items = self.interactions.items
        if self.user_count is None:
            return np.asarray(np.diff(items.indptr) > 0)
        return items.row_mass(self.active_users.astype(np.float64)) > 0

    @cached_property
    def num_users(self) -> float:
        """|U| = sum_u count_u over the users that count."""
        if self.user_count is None:
            return int(np.count_nonzero(self.active_users))
        return float(np.sum(self.user_count[self.active_users]))

    @cached_property
    def num_items(self) -> int:
        """|V|."""
        return int(np.count_nonzero(self.active_items))

    @cached_property
    def _counts(self) -> PerRow | None:
        return None if self.user_count is None else self._placed(self.user_count)

    def counted(self, values: PerRow) -> PerRow:
        """count_u v_u: values times user counts."""
        return values if self._counts is None else self._counts * values

    @cached_property
    def counts(self) -> PerRow:
        """count_u of the users that count, and 0 for the others."""
        return self.counted(self._placed(self.active_users.astype(np.float64)))

    @cached_property
    def _active(self) -> Any:
        """An index of the users that count."""
        if self.active_users.all():
            return slice(None)
        return self._placed(np.flatnonzero(self.active_users))

    def population(self, losses: PerRow, sums: LossSums = NUMPY) -> Population:
        """Return the losses of the users that count, and the implementation of sums over them."""
        counts = None if self._counts is None else self._counts[self._active]
        return Population(losses[self._active], counts, sums)

    def of_all_users(self, values: PerRow, like: PerRow) -> PerRow:
        """Return values of the users that count, and 0 for the others, as a vector `like` one."""
        if isinstance(self._active, slice):
            return values
        found = 0 * like
        found[self._active] = values
        return found

    @cached_property
    def user_mass(self) -> Vector:
        """m_u = sum_i c_ui."""
        return self.interactions.users.row_mass()

    @cached_property
    def loss_of_zero(self) -> float:
        """The mean of loss_u = a_u/2 m_u, that of x_u = 0."""
        losses = self.loss.pair_weight(self.user_mass) * self.user_mass / 2
        return replace(self, backend=None).population(losses).mean_loss

    @cached_property
    def pair_weight(self) -> PerRow:
        """a_u."""
        return self._placed(self.loss.pair_weight(self.user_mass))

    @cached_property
    def unit_user_rows(self) -> Rows:
        """The users' half-step with w = 1: what the fold-in of the training users solves."""
        users = self.interactions.users
        unit, items = np.ones(users.num_rows), (users.num_columns, self.num_items)
        rows = user_rows(self.users, self.user_mass, unit, self.loss, self.ridge, items)
        return rows.map(self._placed)

    @cached_property
    def unit_item_rows(self) -> Rows:
        """The items' half-step with w = 1, ridges for weights of mean alpha."""
        pair_weight = self.loss.pair_weight(self.user_mass)
        if self.user_count is not None:
            pair_weight = self.user_count * pair_weight
        mass, total = self.interactions.items.row_mass(pair_weight), self.tail * self.num_users
        rows = item_rows(self.items, mass, pair_weight, self.loss, self.ridge, total)
        return rows.map(self._placed)

    @property
    def risk_ridge(self) -> PerRow | None:
        """The users' ridge, if it is part of what the risk measures."""
        return self.unit_user_rows.ridge if self.ridge.in_risk else None

    def user_rows(self, weight: PerRow) -> Rows:
        """Return the users' half-step at the weights w_u: w = 1 if the ridge is in the risk."""
        if self.ridge.in_risk:
            return self.unit_user_rows
        row_weight = weight * self.pair_weight
        return replace(self.unit_user_rows, row_weight=row_weight, gram_weight=weight)

    def item_rows(self, weight: PerRow) -> Rows:
        """Return the items' half-step at the weights w_u."""
        return replace(self.unit_item_rows, col_weight=weight * self.counted(self.pair_weight))


@np.errstate(over="ignore")
def gramian(
    loss: Loss,
    backend: HalfSteps,
    factors: Factors,
    weight: PerRow | None = None,
    block: slice | None = None,
    solver: RowSolver | None = None,
) -> Gram:
    """G = b F' diag(weight) F, or its columns `block`; for a solver, if one is given."""
    return loss.unobserved_weight * backend.gram(factors, weight, block, solver)


@contextmanager
def naming(side: str, ids: IdArray | None = None) -> Iterator[None]:
    """Say whether it was a user or an item whose row could not be solved, and its original id."""
    try:
        yield
    except SolveError as problem:
        if problem.row is None:
            raise
        where = side if ids is None else f"{side} {ids.tolist()[problem.row]!r},"
        raise SolveError(f"{where} {problem}") from None
