"""`Frames`: what a model can be asked by the original ids, answered by Arrow tables."""

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from safecf.checks import check_type
from safecf.data.matrices.ids import asked_ids
from safecf.data.matrices.interactions import Interactions
from safecf.models.answers import make_answers, select
from safecf.models.by_ids import Histories, Names, check_named
from safecf.models.queries import Indices, check_count
from safecf.models.ranking import Ids, Scores

if TYPE_CHECKING:
    from safecf.models.recommender import Recommender


class Frames:
    """Queries and answers in ids: those of the `Interactions` that the model was trained on.

    Without such ids, users and items are 0, 1, 2 and so on. Users and items that a partial fit by
    numbers has added have no id until one is appended to `user_ids` or `item_ids`.
    """

    @property
    def _model(self) -> "Recommender":
        return cast("Recommender", self)

    def recommend_frame(
        self,
        users: ArrayLike | None = None,
        N: int = 10,
        *,
        user_items: Interactions | None = None,
        filter_already_liked_items: bool = True,
        recalculate_user: bool = False,
        filter_items: ArrayLike | None = None,
        items: ArrayLike | None = None,
        histories: Interactions | None = None,
    ) -> pa.Table:
        """Return the N best items of users, as an Arrow table: user, item, score, rank, popular.

        `popular` says that nothing is known of the user, so that the items are the most popular
        ones. `.to_pandas()` makes a pandas frame of it, `polars.from_arrow(...)` a polars one.

        Parameters
        ----------
        users
            One id or an array of ids, each of which is answered as often as it is there; None
            means all in `histories` if that is given, all in `user_items` if they are
            recalculated, and otherwise all that the model knows.
        N
            How many items at most; ranks go from 1 to N, or to the number of items.
        user_items
            What the users already have; its users and items are found by their ids. Items that
            the model does not know are left out with a warning; if it knows none, that is an error.
        filter_already_liked_items
            Whether to leave out what they have; this needs `user_items`, as every answer of
            `EASE` does.
        recalculate_user
            Whether to compute the users from `user_items`, so that they may be new to the model.
        filter_items, items
            Ids of items to leave out, or to choose from. Unknown ids are ignored with a warning;
            it is a KeyError if `items` has no known one, or if ids are of another type.
        histories
            What some users have now, known to the model or not: they are computed from it, and it
            takes the place of their rows in `user_items`.
        """
        answers = make_answers(
            self._model,
            users,
            N,
            user_items=user_items,
            filter_already_liked_items=filter_already_liked_items,
            recalculate_user=recalculate_user,
            filter_items=filter_items,
            items=items,
            histories=histories,
        )
        return answers.table()

    def similar_items_frame(
        self,
        items: ArrayLike | None = None,
        N: int = 10,
        *,
        filter_items: ArrayLike | None = None,
        among: ArrayLike | None = None,
    ) -> pa.Table:
        """Return the N items most like each of `items`: item, similar, score and rank.

        The item itself is left out, while it is the first one in `similar_items`, as in implicit.

        Parameters
        ----------
        items
            One id or an array of ids; None means all.
        N
            How many similar items, at most.
        filter_items, among
            Ids of items to leave out, or to choose from; see `recommend_frame` for unknown ones.

        Examples
        --------
        >>> model.similar_items_frame("Alien").to_pandas()
        """
        model, names = self._model, Names.of_items(self._model)
        rows = names.rows(names.array if items is None else asked_ids(items))
        size = model.sizes()[1]
        only, without = select(names, size, ("among", among), ("filter_items", filter_items))
        count = check_count(N, size)
        found = model.similar_items(rows, count + 1, items=only, filter_items=without)
        return _similar("item", names, rows, found, count)

    def similar_users_frame(
        self,
        users: ArrayLike | None = None,
        N: int = 10,
        *,
        filter_users: ArrayLike | None = None,
        among: ArrayLike | None = None,
    ) -> pa.Table:
        """Return the N users most like each of `users`: user, similar, score and rank.

        The arguments are those of `similar_items_frame`.

        >>> model.similar_users_frame(["ann", "bob"], N=5).to_pandas()
        """
        model, names = self._model, Names.of_users(self._model)
        rows = names.rows(names.array if users is None else asked_ids(users))
        size = model.sizes()[0]
        only, without = select(names, size, ("among", among), ("filter_users", filter_users))
        count = check_count(N, size)
        found = model.similar_users(rows, count + 1, users=only, filter_users=without)
        return _similar("user", names, rows, found, count)

    def explain_frame(
        self, user: Any, item: Any, N: int = 10, *, user_items: Interactions
    ) -> pa.Table:
        """Return how much items of a user's history add to an item's score: item, contribution.

        The user is found in `user_items`, and may be new to the model. Items that the model does
        not know are left out with a warning; see `explain`.

        >>> model.explain_frame("ann", "Alien", user_items=interactions).to_pandas()
        """
        check_type("user_items", user_items, Interactions, "pass what the user has")
        model, items = self._model, Names.of_items(self._model)
        check_named(model, user_items, users_too=False)
        users = Names.make(model, "history", user_items.user_ids, user_items.num_users)
        row, column = users.rows(user, "user (in user_items)"), items.rows(item)
        if row.size != 1 or column.size != 1:
            raise ValueError("explain_frame is about one user and one item; call it for each pair")
        history = Histories.of_users(model, user_items, row).take(row)
        _, found, _ = model.explain(0, history, int(column[0]), N=N)
        columns = {
            "item": items.to_arrow().take(pa.array([at for at, _ in found], type=pa.int64())),
            "contribution": pa.array([value for _, value in found], type=pa.float64()),
        }
        return pa.table(columns)


def _similar(
    side: str, names: Names, rows: Indices, found: tuple[Ids, Scores], count: int
) -> pa.Table:
    """Return the first `count` of what was found for each row, without the row itself."""
    ids, scores = found
    others = (ids >= 0) & (ids != rows[:, None])
    ranks = np.cumsum(others, axis=1, dtype=np.int32)
    there = others & (ranks <= count)
    number, _ = np.nonzero(there)
    known = names.to_arrow()
    columns = {
        side: known.take(pa.array(rows[number])),
        "similar": known.take(pa.array(ids[there])),
        "score": pa.array(scores[there]),
        "rank": pa.array(ranks[there]),
    }
    return pa.table(columns)
