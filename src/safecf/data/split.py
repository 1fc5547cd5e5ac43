"""Strong generalization: whole users are held out, and part of their history is to be predicted."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from safecf.errors import ParameterWarning

Integers = NDArray[np.integer[Any]]

# Liang et al. (2018) hide nothing of a shorter history, whatever the filter on users is.
SHORTEST_TO_HIDE = 5


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out users, one per row: `history` is shown to the model, `target` is to be predicted."""

    history: csr_matrix
    target: csr_matrix


@dataclass(frozen=True, eq=False)
class Split:
    """Training users, and two sets of held-out users over the same items.

    Column i is the item `item_ids[i]`. `user_ids` are the original ids of the rows of train,
    validation and test, in this order.
    """

    train: csr_matrix
    validation: HeldOut
    test: HeldOut
    item_ids: Integers
    user_ids: Integers


def strong_generalization(
    users: Integers,
    items: Integers,
    *,
    heldout: int,
    seed: int = 98765,
    min_interactions: int = 5,
    holdout_share: float = 0.2,
) -> Split:
    """Split interactions as the paper does; the n-th one is `users[n]` with `items[n]`.

    1. Keep the users with at least `min_interactions`, and shuffle them: the last `heldout` are
       test, those before them validation, the rest train.
    2. Items are numbered by first appearance in the training interactions; others are dropped.
    3. Of a held-out user's n >= 5 interactions, int(holdout_share n) go to the target at random.

    The draws are those of `numpy.random.seed(seed)`, so the order of the interactions matters.
    Reference: Liang et al., Variational Autoencoders for Collaborative Filtering, WWW 2018.
    """
    users, items = _checked_pairs(users, items)
    _check_options(heldout, holdout_share)
    active, row, count = np.unique(users, return_inverse=True, return_counts=True)
    keep = (count >= min_interactions)[row]
    users, items, active = users[keep], items[keep], active[count >= min_interactions]
    first_test = active.size - heldout
    first_validation = first_test - heldout
    if first_validation < 1:
        raise ValueError(
            f"heldout is {heldout}, twice, but only {active.size} users have at least "
            f"{min_interactions} interactions; lower heldout or min_interactions"
        )

    order = np.random.RandomState(seed).permutation(active.size)
    new_row = np.empty_like(order)
    new_row[order] = np.arange(active.size)
    row = new_row[np.searchsorted(active, users)]

    item_ids, column = _number_items(items, row < first_validation)
    row, column = row[column >= 0], column[column >= 0]

    def held_out(begin: int, end: int) -> HeldOut:
        inside = (row >= begin) & (row < end)
        rows, columns = row[inside], column[inside]
        # Users draw in ascending order of their original ids, order[r] being that of row r.
        by_id = np.argsort(order[rows], kind="stable")
        rows, columns = rows[by_id], columns[by_id]
        hidden = _choose_hidden(order[rows], holdout_share, np.random.RandomState(seed))
        shape = (end - begin, item_ids.size)
        return HeldOut(
            history=_binary(rows[~hidden] - begin, columns[~hidden], shape),
            target=_binary(rows[hidden] - begin, columns[hidden], shape),
        )

    training = row < first_validation
    return Split(
        train=_binary(row[training], column[training], (first_validation, item_ids.size)),
        validation=held_out(first_validation, first_test),
        test=held_out(first_test, active.size),
        item_ids=item_ids,
        user_ids=active[order],
    )


def _checked_pairs(users: Integers, items: Integers) -> tuple[Integers, Integers]:
    """Return the pairs without repetitions, which could end up in history and target both."""
    users, items = np.asarray(users), np.asarray(items)
    if users.ndim != 1 or users.shape != items.shape:
        raise ValueError(
            f"users and items have shapes {users.shape} and {items.shape}; "
            "give two 1-D arrays of the same length, one entry per interaction"
        )
    for name, ids in (("users", users), ("items", items)):
        if ids.dtype.kind not in "iu":
            raise TypeError(
                f"{name} holds values of type {ids.dtype}, not integers; "
                f"try numpy.unique({name}, return_inverse=True)[1]"
            )
    # lexsort is stable: of equal pairs, the first in the file comes first.
    order = np.lexsort((items, users))
    repeated = np.zeros(users.size, dtype=bool)
    repeated[order[1:]] = (np.diff(users[order]) == 0) & (np.diff(items[order]) == 0)
    if repeated.any():
        at = int(np.argmax(repeated))
        warnings.warn(
            f"{np.count_nonzero(repeated)} interactions repeat an earlier one and are dropped, "
            f"the first is user {users[at]} with item {items[at]}; drop duplicates beforehand",
            ParameterWarning,
            stacklevel=3,
        )
        users, items = users[~repeated], items[~repeated]
    return users, items


def _check_options(heldout: int, holdout_share: float) -> None:
    if heldout < 1:
        raise ValueError(f"heldout is {heldout}; hold out at least 1 user per set")
    if not 0 < holdout_share < 1:
        raise ValueError(f"holdout_share is {holdout_share}; it has to lie between 0 and 1")


def _number_items(
    items: Integers, training: NDArray[np.bool_]
) -> tuple[Integers, NDArray[np.int64]]:
    """Return the items in order of appearance in training, and every item's number or -1."""
    known, first = np.unique(items[training], return_index=True)
    by_appearance = np.argsort(first)
    number = np.empty(known.size, dtype=np.int64)
    number[by_appearance] = np.arange(known.size)
    place = np.minimum(np.searchsorted(known, items), known.size - 1)
    return known[by_appearance], np.where(known[place] == items, number[place], -1)


def _choose_hidden(
    grouped: Integers, share: float, random: np.random.RandomState
) -> NDArray[np.bool_]:
    """Mark int(share n) of each run of n equal values, drawn without replacement."""
    hidden = np.zeros(grouped.size, dtype=bool)
    _, starts, counts = np.unique(grouped, return_index=True, return_counts=True)
    for start, count in zip(starts, counts, strict=True):
        if count >= SHORTEST_TO_HIDE:
            hidden[start + random.choice(count, size=int(share * count), replace=False)] = True
    return hidden


def _binary(rows: Integers, columns: Integers, shape: tuple[int, int]) -> csr_matrix:
    return csr_matrix((np.ones(rows.size, dtype=np.float32), (rows, columns)), shape=shape)
