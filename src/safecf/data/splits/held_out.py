"""`Split` and `HeldOut`, which every split returns; the checks that all splits share."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from safecf.checks import check_integer
from safecf.data.limits import LARGEST_WEIGHT, SMALLEST_WEIGHT
from safecf.data.matrices.interactions import Interactions
from safecf.data.matrices.read_only import ReadOnly
from safecf.data.splits.protocol import SEED
from safecf.errors import ParameterWarning, warn

Integers = NDArray[np.integer[Any]]
Ids = Integers | NDArray[np.object_]
Labels = NDArray[Any]


@dataclass(frozen=True, eq=False)
class HeldOut(ReadOnly):
    """Held-out users, one per row: the model sees `history` and has to predict `target`.

    `groups` are the labels of the users, None if there are none.
    """

    history: csr_matrix
    target: csr_matrix
    groups: Labels | None = None


@dataclass(frozen=True, eq=False)
class Split(ReadOnly):
    """Training users, validation users and test users over the same items.

    Column i is the item `item_ids[i]`. `user_ids` are the original ids of the rows of train,
    validation and test, in this order. `dropped` counts the held-out interactions that are in none
    of the three, because their item (or their user, in splits of known users) is not in train.

    The matrices are the caller's to change: whatever uses them checks a copy. The ids and groups
    can only be read.
    """

    train: csr_matrix
    validation: HeldOut
    test: HeldOut
    item_ids: Ids
    user_ids: Ids
    dropped: int = 0

    @property
    def training(self) -> Interactions:
        """`train` with the original ids, to fit a model that knows them."""
        return Interactions.from_csr(
            self.train, user_ids=self.user_ids[: self.train.shape[0]], item_ids=self.item_ids
        )


def check_seed(seed: object) -> None:
    """Raise unless numpy takes the seed: a whole number from 0 to 2^32 - 1."""
    if check_integer("seed", seed, 0, default=SEED) >= 2**32:
        raise ValueError(f"seed={seed} has to be below 2**32; try seed={SEED}")


def first_of_pairs(users: Integers, items: Integers) -> NDArray[np.bool_]:
    """Mark the first of equal pairs: another copy could be in history and in target."""
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
    # lexsort is stable: equal pairs stay in the order of the file.
    order = np.lexsort((items, users))
    repeated = np.zeros(users.size, dtype=bool)
    repeated[order[1:]] = (np.diff(users[order]) == 0) & (np.diff(items[order]) == 0)
    if repeated.any():
        at = int(np.argmax(repeated))
        warn(
            f"{np.count_nonzero(repeated)} interactions repeat an earlier one and are dropped, "
            f"the first is user {users[at]} with item {items[at]}; drop duplicates beforehand",
            ParameterWarning,
        )
    return ~repeated


def check_labels(groups: ArrayLike | None, users: int) -> Labels | None:
    """Return the labels as an array; raise unless there is one per user."""
    if groups is None:
        return None
    labels = np.asarray(groups)
    if labels.shape != (users,):
        raise ValueError(
            f"groups has shape {labels.shape}, while there are {users} users; give one label per "
            "user, in ascending order of their ids"
        )
    return labels


def check_weights(weights: ArrayLike | None, size: int) -> NDArray[np.float32] | None:
    """Return the weights as float32; raise unless there is one above 0 per interaction."""
    if weights is None:
        return None
    found = np.array(weights, dtype=np.float32)
    if found.shape != (size,):
        raise ValueError(
            f"weights has shape {found.shape}, while there are {size} interactions; give one each"
        )
    bad = np.flatnonzero(~((found >= SMALLEST_WEIGHT) & (found <= LARGEST_WEIGHT)))
    if bad.size:
        raise ValueError(
            f"weights holds {found[bad[0]]} at {bad[0]}; weights are above 0 and at most "
            f"{LARGEST_WEIGHT:g}, drop the other interactions, or scale the weights"
        )
    return found


def number_items(
    items: Integers, training: NDArray[np.bool_]
) -> tuple[Integers, NDArray[np.int64]]:
    """Number the training items by first appearance.

    Return their ids in this order, and the number of every entry of `items`, -1 if it is not a
    training item.
    """
    known, first = np.unique(items[training], return_index=True)
    order = np.argsort(first)
    number = np.empty(known.size, dtype=np.int64)
    number[order] = np.arange(known.size)
    place = np.minimum(np.searchsorted(known, items), known.size - 1)
    return known[order], np.where(known[place] == items, number[place], -1)


def sparse(
    rows: Integers,
    columns: Integers,
    shape: tuple[int, int],
    weights: NDArray[np.float32] | None = None,
) -> csr_matrix:
    """Return the matrix with these entries, of weight 1 if no weights are given."""
    values = np.ones(rows.size, dtype=np.float32) if weights is None else weights
    return csr_matrix((values, (rows, columns)), shape=shape)
