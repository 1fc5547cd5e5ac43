"""From COO to CSR: rows sorted, duplicates merged, rare users and items dropped."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.data.limits import LARGEST_WEIGHT, SMALLEST_WEIGHT
from safecf.data.matrices.csr import Csr
from safecf.errors import choose, shown

Codes = NDArray[np.int32]
Floats = NDArray[Any]
Weights = NDArray[np.float32] | None

# Merge runs of weights that belong to one pair; the runs begin at the given starts.
MERGES: dict[str, Callable[[Floats, NDArray[np.int64]], Floats]] = {
    "sum": lambda weights, starts: np.add.reduceat(weights, starts, dtype=np.float64),
    "max": np.maximum.reduceat,
    "first": lambda weights, starts: weights[starts],
    "last": lambda weights, starts: weights[np.append(starts[1:], weights.size) - 1],
}
REFUSE = "error"


@dataclass(frozen=True)
class Cleaning:
    """What is done about duplicates, and about users and items with few interactions.

    Duplicates are merged first: "sum" adds up their weights, "max", "first" and "last" keep one
    of them, "error" raises. Then items with fewer than `min_item_interactions` users are dropped,
    then users with fewer than `min_user_interactions` items, once.
    """

    min_user_interactions: int = 1
    min_item_interactions: int = 1
    duplicates: str = "sum"

    def __post_init__(self) -> None:
        for name in ("min_user_interactions", "min_item_interactions"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} has to be at least 1; try {name}=1")
        if self.duplicates != REFUSE:
            choose("way to treat duplicates", self.duplicates, {**MERGES, REFUSE: None})


class PairError(ValueError):
    """A pair is not valid; the caller knows the ids to put in the place of `{pair}` in `text`."""

    def __init__(self, row: int, column: int, text: str) -> None:
        super().__init__(row, column, text)
        self.row, self.column, self.text = row, column, text

    def named(self, user: object, item: object) -> ValueError:
        """Return the error with the ids of user and item."""
        return ValueError(self.text.format(pair=f"user {shown(user)} with item {shown(item)}"))


def csr_from_coo(
    users: Codes, items: Codes, weights: Weights, shape: tuple[int, int], duplicates: str
) -> Csr:
    """Return the matrix with the entries (users[n], items[n]), each of weight weights[n].

    Duplicates are merged as `Cleaning` says; entries of weight 0 are dropped.
    """
    # Transposing the matrix with one entry per interaction, (n, users[n]), lists the interactions
    # of each user in their order.
    one_per_row = Csr(np.arange(users.size + 1), users, None, (users.size, shape[0]))
    by_user = one_per_row.transpose()
    del one_per_row
    order = by_user.indices
    unsorted = Csr(by_user.indptr, items[order], None if weights is None else weights[order], shape)
    del by_user, order
    # Transposing twice sorts every row, and keeps duplicates in their order.
    return drop_zeros(_merge(unsorted.transpose().transpose(), duplicates))


def drop_rare(matrix: Csr, cleaning: Cleaning) -> tuple[Csr, NDArray[np.bool_], NDArray[np.bool_]]:
    """Drop rare items (columns), then rare users (rows), then items that have become empty.

    Also return which rows and columns were kept.
    """
    counts = np.bincount(matrix.indices, minlength=matrix.num_columns)
    columns = counts >= cleaning.min_item_interactions
    matrix = _select(matrix, columns[matrix.indices])
    rows = np.diff(matrix.indptr) >= cleaning.min_user_interactions
    if not rows.all():
        matrix = _select(matrix, np.repeat(rows, np.diff(matrix.indptr)))
        columns &= np.bincount(matrix.indices, minlength=matrix.num_columns) > 0
    matrix = drop_weights_of_one(matrix)
    if rows.all() and columns.all():
        return matrix, rows, columns
    number = np.cumsum(columns, dtype=np.int32) - np.int32(1)
    indptr = np.append(0, matrix.indptr[1:][rows])
    shape = (int(rows.sum()), int(columns.sum()))
    return Csr(indptr, number[matrix.indices], matrix.weights, shape), rows, columns


def _merge(matrix: Csr, duplicates: str) -> Csr:
    """Merge entries of the same row and column, which are neighbours."""
    first = np.empty(matrix.nnz, dtype=bool)
    first[1:] = matrix.indices[1:] != matrix.indices[:-1]
    first[matrix.indptr[:-1][np.diff(matrix.indptr) > 0]] = True
    if first.all():
        return matrix

    def pair(at: int) -> tuple[int, int]:
        row = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
        return row, int(matrix.indices[at])

    if duplicates == REFUSE:
        raise PairError(
            *pair(int(np.argmin(first))),
            f"{int(first.size - first.sum()):,} rows repeat an earlier one, such as {{pair}}; drop "
            "them, or choose duplicates='sum' or 'last'",
        )
    merged = _select(matrix, first)
    starts = np.flatnonzero(first)
    weights = matrix.weights
    if weights is not None:
        weights = MERGES[duplicates](weights, starts)
        if weights.max() > LARGEST_WEIGHT:
            at = int(np.argmax(weights))
            raise PairError(
                *pair(int(starts[at])),
                f"the weights of {{pair}} add up to {weights[at]:.3g}, above {LARGEST_WEIGHT:g}; "
                "scale them, or choose duplicates='max'",
            )
        weights = weights.astype(np.float32, copy=False)
    elif duplicates == "sum":
        weights = np.diff(np.append(starts, first.size)).astype(np.float32)
    return Csr(merged.indptr, merged.indices, weights, matrix.shape)


def drop_zeros(matrix: Csr) -> Csr:
    """Drop the entries of weight 0, or so near to it that float32 loses digits."""
    weights = matrix.weights
    return matrix if weights is None else _select(matrix, weights >= SMALLEST_WEIGHT)


def drop_weights_of_one(matrix: Csr) -> Csr:
    """Drop the weights if all of them are 1."""
    if matrix.weights is None or not (matrix.weights == 1).all():
        return matrix
    return Csr(matrix.indptr, matrix.indices, None, matrix.shape)


def _select(matrix: Csr, keep: NDArray[Any]) -> Csr:
    """Keep the marked entries; the shape stays the same."""
    if keep.all():
        return matrix
    indptr = np.append(0, np.cumsum(keep, dtype=np.int64))[matrix.indptr]
    weights = None if matrix.weights is None else matrix.weights[keep]
    return Csr(indptr, matrix.indices[keep], weights, matrix.shape)
