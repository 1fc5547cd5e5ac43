"""Splits: what is trained on, what is shown of the held-out users, and what is to be predicted.

Strong generalization, the paper's way, is here: whole users are held out. `per_user_holdout` and
`temporal` hold out a part of users that are trained on.
"""

import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from safecf.data.splits.known_users import per_user_holdout, temporal
from safecf.data.splits.records import (
    HeldOut,
    Integers,
    Split,
    checked_labels,
    checked_weights,
    first_of_pairs,
    number_items,
    sparse,
)

__all__ = [
    "HeldOut",
    "Split",
    "per_user_holdout",
    "repeated_seeds",
    "repeated_strong_generalization",
    "strong_generalization",
    "temporal",
]

# Liang et al. (2018) hide nothing of a shorter history, whatever the filter on users is.
SHORTEST_TO_HIDE = 5


def strong_generalization(
    users: Integers,
    items: Integers,
    *,
    heldout: int,
    seed: int = 98765,
    min_interactions: int = 5,
    holdout_share: float = 0.2,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> Split:
    """Split interactions as the paper does; the n-th one is `users[n]` with `items[n]`.

    Held-out users are new to the model: training has nothing of them.

    1. Keep the users with at least `min_interactions`, and shuffle them: the last `heldout` are
       test, those before them validation, the rest train.
    2. Items are numbered by first appearance in the training interactions; others are dropped.
    3. Of a held-out user's n >= 5 interactions, int(holdout_share n) go to the target at random.

    The draws are those of `numpy.random.seed(seed)`, so the order of the interactions matters.
    `weights`, one per interaction, are those of the matrices, which hold ones without them.
    `groups` has one label for each of `numpy.unique(users)`.
    Reference: Liang et al., Variational Autoencoders for Collaborative Filtering, WWW 2018.
    """
    users, items = np.asarray(users), np.asarray(items)
    _check_options(heldout, holdout_share)
    first = first_of_pairs(users, items)
    values = checked_weights(weights, users.size)
    users, items = users[first], items[first]
    active, row, count = np.unique(users, return_inverse=True, return_counts=True)
    labels = checked_labels(groups, active.size)
    labels = None if labels is None else labels[count >= min_interactions]
    keep = (count >= min_interactions)[row]
    users, items, active = users[keep], items[keep], active[count >= min_interactions]
    values = None if values is None else values[first][keep]
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

    item_ids, column = number_items(items, row < first_validation)
    dropped = int(np.count_nonzero(column < 0))
    known = np.flatnonzero(column >= 0)
    row, column = row[known], column[known]
    values = None if values is None else values[known]

    def matrix(entries: NDArray[Any], begin: int, end: int) -> csr_matrix:
        shape = (end - begin, item_ids.size)
        return sparse(
            row[entries] - begin,
            column[entries],
            shape,
            None if values is None else values[entries],
        )

    def held_out(begin: int, end: int) -> HeldOut:
        inside = np.flatnonzero((row >= begin) & (row < end))
        # Users draw in ascending order of their original ids, order[r] being that of row r.
        inside = inside[np.argsort(order[row[inside]], kind="stable")]
        hidden = _choose_hidden(order[row[inside]], holdout_share, np.random.RandomState(seed))
        return HeldOut(
            history=matrix(inside[~hidden], begin, end),
            target=matrix(inside[hidden], begin, end),
            groups=None if labels is None else labels[order[begin:end]],
        )

    return Split(
        train=matrix(np.flatnonzero(row < first_validation), 0, first_validation),
        validation=held_out(first_validation, first_test),
        test=held_out(first_test, active.size),
        item_ids=item_ids,
        user_ids=active[order],
        dropped=dropped,
    )


def repeated_strong_generalization(
    users: Integers,
    items: Integers,
    *,
    heldout: int,
    repeats: int = 50,
    seed: int = 98765,
    min_interactions: int = 5,
    holdout_share: float = 0.2,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> Iterator[Split]:
    """Yield the splits of the paper's robustness study: `strong_generalization`, `repeats` times.

    Their seeds are those of `repeated_seeds`. The test users of one split train in others, so a
    setting that was chosen on one is not new to the next.

    >>> for split in repeated_strong_generalization(users, items, heldout=1000): ...
    """
    users, items = np.asarray(users), np.asarray(items)
    _check_options(heldout, holdout_share)
    first = first_of_pairs(users, items)
    values = checked_weights(weights, users.size)
    users, items = users[first], items[first]
    values = None if values is None else values[first]
    return (
        strong_generalization(
            users,
            items,
            heldout=heldout,
            seed=drawn,
            min_interactions=min_interactions,
            holdout_share=holdout_share,
            weights=values,
            groups=groups,
        )
        for drawn in repeated_seeds(repeats, seed)
    )


def repeated_seeds(repeats: int = 50, seed: int = 98765) -> list[int]:
    """Return numpy.random.RandomState(seed).randint(0, 100000000, size=repeats)."""
    if repeats < 1:
        raise ValueError(f"repeats is {repeats}; ask for at least 1 split")
    drawn = np.random.RandomState(seed).randint(0, 100000000, size=repeats)
    return [int(each) for each in drawn]


def _check_options(heldout: Any, holdout_share: float) -> None:
    if isinstance(heldout, bool) or not isinstance(heldout, numbers.Integral):
        raise TypeError(f"heldout is {heldout!r}; it has to be a whole number of users")
    if heldout < 1:
        raise ValueError(f"heldout is {heldout}; hold out at least 1 user per set")
    if not 0 < holdout_share < 1:
        raise ValueError(f"holdout_share is {holdout_share}; it has to lie between 0 and 1")


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
