"""`MatrixFactorization`: what can be answered from factors: recommend, similar, partial fits."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from safecf.als.capabilities import Index, Search
from safecf.backends import make_backend
from safecf.data.matrices.csr import Csr
from safecf.data.matrices.interactions import Interactions
from safecf.errors import NotFittedError
from safecf.models.by_ids import Names, rows_of_users
from safecf.models.factor_arrays import (
    Factors32,
    are_zero,
    check_array,
    check_factors,
    directions,
    one_each,
    positions,
    with_rows,
)
from safecf.models.joining import check_alone, join_items, join_users
from safecf.models.options import check_options
from safecf.models.queries import (
    PADDING_ID,
    PADDING_SCORE,
    Indices,
    check_count,
    check_ids,
    check_new_ids,
    check_rows,
    check_selection,
    rows_among,
)
from safecf.models.ranking import Found, Ids, Scores, named, shaped_like, with_own_first
from safecf.models.recommender import Recommender


class MatrixFactorization(Recommender):
    """score_ui = x_u . y_i, with x_u the rows of `user_factors` and y_i those of `item_factors`.

    Similarities are cosines. Users and items whose factors are zero
    or not finite have no similar ones: no search finds them, and a search for them finds nothing.

    Both arrays may be replaced by others. Once a search or a fold-in has used one, what it derived
    is kept, and the array can only be read: to change it, change a copy and put that in its place.
    """

    backend: str
    num_threads: int
    device: str

    user_factors: Factors32 | None = None
    item_factors: Factors32 | None = None

    def recommend_factors(
        self,
        user_factors: Factors32,
        user_items: Any,
        N: int = 10,
        filter_items: ArrayLike | None = None,
    ) -> tuple[Ids, Scores]:
        """Return the N best items of users that are given by their factors, one row each.

        The items in the users' rows of `user_items` are left out, as are `filter_items`.

        >>> factors = model.fold_in(user_items)
        >>> ids, scores = model.recommend_factors(factors, user_items)
        """
        _, items = self.both_factors()
        users = check_factors(user_factors, items.shape[1])
        _, without = check_selection(None, filter_items, len(items), "items")
        liked = self._check_user_items(user_items, len(users))
        count = check_count(N, len(items))
        return self._best_by_factors(users, count, None, without, liked)[:2]

    def ranks(self, user_items: Any, target: Any, filter_items: ArrayLike | None = None) -> Ids:
        """Return the ranks of the items in `target` by x_u . y_i; see `Recommender.ranks`."""
        return self.ranks_of_factors(self.fold_in(user_items), user_items, target, filter_items)

    def ranks_of_factors(
        self,
        user_factors: Factors32,
        user_items: Any,
        target: Any,
        filter_items: ArrayLike | None = None,
    ) -> Ids:
        """Return what `ranks` does for users that are given by their factors, one row each.

        >>> factors = model.fold_in(user_items)
        >>> model.ranks_of_factors(factors, user_items, target)
        """
        _, items = self.both_factors()
        users = check_factors(user_factors, items.shape[1])
        _, without = check_selection(None, filter_items, len(items), "items")
        liked = self._check_user_items(user_items, len(users))
        wanted = self._check_user_items(target, len(users))
        banned = None if without is None else without.astype(np.int32)
        if not len(users):
            return np.empty(0, dtype=np.int32)
        ranks = self._index("items", items).ranks(users, wanted, liked, banned)
        unknown = are_zero(users)
        if unknown.any():
            there = np.repeat(unknown, np.diff(wanted.indptr))
            wanted, liked = rows_among(wanted, unknown), rows_among(liked, unknown)
            popular, queries = self._popular(None), np.ones((wanted.num_rows, 1), dtype=np.float32)
            index = self._index("popularity", popular, whole=False)
            ranks[there] = index.ranks(queries, wanted, liked, banned)
        return ranks

    def similar_items(
        self,
        itemid: ArrayLike,
        N: int = 10,
        recalculate_item: bool = False,
        item_users: Any = None,
        filter_items: ArrayLike | None = None,
        items: ArrayLike | None = None,
    ) -> tuple[Ids, Scores]:
        """Return the N best items by the cosine of y_i and y_j; see `Recommender`."""
        _, factors = self.both_factors()
        count = check_count(N, len(factors))
        asked = check_ids(itemid, None if recalculate_item else len(factors), "itemid")
        only, without = check_selection(items, filter_items, len(factors), "items")
        own = None if recalculate_item else np.atleast_1d(asked)
        if own is None:
            queries = self._fold_in_items(self._check_item_users(item_users, asked.size))
        else:
            queries = factors[own]
        found = self._similar("items", factors, queries, own, count, only, without)
        return shaped_like(asked, found)

    def similar_users(
        self,
        userid: ArrayLike,
        N: int = 10,
        filter_users: ArrayLike | None = None,
        users: ArrayLike | None = None,
    ) -> tuple[Ids, Scores]:
        """Return the N best users by the cosine of x_u and x_v; see `Recommender`."""
        factors, _ = self.both_factors()
        count = check_count(N, len(factors))
        asked = check_ids(userid, len(factors), "userid")
        only, without = check_selection(users, filter_users, len(factors), "users")
        own = np.atleast_1d(asked)
        found = self._similar("users", factors, factors[own], own, count, only, without)
        return shaped_like(asked, found)

    def fold_in(self, user_items: Any) -> Factors32:
        """Return the factors of new users, one per row of `user_items`; nothing is stored.

        `user_items` may also be an `Interactions`, whose items are found by their ids: those that
        the model does not know are left out with a warning; if it knows none, that is a KeyError.

        >>> model.fold_in(user_items[:2]).shape
        (2, 64)
        """
        if isinstance(user_items, Interactions):
            self.both_factors()
            _, user_items = rows_of_users(self, user_items, may_be_new=True)
        return self._fold_in_users(self._check_user_items(user_items, None))

    def recalculate_user(self, userid: ArrayLike, user_items: Any) -> Factors32:
        """Return the factors of one user (1-D) or an array of users, from `user_items` alone."""
        asked = check_ids(userid, None, "userid")
        factors = self._fold_in_users(self._check_user_items(user_items, asked.size))
        return factors[0] if asked.ndim == 0 else factors

    def recalculate_item(self, itemid: ArrayLike, item_users: Any) -> Factors32:
        """Return the factors of one item (1-D) or an array of items, from `item_users` alone."""
        asked = check_ids(itemid, None, "itemid")
        factors = self._fold_in_items(self._check_item_users(item_users, asked.size))
        return factors[0] if asked.ndim == 0 else factors

    def partial_fit_users(self, userids: ArrayLike | Interactions, user_items: Any = None) -> None:
        """Store the fold-in of these users; ids beyond the last one add users.

        Instead of both arguments there may be one `Interactions`, with the whole histories of its
        users: those whom the model knows by their ids are replaced, the others are added with
        their ids, and can be asked for at once. Unknown items are left out with a warning; known
        users who have no others stay as they were.

        >>> model.partial_fit_users([6040], user_items[7])
        >>> model.partial_fit_users(Interactions.from_frame({"user": ["new"], "item": ["Alien"]}))
        """
        with self.changes.partial_fit():
            users, _ = self.both_factors()
            joined = None
            if isinstance(userids, Interactions):
                check_alone("partial_fit_users", user_items)
                joined = join_users(self, userids)
                userids, user_items = joined.rows, joined.matrix
            ids = check_new_ids(userids, len(users), "userids")
            self._store_users(ids, self._check_user_items(user_items, ids.size))
            self.derived.drop(users)
            if joined is not None and joined.ids is not None:
                Names.of_users(self).forget()
                self.user_ids = joined.ids

    def partial_fit_items(self, itemids: ArrayLike | Interactions, item_users: Any = None) -> None:
        """Store what `recalculate_item` gives for these items; ids beyond the last add items.

        Instead of both arguments there may be one `Interactions`, with all users of its items:
        what holds for users in `partial_fit_users` holds for items here.
        """
        with self.changes.partial_fit():
            _, items = self.both_factors()
            joined = None
            if isinstance(itemids, Interactions):
                check_alone("partial_fit_items", item_users)
                joined = join_items(self, itemids)
                itemids, item_users = joined.rows, joined.matrix
            ids = check_new_ids(itemids, len(items), "itemids")
            audience = self._check_item_users(item_users, ids.size)
            factors = self._fold_in_items(audience)
            if self.item_popularity is not None:
                shares = self._popularity_of(audience)
                self.item_popularity = with_rows(self.item_popularity, ids, shares)
            self.item_factors = with_rows(items, ids, factors)
            self.derived.drop(items)
            if joined is not None and joined.ids is not None:
                Names.of_items(self).forget()
                self.item_ids = joined.ids

    def _store_users(self, ids: Indices, history: Csr) -> None:
        """Fold the users in, and replace or add their rows."""
        users, _ = self.both_factors()
        self.user_factors = with_rows(users, ids, self._fold_in_users(history))

    @abstractmethod
    def _fold_in_users(self, history: Csr) -> Factors32:
        """Return factors for users with these histories."""

    @abstractmethod
    def _fold_in_items(self, audience: Csr) -> Factors32:
        """Return factors for items with these audiences."""

    def both_factors(self) -> tuple[Factors32, Factors32]:
        """Return user and item factors; raise if the model is not fitted, or they do not fit."""
        if self.user_factors is None or self.item_factors is None:
            raise NotFittedError(f"this {type(self).__name__} is not fitted; call fit first")
        users, items = self.user_factors, self.item_factors
        for name, factors in (("user_factors", users), ("item_factors", items)):
            check_array(name, factors)
        if users.shape[1] != items.shape[1]:
            raise ValueError(
                f"user_factors has {users.shape[1]} columns, and item_factors {items.shape[1]}; "
                "assign factors of the same length"
            )
        return users, items

    def sizes(self) -> tuple[int, int]:
        """Return the numbers of users and items, those that partial fits have added included."""
        users, items = self.both_factors()
        return len(users), len(items)

    def _check_user_items(self, user_items: Any, count: int | None) -> Csr:
        now = len(self.both_factors()[1])
        known = range(min(self.shape[1], now), now + 1)
        return check_rows(user_items, count, "user", "item", known)

    def _check_item_users(self, item_users: Any, count: int | None) -> Csr:
        now = len(self.both_factors()[0])
        known = range(min(self.shape[0], now), now + 1)
        return check_rows(item_users, count, "item", "user", known)

    def _popularity_of(self, audience: Csr) -> Scores:
        """Return the share of the users who have each of these items."""
        return (np.diff(audience.indptr) / audience.num_columns).astype(np.float32)

    def _popular(self, only: Indices | None) -> Factors32:
        """Return the items' popularity as factors of length 1."""
        return self.popularity(only)[:, None]

    def _best_items(
        self,
        users: Indices | Csr,
        count: int,
        only: Indices | None,
        without: Indices | None,
        liked: Csr | None,
    ) -> Found:
        """Return the best items by x_u . y_i, where x_u is stored or folded in."""
        if isinstance(users, Csr):
            queries = self._fold_in_users(users)
        else:
            queries = self.both_factors()[0][users]
            finite = np.isfinite(queries).all(axis=1)
            if not finite.all():
                raise ValueError(
                    f"user_factors hold NaN or infinity for user {users[np.argmin(finite)]}; fit "
                    "again, or use recalculate_user=True"
                )
        return self._best_by_factors(queries, count, only, without, liked)

    def _best_by_factors(
        self,
        queries: Factors32,
        count: int,
        only: Indices | None,
        without: Indices | None,
        liked: Csr | None,
    ) -> Found:
        """Return the best of all items, or of `only` these; the most popular where x_u = 0."""
        _, factors = self.both_factors()
        candidates = factors if only is None else factors[only]
        index = self._index("items", candidates, whole=only is None)
        ids, scores = self._search(index, candidates, queries, count, only, without, liked)
        unknown = are_zero(queries)
        if unknown.any():
            popular, liked = self._popular(only), liked and rows_among(liked, unknown)
            index = self._index("popularity", popular, whole=False)
            ones = np.ones((np.count_nonzero(unknown), 1), dtype=np.float32)
            found = self._search(index, popular, ones, count, only, without, liked)
            ids[unknown], scores[unknown] = found
        return Found(ids, scores, unknown)

    def _similar(
        self,
        side: str,
        factors: Factors32,
        queries: Factors32,
        own: Indices | None,
        count: int,
        only: Indices | None,
        without: Indices | None,
    ) -> tuple[Ids, Scores]:
        """Search by cosine; `own` are the queries' own ids, each the first of its own results."""
        if only is None:
            unit, zero = self.derived.get(side, factors, lambda: directions(factors))
        else:
            unit, zero = directions(factors[only])
        left_out = zero if without is None else np.append(zero, without)
        sought, nowhere = directions(queries)
        index = self._index(f"{side}' directions", unit, whole=only is None)
        place = None if own is None else positions(own, only, left_out)
        exclude = None if place is None else one_each(place, len(unit))
        found = self._search(index, unit, sought, count, only, left_out, exclude)
        if own is not None and place is not None:
            found = with_own_first(found, np.where(place >= 0, own, PADDING_ID))
        ids, scores = found
        ids[nowhere], scores[nowhere] = PADDING_ID, PADDING_SCORE
        np.minimum(scores, 1, out=scores)
        return ids, scores

    def _search(
        self,
        index: Index,
        candidates: Factors32,
        queries: Factors32,
        count: int,
        names: Indices | None,
        without: Indices | None,
        exclude: Csr | None,
    ) -> tuple[Ids, Scores]:
        """Return the best candidates by dot product; candidate j has the id names[j], or j.

        `without` and the columns of `exclude` are candidates to leave out.
        """
        k = min(count, len(candidates))
        if not len(queries):
            return np.empty((0, k), dtype=np.int32), np.empty((0, k), dtype=np.float32)
        banned = None if without is None else without.astype(np.int32)
        return named(index.search(queries, k, exclude, banned), names)

    def _index(self, name: str, factors: Factors32, *, whole: bool = True) -> Index:
        """Return an index of the factors, cached under its name if it covers all rows (`whole`)."""
        backend = self._make_backend({Search: type(self).__name__})

        def make() -> Index:
            index: Index = backend.index(factors)
            return index

        if not whole:
            return make()
        key = ("index", name, repr(backend), self.num_threads)
        found: Index = self.derived.get(key, factors, make)
        return found

    def _make_backend(self, needs: dict[type, str], solvers: dict[str, str] | None = None) -> Any:
        """Return the backend, whose options may have changed since the fit."""
        options = {name: getattr(self, name) for name in ("backend", "num_threads", "device")}
        check_options(options, type(self))
        return make_backend(self.backend, self.num_threads, needs, solvers, self.device)
