"""`ByIds`: recommendations by the original ids of users and items."""

from abc import abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from safecf.data.matrices.ids import IdArray, Index
from safecf.data.matrices.interactions import Interactions
from safecf.models.cached import Cached
from safecf.models.recommender import Ids, Scores


class ByIds(Cached):
    """What a model can be asked by original ids.

    `user_ids[u]` and `item_ids[i]` are those of the `Interactions` that it was trained on; None
    stands for 0, 1, 2 and so on. Users and items that a partial fit has added have no id until one
    is appended to these arrays.
    """

    user_ids: IdArray | None = None
    item_ids: IdArray | None = None

    # whether the model stores nothing of the users, so that it has to be shown their histories
    _needs_histories = False

    @abstractmethod
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
        """Return the N best items by row and column numbers."""

    @abstractmethod
    def _sizes(self) -> tuple[int, int]:
        """Return the numbers of users and items; an error if the model is not fitted."""

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
    ) -> pa.Table:
        """Return the N best items of users, as an Arrow table: user, item, score and rank.

        `.to_pandas()` makes a pandas frame of it, `polars.from_arrow(...)` a polars one.

        Parameters
        ----------
        users
            One id or an array of ids; None means all that the model knows, or all in `user_items`
            if they are recalculated.
        N
            How many items at most; ranks go from 1 to N.
        user_items
            What the users already have; its users and items are found by their ids.
        filter_already_liked_items
            Whether to leave out what they have; this needs `user_items`, as every answer of
            `EASE` does.
        recalculate_user
            Whether to compute the users from `user_items`, so that they may be new to the model.
        filter_items, items
            Ids of items to leave out, or to choose from. Unknown ids raise a KeyError.
        """
        num_users, num_items = self._sizes()
        user_ids, item_ids = _ids(self.user_ids, num_users), _ids(self.item_ids, num_items)
        needed = filter_already_liked_items or recalculate_user or self._needs_histories
        if needed and not isinstance(user_items, Interactions):
            hint = "" if self._needs_histories else ", or filter_already_liked_items=False"
            raise TypeError(
                f"user_items is of type {type(user_items).__name__}, not Interactions; pass what "
                f"the users already have{hint}"
            )
        known = user_ids
        if recalculate_user and user_items is not None:
            known = _ids(user_items.user_ids, user_items.num_users)
        asked = known if users is None else np.atleast_1d(np.asarray(users))
        rows = self._index("user", known).rows(asked, "user")
        histories = None
        if needed and user_items is not None:
            histories = self._histories(user_items, asked, item_ids, num_items)
        chosen, without = (
            None if ids is None else self._index("item", item_ids).rows(ids, "item")
            for ids in (items, filter_items)
        )
        if chosen is None and item_ids.size < num_items:
            unnamed = np.arange(item_ids.size, num_items)
            without = unnamed if without is None else np.append(without, unnamed)
        best, scores = self.recommend(
            rows,
            histories,
            N=N,
            filter_already_liked_items=filter_already_liked_items,
            filter_items=without,
            recalculate_user=recalculate_user,
            items=chosen,
        )
        there = best >= 0
        number, rank = np.nonzero(there)
        columns = {
            "user": pa.array(known[rows[number]]),
            "item": pa.array(item_ids[best[there]]),
            "score": pa.array(scores[there]),
            "rank": pa.array((rank + 1).astype(np.int32)),
        }
        return pa.table(columns)

    def _histories(
        self, interactions: Interactions, asked: NDArray[Any], item_ids: IdArray, num_items: int
    ) -> scipy.sparse.csr_matrix:
        """Return the rows of these users, with the model's columns; unknown items are dropped."""
        own_users = _ids(interactions.user_ids, interactions.num_users)
        own_items = _ids(interactions.item_ids, interactions.num_items)
        rows = self._index("history", own_users).rows(asked, "user (in user_items)")
        chosen = interactions.to_csr()[rows]
        there, place = np.unique(chosen.indices, return_inverse=True)
        column = self._index("item", item_ids).find(own_items[there])[place]
        keep = column >= 0
        indptr = np.append(0, np.cumsum(keep))[chosen.indptr]
        shape = (rows.size, num_items)
        histories = scipy.sparse.csr_matrix((chosen.data[keep], column[keep], indptr), shape=shape)
        histories.sort_indices()
        return histories

    def _index(self, name: str, ids: IdArray) -> Index:
        """Return the way from ids to numbers, which takes a while to find if they are many."""
        # A view of ids that has been cut to size is another object every time.
        source = ids if ids.base is None else ids.base
        index: Index = self._cached((name, ids.size), source, lambda: Index(ids, ids.size))
        return index


def _ids(ids: IdArray | None, size: int) -> IdArray:
    return np.arange(size) if ids is None else ids if ids.size <= size else ids[:size]
