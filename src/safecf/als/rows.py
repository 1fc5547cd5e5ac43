"""`Rows`, the linear systems of one half-step, and the `Problem` that makes them for both sides."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from safecf import _core
from safecf.als.loss import Loss, Ridge, Vector
from safecf.als.quantile import Population
from safecf.data.matrices.interactions import Interactions
from safecf.data.matrices.matrix import Csr

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Rows:
    """One half-step: a linear system for every row r of `matrix`, with its confidences c_rj.

        ( g_r G + sum_j p_rj y_j y_j' + ridge_r I ) x_r = sum_j p_rj y_j ,
        p_rj = row_weight_r col_weight_j c_rj .

    G and the fixed factors y_j are what the backend's `prepare` returns. From here on nothing
    knows users from items.
    """

    matrix: Csr
    row_weight: Vector
    col_weight: Vector
    gram_weight: Vector
    ridge: Vector


def user_rows(history: Csr, weight: Vector, loss: Loss, ridge: Ridge, num_items: int) -> Rows:
    """Users: row_weight = w a, col_weight = 1, g = w, to be solved with G = b Y'Y."""
    mass = history.row_mass()
    pair_weight = loss.pair_weight(mass)
    return Rows(
        matrix=history,
        row_weight=weight * pair_weight,
        col_weight=np.ones(history.num_columns),
        gram_weight=weight,
        ridge=ridge.weights(pair_weight * mass, loss.unobserved_weight * num_items),
    )


def item_rows(
    audience: Csr,
    weight: Vector,
    pair_weight: Vector,
    loss: Loss,
    ridge: Ridge,
    total_weight: float,
) -> Rows:
    """Items: row_weight = 1, col_weight = w a, g = 1, to be solved with G = b X' diag(w) X.

    Where users count more than once, `pair_weight` is count a, and G = b X' diag(count w) X.
    """
    ones = np.ones(audience.num_rows)
    mass = audience.row_mass(pair_weight)
    return Rows(
        matrix=audience,
        row_weight=ones,
        col_weight=weight * pair_weight,
        gram_weight=ones,
        ridge=ridge.weights(mass, loss.unobserved_weight * total_weight),
    )


@dataclass(frozen=True)
class Problem:
    """sum_u count_u (w_u loss_u + ridge_u/2 |x_u|^2) + 1/2 sum_i ridge_i |y_i|^2 on given data.

    `tail` is the mean of the weights w_u, alpha. User u stands for `user_count`[u] users with the
    same history, for one where that is None; only sums over users know of it, that is the risk
    and the items' half-step. Users and items without interactions have zero factors and count
    nowhere, and so do users of count 0: |V| is the number of items that other users have, and |U|
    the sum of those users' counts.
    """

    interactions: Interactions
    loss: Loss
    ridge: Ridge
    tail: float
    user_count: Vector | None = None

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

    def counted(self, values: Vector) -> Vector:
        """count_u v_u: what stands in a sum over users."""
        return values if self.user_count is None else self.user_count * values

    def population(self, losses: Vector) -> Population:
        """Return the users that count, with their losses."""
        counts = None if self.user_count is None else self.user_count[self.active_users]
        return Population(losses[self.active_users], counts)

    @cached_property
    def pair_weight(self) -> Vector:
        """a_u."""
        return self.loss.pair_weight(self.interactions.users.row_mass())

    @cached_property
    def positions(self) -> NDArray[np.uint32]:
        """Where the items' interactions, in their order, stand among those of the users."""
        users = self.interactions.users
        if users.nnz > np.iinfo(np.uint32).max:
            raise ValueError(
                f"{users.nnz} interactions are too many for the subspace solver; try another one"
            )
        places = np.empty(users.nnz, dtype=np.uint32)
        _core.positions(_core.Matrix(users.indptr, users.indices), users.num_columns, places)
        return places

    @cached_property
    def unit_user_rows(self) -> Rows:
        """The users' half-step with w = 1: what the fold-in of the training users solves."""
        unit = np.ones(self.interactions.num_users)
        return user_rows(self.interactions.users, unit, self.loss, self.ridge, self.num_items)

    @cached_property
    def unit_item_rows(self) -> Rows:
        """The items' half-step with w = 1, ridges for weights of mean alpha."""
        unit = np.ones(self.interactions.num_users)
        pair_weight, total_weight = self.counted(self.pair_weight), self.tail * self.num_users
        return item_rows(
            self.interactions.items, unit, pair_weight, self.loss, self.ridge, total_weight
        )

    def user_rows(self, weight: Vector) -> Rows:
        """Return the users' half-step at the weights w_u."""
        row_weight = weight * self.pair_weight
        return replace(self.unit_user_rows, row_weight=row_weight, gram_weight=weight)

    def item_rows(self, weight: Vector) -> Rows:
        """Return the items' half-step at the weights w_u."""
        return replace(self.unit_item_rows, col_weight=weight * self.counted(self.pair_weight))
