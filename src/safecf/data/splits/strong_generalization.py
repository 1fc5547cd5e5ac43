"""Strong generalization, the paper's split: held-out users are new to the model."""

import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from safecf.checks import check_integer, check_number
from safecf.data.splits.held_out import (
    HeldOut,
    Integers,
    Split,
    check_labels,
    check_seed,
    check_weights,
    first_of_pairs,
    number_items,
    sparse,
)
from safecf.data.splits.protocol import (
    HIDDEN_SHARE,
    MIN_INTERACTIONS,
    MOST_REPEATS,
    REPEATS,
    SEED,
    SEED_BOUND,
    SHORTEST_TO_HIDE,
)
from safecf.errors import shown


def strong_generalization(
    users: Integers,
    items: Integers,
    *,
    heldout: int,
    seed: int = SEED,
    min_interactions: int = MIN_INTERACTIONS,
    holdout_share: float = HIDDEN_SHARE,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> Split:
    """Split interactions as the paper does; the n-th one is `users[n]` with `items[n]`.

    1. Keep the users with at least `min_interactions`, and shuffle them: the last `heldout` are
       test users, the `heldout` before them validation users, the others training users.
    2. Number the items by first appearance in the training interactions; drop all other items.
    3. Of a held-out user's n >= 5 interactions, int(holdout_share n), drawn at random, are the
       target, the others the history.

    The draws are those of `numpy.random.seed(seed)`, so the order of the interactions matters.
    `weights`, one per interaction, become the values of the matrices, which are ones by default.
    `groups` has one label for each of `numpy.unique(users)`.
    Reference: Liang et al., Variational Autoencoders for Collaborative Filtering, WWW 2018.
    """
    _check_options(heldout, holdout_share)
    check_seed(seed)
    users, items, values = _unique_pairs(users, items, weights)
    active, row, count = np.unique(users, return_inverse=True, return_counts=True)
    labels = check_labels(groups, active.size)
    labels = None if labels is None else labels[count >= min_interactions]
    keep = (count >= min_interactions)[row]
    users, items, active = users[keep], items[keep], active[count >= min_interactions]
    values = None if values is None else values[keep]
    first_test = active.size - heldout
    first_validation = first_test - heldout
    if first_validation < 1:
        raise ValueError(
            f"heldout={heldout} for validation and again for the test, but only {active.size} "
            f"users have at least {min_interactions} interactions; "
            + ("lower heldout" if heldout > 1 else "3 are needed, give more data")
            + ", or lower min_interactions" * (min_interactions > 1)
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
        # Users draw in ascending order of their ids; order[r] is the rank of row r's id.
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
    repeats: int = REPEATS,
    seed: int = SEED,
    min_interactions: int = MIN_INTERACTIONS,
    holdout_share: float = HIDDEN_SHARE,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> Iterator[Split]:
    """Yield the splits of the paper's robustness study: `strong_generalization`, `repeats` times.

    The seeds are those of `repeated_seeds`. The test users of one split are training users of
    others, so hyperparameters that were tuned on one split have seen users of the others.

    >>> for split in repeated_strong_generalization(users, items, heldout=1000): ...
    """
    _check_options(heldout, holdout_share)
    users, items, values = _unique_pairs(users, items, weights)
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


def repeated_seeds(repeats: int = REPEATS, seed: int = SEED) -> list[int]:
    """numpy.random.RandomState(seed).randint(0, 100000000, size=repeats).

    With the default seed, fewer than 50 repeats are the first of the paper's 50 splits.

    >>> repeated_seeds(2) == repeated_seeds(50)[:2]
    True
    """
    if check_integer("repeats", repeats, 1, default=REPEATS) > MOST_REPEATS:
        raise ValueError(
            f"repeats={repeats} has to be at most {MOST_REPEATS:,}; try repeats={REPEATS}"
        )
    check_seed(seed)
    drawn = np.random.RandomState(seed).randint(0, SEED_BOUND, size=repeats)
    return [int(each) for each in drawn]


def _check_options(heldout: Any, holdout_share: float) -> None:
    if isinstance(heldout, bool) or not isinstance(heldout, numbers.Integral):
        raise TypeError(f"heldout={shown(heldout)}; give a whole number of users")
    if heldout < 1:
        raise ValueError(f"heldout={heldout}; hold out at least 1 user per set")
    if not 0 < check_number("holdout_share", holdout_share, default=HIDDEN_SHARE) < 1:
        raise ValueError(f"holdout_share={holdout_share}; it has to lie between 0 and 1: try 0.2")


def _unique_pairs(
    users: Integers, items: Integers, weights: ArrayLike | None
) -> tuple[Integers, Integers, NDArray[np.float32] | None]:
    """Return users, items and weights without repeated pairs."""
    users, items = np.asarray(users), np.asarray(items)
    first = first_of_pairs(users, items)
    values = check_weights(weights, users.size)
    return users[first], items[first], None if values is None else values[first]


def _choose_hidden(
    grouped: Integers, share: float, random: np.random.RandomState
) -> NDArray[np.bool_]:
    """Mark int(share n) entries of each run of n equal values, drawn without replacement."""
    hidden = np.zeros(grouped.size, dtype=bool)
    _, starts, counts = np.unique(grouped, return_index=True, return_counts=True)
    for start, count in zip(starts, counts, strict=True):
        if count >= SHORTEST_TO_HIDE:
            hidden[start + random.choice(count, size=int(share * count), replace=False)] = True
    return hidden
