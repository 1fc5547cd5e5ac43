"""Recommendations by the original ids of users and items."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from safecf.data.matrices.ids import IdArray, Index, asked_ids, to_arrow
from safecf.data.matrices.interactions import Interactions
from safecf.data.reading.arrow import load_pandas
from safecf.errors import ParameterWarning, warn

if TYPE_CHECKING:
    from safecf.models.recommender import Recommender


def recommend_frame(
    model: "Recommender",
    users: ArrayLike | None,
    N: int,
    *,
    user_items: Interactions | None,
    filter_already_liked_items: bool,
    recalculate_user: bool,
    filter_items: ArrayLike | None,
    items: ArrayLike | None,
) -> pa.Table:
    """Map ids to indices, recommend, and map the results back to ids.

    `user_ids[u]` and `item_ids[i]` are those of the `Interactions` that the model was trained on;
    None stands for 0, 1, 2 and so on. Users and items that a partial fit has added have no id
    until one is appended to these arrays. The arguments are those of `Recommender.recommend_frame`.
    """
    num_users, num_items = model.sizes()
    user_ids, item_ids = _ids(model.user_ids, num_users), _ids(model.item_ids, num_items)
    needed = filter_already_liked_items or recalculate_user or model.needs_histories
    if needed and not isinstance(user_items, Interactions):
        hint = "" if model.needs_histories else ", or filter_already_liked_items=False"
        raise TypeError(
            f"user_items is of type {type(user_items).__name__}, not Interactions; pass what "
            f"the users already have{hint}"
        )
    if needed and user_items is not None:
        _check_named(model, user_items, users_too=not recalculate_user)
    known = user_ids
    if recalculate_user and user_items is not None:
        known = _ids(user_items.user_ids, user_items.num_users)
    asked = known if users is None else asked_ids(users)
    rows = _index(model, "user", known).rows(asked, "user")
    histories = None
    if needed and user_items is not None:
        histories = _histories(model, user_items, asked, item_ids, num_items)
    chosen, without = (
        None if ids is None else _index(model, "item", item_ids).rows(ids, "item")
        for ids in (items, filter_items)
    )
    if chosen is None and item_ids.size < num_items:
        unnamed = np.arange(item_ids.size, num_items)
        without = unnamed if without is None else np.append(without, unnamed)
    best, scores = model.recommend(
        rows,
        histories,
        N=N,
        filter_already_liked_items=filter_already_liked_items,
        filter_items=without,
        recalculate_user=recalculate_user,
        items=chosen,
    )
    load_pandas()
    there = best >= 0
    number, rank = np.nonzero(there)
    columns = {
        "user": to_arrow(known[rows[number]]),
        "item": to_arrow(item_ids[best[there]]),
        "score": pa.array(scores[there]),
        "rank": pa.array((rank + 1).astype(np.int32)),
    }
    return pa.table(columns)


def _histories(
    model: "Recommender",
    interactions: Interactions,
    asked: NDArray[Any],
    item_ids: IdArray,
    num_items: int,
) -> scipy.sparse.csr_matrix:
    """Return the users' rows in the model's columns; unknown items are dropped with a warning.

    If none of their items is known, that is a KeyError.
    """
    own_users = _ids(interactions.user_ids, interactions.num_users)
    own_items = _ids(interactions.item_ids, interactions.num_items)
    rows = _index(model, "history", own_users).rows(asked, "user (in user_items)")
    chosen = interactions.users.to_scipy()[rows]
    there, place = np.unique(chosen.indices, return_inverse=True)
    index = _index(model, "item", item_ids)
    found = index.find(own_items[there])
    if there.size and (found < 0).all():
        raise _nothing_known(own_items[there], item_ids)
    if (found < 0).any():
        unknown = own_items[there[found < 0]].tolist()
        warn(
            f"{len(unknown):,} of {there.size:,} items in the users' histories are unknown to the "
            f"model and left out, such as {unknown[0]!r}",
            ParameterWarning,
        )
    column = found[place]
    keep = column >= 0
    indptr = np.append(0, np.cumsum(keep))[chosen.indptr]
    shape = (rows.size, num_items)
    histories = scipy.sparse.csr_matrix((chosen.data[keep], column[keep], indptr), shape=shape)
    histories.sort_indices()
    return histories


def _nothing_known(items: IdArray, known: IdArray) -> KeyError:
    """Return the error of histories of which no item is known."""
    first, example = items[:1].tolist()[0], known[:1].tolist()[0]
    hint = "use the item ids of the training data"
    if isinstance(first, str) != isinstance(example, str):
        kinds = ("strings", "integers") if isinstance(first, str) else ("integers", "strings")
        hint = f"they are {kinds[0]}, while those of the training data are {kinds[1]}; convert them"
    return KeyError(
        f"all {items.size:,} items in user_items are unknown to the model, such as {first!r}, "
        f"where {example!r} is known: {hint}"
    )


def _check_named(model: "Recommender", user_items: Interactions, *, users_too: bool) -> None:
    """Raise if the model has ids and `user_items` has none: row numbers would be taken for ids."""
    sides = [("item", model.item_ids, user_items.item_ids)]
    if users_too:
        sides.append(("user", model.user_ids, user_items.user_ids))
    for side, known, given in sides:
        if known is not None and given is None:
            raise TypeError(
                f"user_items has no {side} ids, while the model was trained with some, such as "
                f"{known[:1].tolist()[0]!r}; try Interactions.from_csr(matrix, user_ids, item_ids)"
            )


def _index(model: "Recommender", name: str, ids: IdArray) -> Index:
    """Return the look-up table from ids to numbers, kept with the model."""
    # A view of ids that has been cut to size is another object every time.
    source = ids if ids.base is None else ids.base
    index: Index = model.derived.get((name, ids.size), source, lambda: Index(ids, ids.size))
    return index


def _ids(ids: IdArray | None, size: int) -> IdArray:
    return np.arange(size) if ids is None else ids if ids.size <= size else ids[:size]
