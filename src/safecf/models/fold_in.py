"""Fold-in: factors for new users and items, given those of the other side."""

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from safecf.als.loss import Loss, Ridge, Vector
from safecf.als.risk import Risk
from safecf.als.rows import Rows, item_rows, user_rows
from safecf.als.solvers import Exact, Solver
from safecf.backends import Backend
from safecf.data.matrices.matrix import Csr
from safecf.models.factorization import Factors32, MatrixFactorization, grown
from safecf.models.queries import check_new_ids


class Parts(NamedTuple):
    """What a named model is composed of."""

    loss: Loss
    ridge: Ridge
    risk: Risk
    solver: Solver


class FoldIn(MatrixFactorization):
    """x_u = argmin loss_u + ridge_u/2 |x_u|^2, and the like for items with users of weight w_u.

    Items are folded in with users that count as in the last epoch. Rows are solved exactly and
    each by itself: what comes out for one does not depend on the others that it is asked with.
    """

    user_weights: Vector
    user_mass: Vector
    user_counts: Vector
    group_weights: dict[str | int, float] | None = None
    num_users: float
    num_items: int

    @abstractmethod
    def _compose(self) -> Parts:
        """Make the parts from the options, which have been checked."""

    def compose(self) -> Parts:
        """Return the parts that the options name."""
        return self._compose()

    def user_losses(self, history: Csr, factors: Factors32) -> Vector:
        """loss_u = a_u/2 sum_{i in V_u} c_ui (1 - x_u.y_i)^2 + b/2 x_u' (Y'Y) x_u, by row."""
        backend, loss = self._make_backend(), self._compose().loss
        items = self._prepared(backend, "items", self._factors()[1], None)
        users = np.ascontiguousarray(factors, dtype=backend.dtype)
        return backend.losses(history, loss.pair_weight(history.row_mass()), users, items)

    def partial_fit_users(self, userids: ArrayLike, user_items: Any) -> None:
        """Store the fold-in of these users; ids beyond the last one add users.

        A user without a history so far counts, for items that are added later, with the mean
        weight, and a new one as one user.
        """
        users, _ = self._factors()
        ids = check_new_ids(userids, "userids")
        history = self._check_user_items(user_items, ids.size)
        factors, mass = self._fold_in_users(history), history.row_mass()
        self._forget()
        size = max(len(users), int(ids.max(initial=-1)) + 1)
        users, weights = grown(users, size), grown(self.user_weights, size)
        masses, counts = grown(self.user_mass, size), grown(self.user_counts, size)
        counts[len(self.user_counts) :] = 1
        weights[ids] = np.where(masses[ids] > 0, weights[ids], self._compose().risk.tail)
        users[ids], masses[ids] = factors, mass
        self.user_factors, self.user_weights = users, weights
        self.user_mass, self.user_counts = masses, counts

    def _fold_in_users(self, history: Csr) -> Factors32:
        loss, ridge, _, _ = self._compose()
        weight = np.ones(history.num_rows)
        return self._solve_users(user_rows(history, weight, loss, ridge, self.num_items))

    def _solve_users(self, rows: Rows) -> Factors32:
        return self._solve(rows, "items", self._factors()[1], None)

    def _fold_in_items(self, audience: Csr) -> Factors32:
        loss, ridge, risk, _ = self._compose()
        pair_weight = self.user_counts * loss.pair_weight(self.user_mass)
        total_weight, weight = risk.tail * self.num_users, self.user_weights
        rows = item_rows(audience, weight, pair_weight, loss, ridge, total_weight)
        return self._solve(rows, "users", self._factors()[0], self.user_counts * weight)

    def _solve(self, rows: Rows, side: str, fixed: Factors32, weight: Vector | None) -> Factors32:
        """Solve rows exactly, given the factors of the other side."""
        backend = self._make_backend()
        factors = np.zeros((rows.matrix.num_rows, fixed.shape[1]), dtype=backend.dtype)
        if len(factors):
            prepared = self._prepared(backend, side, fixed, weight)
            backend.solve_rows(rows, prepared, factors, Exact())
        return factors.astype(np.float32, copy=False)

    def _prepared(
        self, backend: Backend, side: str, fixed: Factors32, weight: Vector | None
    ) -> Any:
        """Return the fixed side, ready for the backend; it is kept until the factors change."""
        unobserved_weight = self._compose().loss.unobserved_weight

        def prepare() -> Any:
            factors = fixed.astype(backend.dtype, copy=False)
            return backend.prepare(factors, unobserved_weight * backend.gram(factors, weight))

        return self._cached((side, backend.name, unobserved_weight), fixed, prepare)
