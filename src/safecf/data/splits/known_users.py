"""Splits that hold out some interactions of training users: at random, or by time."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from safecf.checks import check_number
from safecf.data.matrices.csr import TRANSPOSED_ROW, check_fits
from safecf.data.matrices.csr_from_scipy import check_matrix
from safecf.data.matrices.interactions import Interactions
from safecf.data.reading.times import to_datetime64
from safecf.data.splits.held_out import (
    HeldOut,
    Ids,
    Integers,
    Labels,
    Split,
    check_labels,
    check_seed,
    check_weights,
    first_of_pairs,
    number_items,
    sparse,
)
from safecf.data.splits.protocol import HIDDEN_SHARE, MIN_INTERACTIONS, SEED, VALIDATION_SHARE

TRAIN, VALIDATION, TEST = 0, 1, 2


def per_user_holdout(
    matrix: Any,
    *,
    share: float = HIDDEN_SHARE,
    validation_share: float = VALIDATION_SHARE,
    min_interactions: int = MIN_INTERACTIONS,
    seed: int = SEED,
    groups: ArrayLike | None = None,
) -> Split:
    """Hide a random part of every user's row (weak generalization: all users are known).

    Of the n >= `min_interactions` entries of a row, int(share n) go to the test target and
    int(validation_share n) to the validation target; shorter rows are training data as they are.
    The history of a validation user is their row of train, that of a test user also has their
    validation entries. Users without a target are not in the held-out sets.

    No entry is in two parts, but time is ignored: later interactions may be in train, and earlier
    ones hidden. Entries whose item is not in train are dropped.

    `matrix` is a sparse matrix, or an `Interactions`, whose ids and weights are kept. `groups` has
    one label per row.

    >>> split = per_user_holdout(user_items, share=0.2, validation_share=0)
    """
    _check_shares(share, validation_share)
    check_seed(seed)
    given = matrix if isinstance(matrix, Interactions) else None
    csr = check_matrix(matrix, name="matrix") if given is None else given.users
    check_fits(csr.num_columns, csr.num_rows, csr.nnz, "matrix by column", TRANSPOSED_ROW)
    labels = check_labels(groups, csr.num_rows)
    lengths = np.diff(csr.indptr)
    if lengths.max() < min_interactions:
        raise ValueError(
            f"no user has min_interactions = {min_interactions}, the most are {lengths.max()}; "
            "lower min_interactions"
        )
    rows = np.repeat(np.arange(csr.num_rows), lengths)
    # Each row in random order: the first entries are for the test, the next for validation.
    order = np.lexsort((np.random.default_rng(seed).random(csr.nnz), rows))
    place = np.empty(csr.nnz, dtype=np.int64)
    place[order] = np.arange(csr.nnz) - csr.indptr[rows]
    long_enough = lengths * (lengths >= min_interactions)
    in_test = (share * long_enough).astype(np.int64)
    in_both = in_test + (validation_share * long_enough).astype(np.int64)
    later = np.where(place < in_test[rows], TEST, VALIDATION)
    part = np.where(place < in_both[rows], later, TRAIN)
    user_ids = None if given is None else given.user_ids
    item_ids = None if given is None else given.item_ids
    return _split(
        _Entries(rows, csr.indices, part, csr.weights),
        np.arange(csr.num_rows) if user_ids is None else user_ids,
        np.arange(csr.num_columns) if item_ids is None else item_ids,
        labels,
    )


def temporal(
    users: Integers,
    items: Integers,
    timestamps: ArrayLike,
    *,
    share: float = HIDDEN_SHARE,
    cutoff: Any = None,
    validation_share: float = VALIDATION_SHARE,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> Split:
    """Train on the past and predict the future, with one cutoff time for all users.

    Interactions at `cutoff` or later are for the test; by default, the last `share` of all
    interactions. Of the others, the last `validation_share` of all interactions are for
    validation, and the rest is training data. Equal times are never separated, so the held-out
    shares may be larger. The history of a held-out user is everything before.

    Nothing leaks from the future. In return, only users who are active on both sides of the cutoff
    can be held out, and interactions of users or items that are not in train are dropped. Of equal
    pairs, the earliest is kept.

    Times and the cutoff are numpy.datetime64, datetime objects, ISO-8601 strings, or numbers:
    seconds since 1970. `weights`, one per interaction, become the values of the matrices, which
    are ones by default. `groups` has one label for each of `numpy.unique(users)`.

    >>> split = temporal(users, items, timestamps, cutoff="2024-01-01")
    """
    _check_shares(share, validation_share)
    users, items = np.asarray(users), np.asarray(items)
    times = _checked_times(timestamps, users.shape)
    labels = check_labels(groups, np.unique(users).size)
    values = check_weights(weights, users.size)
    order = np.argsort(times, kind="stable")
    order = order[first_of_pairs(users[order], items[order])]
    users, items, times = users[order], items[order], times[order]
    values = None if values is None else values[order]

    start = _first_of_last(times, share) if cutoff is None else _find_cutoff(times, cutoff)
    wanted = int(np.ceil(validation_share * times.size))
    start_validation = _first_of_equal(times, max(start - wanted, 0)) if wanted else start
    if not 0 < start_validation <= start < times.size:
        raise ValueError(
            f"of {times.size} interactions, {start_validation} are left to train on, "
            f"{times.size - start} to test; change cutoff, share or validation_share"
        )
    part = np.full(times.size, TEST)
    part[:start], part[:start_validation] = VALIDATION, TRAIN
    user_ids, rows = np.unique(users, return_inverse=True)
    item_ids, columns = number_items(items, part == TRAIN)
    return _split(_Entries(rows, columns, part, values), user_ids, item_ids, labels)


@dataclass(frozen=True, eq=False)
class _Entries:
    """Row, column, part and weight of every interaction; column -1: the item is not in train."""

    rows: Integers
    columns: Integers
    part: Integers
    weights: NDArray[np.float32] | None = None

    def matrix(self, chosen: NDArray[np.bool_], shape: tuple[int, int]) -> csr_matrix:
        """Return the chosen entries."""
        weights = None if self.weights is None else self.weights[chosen]
        return sparse(self.rows[chosen], self.columns[chosen], shape, weights)


def _split(entries: _Entries, user_ids: Ids, item_ids: Ids, labels: Labels | None) -> Split:
    """Build the matrices of the parts, without users and items that are not in train."""
    shape = (user_ids.size, item_ids.size)
    training = entries.part == TRAIN
    train = entries.matrix(training, shape)
    known_users, known_items = train.getnnz(axis=1) > 0, train.getnnz(axis=0) > 0
    usable = known_users[entries.rows] & (entries.columns >= 0) & known_items[entries.columns]

    def held_out(part: int) -> tuple[HeldOut, Integers]:
        target = entries.matrix(usable & (entries.part == part), shape)
        history = entries.matrix(usable & (entries.part < part), shape)
        users = np.flatnonzero(target.getnnz(axis=1))
        groups = None if labels is None else labels[users]
        return HeldOut(history[users], target[users], groups), users

    validation, validation_users = held_out(VALIDATION)
    test, test_users = held_out(TEST)
    users = np.concatenate([np.flatnonzero(known_users), validation_users, test_users])
    return Split(
        train=train[known_users],
        validation=validation,
        test=test,
        item_ids=item_ids,
        user_ids=user_ids[users],
        dropped=int(np.count_nonzero(~usable)),
    )


def _first_of_equal(times: NDArray[Any], place: int) -> int:
    """Return the first position of the time at `place`; `times` ascend."""
    return int(np.searchsorted(times, times[place]))


def _first_of_last(times: NDArray[Any], share: float) -> int:
    """Return where the last `share` of the times begins, with all times equal to the first."""
    return _first_of_equal(times, times.size - int(np.ceil(share * times.size)))


def _find_cutoff(times: NDArray[Any], cutoff: Any) -> int:
    """Return the first position at or after the cutoff."""
    moment = to_datetime64([cutoff], "cutoff")[0]
    start = int(np.searchsorted(times, moment))
    if not 0 < start < times.size:
        raise ValueError(
            f"cutoff={cutoff}, but all interactions are between {times[0]} and {times[-1]}, "
            "with none on one side of it; choose a time in between"
        )
    return start


def _checked_times(timestamps: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    if timestamps is None:
        raise TypeError("timestamps is None; give one time per interaction")
    if np.shape(timestamps) != shape or len(shape) != 1:
        raise ValueError(
            f"timestamps has shape {np.shape(timestamps)}, users {shape}; give one time per "
            "interaction"
        )
    if shape == (0,):
        raise ValueError("there are no interactions to split; check the filter they went through")
    return to_datetime64(timestamps, "timestamps")


def _check_shares(share: float, validation_share: float) -> None:
    if not 0 < check_number("share", share, default=HIDDEN_SHARE) < 1:
        raise ValueError(f"share={share}; it has to lie between 0 and 1: try 0.2")
    wanted = check_number("validation_share", validation_share, default=VALIDATION_SHARE)
    if not 0 <= wanted < 1 - share:
        raise ValueError(
            f"validation_share={validation_share}; it has to be at least 0, and with the share "
            f"{share} of the test below 1: try 0.1"
        )
