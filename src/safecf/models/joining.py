"""Partial fits by ids: the model's rows of given users or items, of which new ones are added."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from safecf.data.matrices.csr import Csr
from safecf.data.matrices.ids import IdArray
from safecf.data.matrices.interactions import Interactions
from safecf.models.by_ids import Histories, Names, check_named
from safecf.models.queries import Indices

if TYPE_CHECKING:
    from safecf.models.recommender import Recommender


class Joined(NamedTuple):
    """Rows of a partial fit: their numbers, what they hold, and the model's ids afterwards."""

    rows: Indices
    matrix: Csr
    ids: IdArray | None


def check_alone(name: str, matrix: object) -> None:
    """Raise if there is a matrix beside the `Interactions` of a partial fit."""
    if matrix is not None:
        raise TypeError(
            f"{name} takes row numbers and a matrix, or an Interactions alone; leave the matrix out"
        )


def join_users(model: "Recommender", given: Interactions) -> Joined:
    """Find the users, of whom new ones get the next rows, and their histories.

    Known users are left out if none of their items is known.
    """
    check_named(model, given, users_too=True)
    everybody = np.arange(given.num_users)
    found = Histories.of_users(model, given, everybody, or_none=True)
    size, names = model.sizes()[0], Names.of_users(model)
    return _joined(names, model.user_ids, size, given.user_ids, found)


def join_items(model: "Recommender", given: Interactions) -> Joined:
    """Find the items, of which new ones get the next rows, and their users, likewise."""
    check_named(model, given, users_too=True)
    everything = np.arange(given.num_items)
    found = Histories.of_items(model, given, everything, or_none=True)
    size, names = model.sizes()[1], Names.of_items(model)
    return _joined(names, model.item_ids, size, given.item_ids, found)


def _joined(
    names: Names, known: IdArray | None, size: int, given: IdArray | None, found: Histories
) -> Joined:
    rows, ids = _rows(names, known, size, given)
    everything = np.arange(found.matrix.num_rows)
    rows = everything if rows is None else rows
    matrix = found.take(everything)
    nothing_left = (np.diff(found.matrix.indptr) > 0) & (np.diff(matrix.indptr) == 0)
    keep = np.flatnonzero(~nothing_left | (rows >= size))
    return Joined(rows[keep], matrix if keep.size == rows.size else matrix.take(keep), ids)


def _rows(
    names: Names, known: IdArray | None, size: int, given: IdArray | None
) -> tuple[Indices | None, IdArray | None]:
    """Return the rows of given ids, None for 0, 1, 2 and so on, and all ids afterwards."""
    if given is None:
        return None, None
    if (given.dtype == object) != (names.array.dtype == object):
        kinds = ("strings", "integers") if given.dtype == object else ("integers", "strings")
        raise TypeError(
            f"the ids of {names.key}s are {kinds[0]}, while those of the model are {kinds[1]}; "
            "convert them"
        )
    if known is None:
        return given.astype(np.int64), None
    if names.array.size < size:
        raise ValueError(
            f"{size - names.array.size:,} {names.key}s have no id, because a partial fit by row "
            f"numbers has added them; append their ids to model.{names.key}_ids first"
        )
    rows = names.find(given)
    new = np.flatnonzero(rows < 0)
    rows[new] = size + np.arange(new.size)
    return rows, np.concatenate([names.array, given[new]])
