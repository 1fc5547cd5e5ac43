"""`Recommender`: what every model can be asked, in the vocabulary of `implicit`."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from safecf.data.matrices.csr import Csr
from safecf.data.matrices.interactions import Interactions
from safecf.errors import ParameterWarning, warn
from safecf.models.by_ids import rows_of_users
from safecf.models.callbacks import Callback
from safecf.models.frames import Frames
from safecf.models.model import Model
from safecf.models.popularity import resized
from safecf.models.queries import (
    Indices,
    check_count,
    check_ids,
    check_one,
    check_selection,
    columns_among,
    slices,
)
from safecf.models.ranking import Found, Ids, Scores


class Recommender(Frames, Model):
    """A model that ranks items for users. Users are the rows of the data, items the columns.

    >>> model = SAFER2(factors=32, random_state=0).fit(user_items)
    >>> ids, scores = model.recommend(7, user_items[7], N=20)
    """

    # share of the training users who have each item; None in models from files of version 0.1
    item_popularity: NDArray[np.float32] | None = None

    # whether the model stores nothing of the users, so that it has to be shown their histories
    needs_histories = False

    @abstractmethod
    def fit(
        self, user_items: Any, show_progress: bool = True, callback: Callback | None = None
    ) -> Self:
        """Train from scratch; an earlier fit is forgotten. An error leaves the model as it was.

        While it runs, other fits and partial fits of the same model are refused.

        Parameters
        ----------
        user_items
            Sparse matrix (users, items); the values are confidence weights, 1 if there are none.
        show_progress
            Whether to show a progress bar on stderr.
        callback
            Called as `callback(epoch, seconds, objective)` after every epoch, counted from 0.
            Training stops when it returns True.
        """

    def recommend(
        self,
        userid: ArrayLike,
        user_items: Any,
        N: int = 10,
        filter_already_liked_items: bool = True,
        filter_items: ArrayLike | None = None,
        recalculate_user: bool = False,
        items: ArrayLike | None = None,
    ) -> tuple[Ids, Scores]:
        """Return the N best items of one user, or of every user of an array.

        A user of whom nothing is known, because there are no interactions or only with items that
        have none in training, gets the most popular items; their scores are the shares of the
        training users who have them, `item_popularity`.

        Parameters
        ----------
        userid
            One user (the results are 1-D) or an array of users (2-D, one row each).
        user_items
            Sparse matrix with one row per user in `userid`: what the user already has. Only
            looked at by `filter_already_liked_items` and `recalculate_user`.
        N
            How many items; at most the number of items, or of `items`. The width of the results.
        filter_already_liked_items
            Whether to leave out the items in the user's row of `user_items`.
        filter_items
            Items to leave out for everybody.
        recalculate_user
            Whether to compute the user from `user_items` instead of what was stored in training;
            `userid` may then be any integer.
        items
            Rank only these. Not together with `filter_items`.

        Returns
        -------
        ids, scores
            Best first, ties by item index; where filters leave fewer than N items, the ids are
            -1 and the scores -3.4e38.
        """
        found = self.recommend_flagged(
            userid,
            user_items,
            N,
            filter_already_liked_items,
            filter_items,
            recalculate_user,
            items,
        )
        if np.ndim(userid) == 0:
            return found.ids[0], found.scores[0]
        return found.ids, found.scores

    def recommend_flagged(
        self,
        userid: ArrayLike,
        user_items: Any,
        N: int = 10,
        filter_already_liked_items: bool = True,
        filter_items: ArrayLike | None = None,
        recalculate_user: bool = False,
        items: ArrayLike | None = None,
    ) -> Found:
        """Return what `recommend` does, with a row for every user, and who got popular items.

        >>> ids, scores, popular = model.recommend_flagged([7, 8], user_items[[7, 8]])
        >>> popular  # nothing is known of user 8
        array([False,  True])
        """
        num_users, num_items = self.sizes()
        count = check_count(N, num_items)
        asked = check_ids(userid, None if recalculate_user else num_users, "userid")
        only, without = check_selection(items, filter_items, num_items, "items")
        computed = recalculate_user or self.needs_histories
        history = liked = None
        if filter_already_liked_items or computed:
            history = self._check_user_items(user_items, asked.size)
        if filter_already_liked_items and history is not None:
            liked = history if only is None else columns_among(history, only)
        users = history if computed and history is not None else np.atleast_1d(asked)
        return self._best_items(users, count, only, without, liked)

    @abstractmethod
    def _best_items(
        self,
        users: Indices | Csr,
        count: int,
        only: Indices | None,
        without: Indices | None,
        liked: Csr | None,
    ) -> Found:
        """Return the best of all items, or of `only` these, for stored users or by histories.

        `without` are left out for all, and the columns of `liked` for each; where there is `only`,
        these are counted among it.
        """

    @abstractmethod
    def _check_user_items(self, user_items: Any, count: int | None) -> Csr:
        """Return histories, which have `count` rows and the model's columns."""

    @abstractmethod
    def ranks(self, user_items: Any, target: Any, filter_items: ArrayLike | None = None) -> Ids:
        """Return the rank of every item in `target`, among all that the user does not have yet.

        rank_ui = 1 + |{j not in user_items_u : score_uj > score_ui, or equal and j < i}|

        It is the item's place in the list that `recommend` would return for a user who is computed
        from `user_items`, if N were the number of items.

        Parameters
        ----------
        user_items
            Sparse matrix with one row per user: what the user already has, which is not ranked.
        target
            Sparse matrix with one row per user: the items whose ranks are wanted.
        filter_items
            Items that are not ranked for anybody.

        Returns
        -------
        ranks
            One per entry of `target`, row by row, items ascending; 0 for an item that is not
            ranked.

        >>> model.ranks(history, target)  # of two users who have two and one held-out items
        array([12,  3, 40], dtype=int32)
        """

    @abstractmethod
    def similar_items(
        self,
        itemid: ArrayLike,
        N: int = 10,
        recalculate_item: bool = False,
        item_users: Any = None,
        filter_items: ArrayLike | None = None,
        items: ArrayLike | None = None,
    ) -> tuple[Ids, Scores]:
        """Return the N items most like one item, or like every item of an array.

        An item is most like itself. The rest is as in `recommend`; `item_users` is a sparse
        matrix with one row per item and a column per user, needed for `recalculate_item`.
        """

    @abstractmethod
    def similar_users(
        self,
        userid: ArrayLike,
        N: int = 10,
        filter_users: ArrayLike | None = None,
        users: ArrayLike | None = None,
    ) -> tuple[Ids, Scores]:
        """Return the N users most like one user, or like every user of an array."""

    def rank_items(
        self,
        userid: ArrayLike,
        user_items: Any,
        selected_items: ArrayLike,
        recalculate_user: bool = False,
    ) -> tuple[Ids, Scores]:
        """Return all of `selected_items`, best first, with their scores."""
        return self.recommend(
            userid,
            user_items,
            N=max(1, np.size(selected_items)),
            filter_already_liked_items=False,
            recalculate_user=recalculate_user,
            items=selected_items,
        )

    def recommend_all(
        self,
        user_items: Any,
        N: int = 10,
        recalculate_user: bool = False,
        filter_already_liked_items: bool = True,
        filter_items: ArrayLike | None = None,
        users_items_offset: int = 0,
        items: ArrayLike | None = None,
    ) -> Ids:
        """Return the N best items of every row of `user_items`, a row each.

        The first row is that of user `users_items_offset`. Users and items of an `Interactions`
        are found by their ids instead; the answers are numbers of items all the same, and
        `recommend_frame` has their ids. The rest is as in `recommend`; users are answered some
        thousands at a time.

        >>> model.recommend_all(user_items, N=20).shape
        (6040, 20)
        """
        if isinstance(user_items, Interactions):
            users, history = rows_of_users(self, user_items, may_be_new=recalculate_user)
        else:
            history = self._check_user_items(user_items, None)
            users = users_items_offset + np.arange(history.num_rows)
        options = (N, filter_already_liked_items, filter_items, recalculate_user, items)
        parts = [
            self.recommend_flagged(users[start:stop], history.part(start, stop), *options).ids
            for start, stop in slices(history.num_rows)
        ]
        return np.concatenate(parts)

    def explain(
        self,
        userid: int,
        user_items: Any,
        itemid: int,
        user_weights: Any = None,
        N: int = 10,
    ) -> tuple[float, list[tuple[int, float]], Any]:
        """Return how much each item of a user's history adds to the score of an item.

            score_ui = sum_{j in V_u} contribution_uij

        The user is computed from the history, as by `recalculate_user` in `recommend`, but in
        float64. One of whom nothing is known has no contributions, and the score 0.

        Parameters
        ----------
        userid
            The user; any integer if `user_items` has one row.
        user_items
            Sparse matrix: the user's row alone, or a row for every user.
        itemid
            The item whose score is explained.
        user_weights
            What an earlier call returned for the same user, which saves time.
        N
            How many contributions.

        Returns
        -------
        score, contributions, user_weights
            The sum of all contributions; the N largest as (item, contribution), best first; and
            what may be passed to the next call for this user.

        >>> score, contributions, _ = model.explain(7, user_items, 42, N=2)
        >>> score, contributions
        (0.61, [(17, 0.22), (3, 0.19)])
        """
        num_items = self.sizes()[1]
        count = check_count(N, num_items)
        user, item = check_one(userid, None, "userid"), check_one(itemid, num_items, "itemid")
        history = self._check_user_items(user_items, None)
        if history.num_rows != 1:
            row = check_one(user, history.num_rows, "userid")
            history = history.part(row, row + 1)
        if history.nnz == 0:
            return 0.0, [], user_weights
        each, user_weights = self._contributions(history, item, user_weights)
        best = np.argsort(-each, kind="stable")[:count]
        pairs = zip(history.indices[best].tolist(), each[best].tolist(), strict=True)
        return float(each.sum()), list(pairs), user_weights

    @abstractmethod
    def _contributions(
        self, history: Csr, item: int, user_weights: Any
    ) -> tuple[NDArray[np.float64], Any]:
        """Return what each entry of the one row adds to the item's score, and what can be kept."""

    @abstractmethod
    def sizes(self) -> tuple[int, int]:
        """Return the numbers of users and items; an error if the model is not fitted."""

    def popularity(self, items: NDArray[np.int64] | None = None) -> Scores:
        """Return the `item_popularity` of all items, or of these; 0 for one that is not known."""
        if self.item_popularity is None:
            warn(
                "users of whom nothing is known get the first items with score 0: the model's file "
                "is of version 0.1 and does not tell how popular items are; fit the model again",
                ParameterWarning,
            )
        found = resized(self.item_popularity, self.sizes()[1])
        return found if items is None else found[items]
