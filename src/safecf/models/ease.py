"""`EASE`: the closed-form linear model of items, a baseline that is hard to beat."""

import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from safecf.data.matrices.csr import Csr
from safecf.data.matrices.interactions import Interactions
from safecf.errors import ConvergenceWarning, NotFittedError, SolveError, warn
from safecf.free_memory import check_free
from safecf.models import files
from safecf.models.callbacks import Callback, check_watching
from safecf.models.factor_arrays import check_array
from safecf.models.inverse import blocks, invert
from safecf.models.model import register
from safecf.models.options import NONNEGATIVE, Integer, Number, check_options, option
from safecf.models.popularity import pack_popularity, popularity_of, unpack_popularity
from safecf.models.queries import (
    Indices,
    check_count,
    check_ids,
    check_rows,
    check_selection,
)
from safecf.models.ranking import Found, Ids, Scores, dense_ranks, named, search, shaped_like
from safecf.models.recommender import Recommender
from safecf.progress import epoch_bar

# Largest A_ii P_ii = 1 / (1 - R_i^2), the variance inflation of item i: the weights B, computed in
# float64, are exact to about n eps of it.
MOST_COLLINEAR = 1e10
BYTES_PER_PAIR = 8 + 4  # P in float64 and B in float32


@register
@dataclass(eq=False, repr=False)
class EASE(Recommender):
    """EASE: a user's scores are x_u B, where B predicts every item from all the others.

        minimise  sum_u w_u E|x_u - d(x_u) B|^2 + lambda |B|^2   where diag(B) = 0
        G = X' diag(w) X ,   P = (G + lambda I + p/(1-p) diag(G))^-1 ,   B = I - P diag(1 / diag(P))

    X are the interactions with their confidence weights, ones if there are none. Two things are
    not in the classic EASE:

    - users are weighted, w_u = c n_u^-rho with n_u = sum_i x_ui, so that long histories do not take
      over. c is such that interactions weigh 1 on average, sum_u w_u n_u = sum_u n_u: the counts of
      the items, and with them the scale of lambda, stay the same on average for every rho.
    - inputs are denoised: d drops every interaction of the input with probability p, and divides
      the others by 1 - p. In expectation that is a ridge of p/(1-p) G_ii for item i.

    The classic model is `EASE(400, normalisation=0, dropout=0)`. There are no user factors:
    whatever is asked, a user is the row of `user_items` that is passed, known or new.

    Training needs 12 |V|^2 bytes, and |V|^3 operations; the model and its file hold 4 |V|^2 bytes.
    For 20,000 items that is 4.5 GiB and 1.5 GiB.

    Parameters
    ----------
    regularization
        lambda, on the scale of the items' counts of users.
    normalisation
        rho, from 0 to 1: with 0 users weigh by the length of their history, with 1 all the same.
    dropout
        p, in [0, 1): 0 is the plain ridge.
    num_threads
        0 means all cores. The results do not depend on it.

    Attributes
    ----------
    item_weights
        B, float32; what item i adds to the score of item j stands in row i, column j.
    shape
        Number of users and items in training.
    item_popularity
        The share of the training users who have each item.
    user_ids, item_ids
        The original ids, if `fit` was given an `Interactions` that has them; else None.

    References: Steck, Embarrassingly Shallow Autoencoders for Sparse Data, WWW 2019; Steck,
    Autoencoders that don't overfit towards the Identity, NeurIPS 2020.
    """

    regularization: float = option(200.0, NONNEGATIVE)
    _: KW_ONLY
    normalisation: float = option(0.5, Number(0, 1, "[]"))
    dropout: float = option(0.5, Number(0, 1, "[)"))
    num_threads: int = option(0, Integer(0))

    item_weights: NDArray[np.float32] | None = field(default=None, init=False)

    needs_histories = True
    earlier_options: ClassVar[Mapping[str, float]] = {"normalisation": 0.0, "dropout": 0.0}

    def fit(
        self, user_items: Any, show_progress: bool = True, callback: Callback | None = None
    ) -> Self:
        """Train as `Recommender.fit` says, all of it in one epoch: the callback is called once.

        Its objective is the minimum, sum_i (1 / P_ii - lambda - p/(1-p) G_ii). The bar shows the
        inversion. Ctrl-C leaves the model as it was.
        """
        callback = check_watching(self, show_progress, callback)
        self.changes.check("fit")
        check_options(self.get_params(), type(self))
        if not isinstance(user_items, Interactions):
            user_items = Interactions.from_csr(user_items)
        _check_memory(user_items.num_items)
        begin = time.perf_counter()
        steps = len(blocks(user_items.num_items))
        with (
            self._fitting(),
            epoch_bar("EASE", 0, steps, show=show_progress) as draw,
        ):
            weights, objective = solve(
                user_items,
                float(self.regularization),
                float(self.normalisation),
                float(self.dropout),
                self.num_threads,
                draw,
            )
            self.item_weights = weights
            self.shape = (user_items.num_users, user_items.num_items)
            self.user_ids, self.item_ids = user_items.user_ids, user_items.item_ids
            self.item_popularity = popularity_of(user_items)
            self.derived.clear()
            if callback is not None:
                callback(0, time.perf_counter() - begin, objective)
        return self

    def _best_items(
        self,
        users: Indices | Csr,
        count: int,
        only: Indices | None,
        without: Indices | None,
        liked: Csr | None,
    ) -> Found:
        """Return the best items by x_u B, where x_u is the history."""
        if not isinstance(users, Csr):
            raise TypeError("EASE stores nothing of the users; pass their histories")
        size = len(self._weights()) if only is None else only.size
        scores = self._scores(users, only)
        found = search(scores, users.num_rows, size, count, without, liked)
        return Found(*named(found, only), self._are_unknown(users))

    def _are_unknown(self, history: Csr) -> NDArray[np.bool_]:
        """Return for which users x_u B = 0."""
        related = replace(history, weights=None).row_mass((~self._alone()).astype(np.float64))
        return np.asarray(related == 0)

    def _scores(self, history: Csr, only: Indices | None = None) -> Callable[[slice], Scores]:
        """Return what computes x_u B for a slice of the users; popularity where x_u B = 0."""
        weights, rows = self._weights(), history.to_scipy()
        candidates = weights if only is None else weights[:, only]
        unknown = self._are_unknown(history)
        popular = self.popularity(only) if unknown.any() else None

        def scores(part: slice) -> Scores:
            found = np.asarray(rows[part] @ candidates)
            if popular is not None:
                found[unknown[part]] = popular
            return found

        return scores

    def _alone(self) -> NDArray[np.bool_]:
        """Return which items were never seen together with another one."""
        weights = self._weights()
        alone: NDArray[np.bool_] = self.derived.get("alone", weights, lambda: ~weights.any(axis=1))
        return alone

    def ranks(self, user_items: Any, target: Any, filter_items: ArrayLike | None = None) -> Ids:
        """Return the ranks of the items in `target` by x_u B; see `Recommender.ranks`."""
        weights = self._weights()
        _, without = check_selection(None, filter_items, len(weights), "items")
        history = self._check_user_items(user_items, None)
        wanted = self._check_user_items(target, history.num_rows)
        return dense_ranks(self._scores(history), wanted, without, history)

    def similar_items(
        self,
        itemid: ArrayLike,
        N: int = 10,
        recalculate_item: bool = False,
        item_users: Any = None,
        filter_items: ArrayLike | None = None,
        items: ArrayLike | None = None,
    ) -> tuple[Ids, Scores]:
        """Return the N best items by their partial correlation, given all the other items.

            r_ij = -P_ij / sqrt(P_ii P_jj) = sign(B_ij) sqrt(B_ij B_ji) ,   r_ii = 1

        An item that was never seen together with another has no similar ones: no search finds it,
        and a search for it finds nothing. Items cannot be recalculated.
        """
        weights = self._weights()
        if recalculate_item:
            raise NotImplementedError(
                "EASE cannot compute an item from its users alone; fit again with these "
                "interactions, or use a factorization such as IALS"
            )
        count = check_count(N, len(weights))
        asked = check_ids(itemid, len(weights), "itemid")
        only, without = check_selection(items, filter_items, len(weights), "items")
        queries = np.atleast_1d(asked)
        alone = self._alone()

        def scores(part: slice) -> Scores:
            chosen = queries[part]
            there = weights[chosen].astype(np.float64)
            similar = np.sign(there) * np.sqrt(np.abs(there * weights[:, chosen].T))
            np.minimum(similar, 1, out=similar)
            similar[np.arange(len(chosen)), chosen] = np.inf  # before all that it ties with
            similar[alone[chosen]] = similar[:, alone] = -np.inf
            return (similar if only is None else similar[:, only]).astype(np.float32)

        size = len(weights) if only is None else only.size
        ids, best = search(scores, queries.size, size, count, without, None)
        return shaped_like(asked, named((ids, np.minimum(best, 1)), only))

    def similar_users(
        self,
        userid: ArrayLike,
        N: int = 10,
        filter_users: ArrayLike | None = None,
        users: ArrayLike | None = None,
    ) -> tuple[Ids, Scores]:
        """Raise `NotImplementedError`: nothing of the users is stored."""
        self._weights()
        raise NotImplementedError(
            "EASE stores nothing of the users, so it cannot compare them; use a factorization such "
            "as IALS"
        )

    def _contributions(
        self, history: Csr, item: int, user_weights: Any
    ) -> tuple[NDArray[np.float64], None]:
        """x_uj B_ji for every item j of the history."""
        columns, confidences = history.row(0)
        return confidences * self._weights()[columns, item], None

    def _weights(self) -> NDArray[np.float32]:
        if self.item_weights is None:
            raise NotFittedError("this EASE is not fitted; call fit first")
        check_array("item_weights", self.item_weights)
        if self.item_weights.shape != (self.shape[1],) * 2:
            raise ValueError(
                f"item_weights has shape {self.item_weights.shape}, while the model knows "
                f"{self.shape[1]} items; assign a square matrix"
            )
        return self.item_weights

    def sizes(self) -> tuple[int, int]:
        """Return the numbers of users and items in training."""
        return self.shape[0], len(self._weights())

    def _check_user_items(self, user_items: Any, count: int | None) -> Csr:
        size = len(self._weights())
        return check_rows(user_items, count, "user", "item", range(size, size + 1))

    def _pack(self) -> tuple[dict[str, Any], files.Arrays]:
        arrays = {
            "item_weights": self._weights(),
            **files.pack_ids("user_ids", self.user_ids),
            **files.pack_ids("item_ids", self.item_ids),
            **pack_popularity(self.item_popularity, self.shape[1]),
        }
        return {"shape": self.shape}, arrays

    def _unpack(self, fitted: dict[str, Any], arrays: files.Arrays) -> None:
        num_users, num_items = files.shape(fitted)
        weights = files.array(arrays, "item_weights", (num_items, num_items), np.float32)
        self.user_ids = files.unpack_ids(arrays, "user_ids", num_users, num_users)
        self.item_ids = files.unpack_ids(arrays, "item_ids", num_items, num_items)
        self.item_popularity = unpack_popularity(arrays, num_items)
        self.item_weights, self.shape = weights, (num_users, num_items)


def user_weights(mass: NDArray[np.float64], normalisation: float) -> NDArray[np.float64]:
    """w_u = c n_u^-rho with sum_u w_u n_u = sum_u n_u; users without interactions have c.

    >>> user_weights(np.array([1.0, 4.0]), 0.5)
    array([1.66666667, 0.83333333])
    """
    weights = np.where(mass > 0, mass, 1.0) ** -normalisation
    return np.asarray(weights * (mass.sum() / (weights @ mass)))


def solve(
    interactions: Interactions,
    regularization: float,
    normalisation: float,
    dropout: float,
    num_threads: int,
    report: Callable[[int], None],
) -> tuple[NDArray[np.float32], float]:
    """Return B = I - P diag(1 / diag(P)), and the objective sum_i (1 / P_ii - ridge_i).

    G = X' diag(w) X ,   ridge_i = lambda + p/(1-p) G_ii ,   P = (G + diag(ridge))^-1
    """
    users, items = interactions.users.to_scipy(), interactions.items.to_scipy()
    users, items = users.astype(np.float64), items.astype(np.float64)
    weight = user_weights(interactions.users.row_mass(), normalisation)
    users.data *= np.repeat(weight, np.diff(users.indptr))
    size = interactions.num_items
    inverse = np.empty((size, size))
    for part in blocks(size):
        inverse[part] = (items[part] @ users).toarray()
    ridge = regularization + dropout / (1 - dropout) * inverse.diagonal()
    inverse[np.diag_indices(size)] += ridge
    before = inverse.diagonal().copy()
    try:
        invert(inverse, num_threads, report)
    except np.linalg.LinAlgError:
        raise SolveError(
            f"G + lambda I is not positive definite at regularization={regularization:g}; raise "
            "regularization, and look for huge weights"
        ) from None
    diagonal = inverse.diagonal().copy()
    if not (before * diagonal).max() <= MOST_COLLINEAR:
        warn(
            "some items are nearly linear combinations of others, and their weights are rounding: "
            f"regularization={regularization:g} is too small; raise it",
            ConvergenceWarning,
        )
    weights = np.empty((size, size), dtype=np.float32)
    with np.errstate(over="ignore"):
        for part in blocks(size):
            weights[part] = inverse[part] / -diagonal
    np.fill_diagonal(weights, 0)
    if not np.isfinite(weights).all():
        raise SolveError(
            "the weights of the items are beyond float32; scale the weights of the interactions"
        )
    together = np.diff(interactions.users.indptr).max() > 1
    if together and not weights.any():
        warn(
            f"all weights of the items are zero at regularization={regularization:g}, so that "
            "users get the most popular items; lower regularization",
            ConvergenceWarning,
        )
    return weights, float(np.sum(1 / diagonal - ridge))


def _check_memory(num_items: int) -> None:
    """Raise before the work begins if the memory cannot suffice."""
    check_free(
        BYTES_PER_PAIR * num_items**2,
        f"EASE of {num_items:,} items",
        "try fewer items (min_item_interactions=), or SAFER2, whose memory does not grow with "
        "their square",
    )
