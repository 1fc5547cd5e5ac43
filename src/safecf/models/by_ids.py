"""Original ids of users and items, and the model's rows and columns that they stand for."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from safecf.data.matrices.csr import Csr
from safecf.data.matrices.ids import IdArray, Index, asked_ids, to_arrow
from safecf.data.matrices.interactions import Interactions
from safecf.data.reading.arrow import load_pandas
from safecf.errors import ParameterWarning, shown, warn
from safecf.models.queries import Indices, slices

if TYPE_CHECKING:
    from safecf.models.recommender import Recommender

NUMBERS = "0, 1, 2 and so on"  # the source of ids that are row numbers
MEMBERS = {"item": "items in the users' histories", "user": "users of the items"}


@dataclass(frozen=True)
class Names:
    """The ids of users or items: that of row n is at position n.

    What is made from them is kept with the model, under the `key`.
    """

    model: "Recommender"
    key: str
    array: IdArray
    source: object

    @classmethod
    def make(cls, model: "Recommender", key: str, ids: IdArray | None, size: int) -> "Names":
        """Return the names of up to `size` rows; None stands for 0 to size - 1."""
        if ids is None:
            return cls(model, key, np.arange(size), NUMBERS)
        # A view of ids that has been cut to size is another object every time.
        cut = ids if ids.size <= size else ids[:size]
        return cls(model, key, cut, ids if ids.base is None else ids.base)

    @classmethod
    def of_users(cls, model: "Recommender") -> "Names":
        """Return those of the model's users; some that a partial fit has added have none."""
        return cls.make(model, "user", model.user_ids, model.sizes()[0])

    @classmethod
    def of_items(cls, model: "Recommender") -> "Names":
        """Return those of the model's items; some that a partial fit has added have none."""
        return cls.make(model, "item", model.item_ids, model.sizes()[1])

    def find(self, asked: NDArray[Any]) -> Indices:
        """Return the row of every id, -1 for unknown ids."""
        if asked.size == self.array.size and np.array_equal(asked, self.array):
            return np.arange(asked.size)
        return self._index().find(asked)

    def rows(self, asked: ArrayLike, what: str | None = None) -> Indices:
        """Return the row of every id; a KeyError names the first unknown id."""
        rows = self.find(asked_ids(asked))
        if (rows < 0).any():
            self._index().rows(asked, what or self.key)
        return rows

    def known_rows(self, asked: ArrayLike, name: str, *, or_none: bool = False) -> Indices:
        """Return the rows of the ids that are known; others are left out with a warning.

        It is a KeyError if there are others alone, unless `or_none`, or if they are of another
        type: those could never be known. `name` is that of the argument.
        """
        ids = asked_ids(asked)
        rows = self.find(ids)
        unknown = ids[rows < 0]
        if unknown.size and (
            (unknown.size == ids.size and not or_none) or not self.is_of_type(ids)
        ):
            self.rows(ids, f"{self.key} (in {name})")  # raises
        if unknown.size:
            warn(
                f"{unknown.size:,} of {ids.size:,} ids in {name} are unknown to the model and "
                f"left out, such as {shown(unknown.tolist()[0])}",
                ParameterWarning,
            )
        return rows[rows >= 0]

    def is_of_type(self, asked: NDArray[Any]) -> bool:
        """Whether all of these could be ids: strings if the known ones are, else integers."""
        if self.array.dtype == object:
            return all(isinstance(each, str) for each in asked.tolist())
        return asked.dtype.kind in "iu" or not asked.size

    def to_arrow(self) -> Any:
        """Return the ids as an Arrow array."""
        load_pandas()
        return self._kept("in Arrow", lambda: to_arrow(self.array))

    def forget(self) -> None:
        """Drop what was kept, before the model gets other ids."""
        self.model.derived.drop(self.source)

    def _index(self) -> Index:
        found: Index = self._kept("rows", lambda: Index(self.array, self.array.size))
        return found

    def _kept(self, what: str, make: Any) -> Any:
        key = (what, self.key, self.array.size)
        return self.model.derived.get(key, self.source, make)


@dataclass(frozen=True)
class Histories:
    """Rows of given `Interactions` in the columns of the model.

    Row r has the columns `columns[matrix.indices]`, where -1 are those that the model does not
    know; None: the matrix has the model's own columns.
    """

    matrix: Csr
    columns: Indices | None
    num_columns: int

    @classmethod
    def of_users(
        cls, model: "Recommender", given: Interactions, rows: Indices, *, or_none: bool = False
    ) -> "Histories":
        """Return histories of users, of which `rows` are going to be taken.

        Items that are unknown to the model are left out with a warning. It is a KeyError if there
        are no others, unless `or_none`, or if they are of another type.
        """
        own = Names.make(model, "item (in user_items)", given.item_ids, given.num_items)
        known = Names.of_items(model)
        return cls._make(given.users, rows, own, known, model.sizes()[1], or_none=or_none)

    @classmethod
    def of_items(
        cls, model: "Recommender", given: Interactions, rows: Indices, *, or_none: bool = False
    ) -> "Histories":
        """Return the users of items, likewise."""
        own = Names.make(model, "user (in item_users)", given.user_ids, given.num_users)
        known = Names.of_users(model)
        return cls._make(given.items, rows, own, known, model.sizes()[0], or_none=or_none)

    @classmethod
    def none(cls, num_columns: int) -> "Histories":
        """Return those of nobody, from which only empty rows can be taken."""
        nothing = np.zeros(0, dtype=np.int32)
        matrix = Csr(np.zeros(1, dtype=np.int64), nothing, None, (0, num_columns))
        return cls(matrix, None, num_columns)

    @classmethod
    def _make(
        cls,
        matrix: Csr,
        rows: Indices,
        own: Names,
        known: Names,
        num_columns: int,
        *,
        or_none: bool,
    ) -> "Histories":
        found = known.find(own.array)
        occurring, lost = _look(matrix, rows, found)
        there = np.flatnonzero(occurring)
        unknown = there[found[there] < 0]
        if (
            unknown.size
            and unknown.size == there.size
            and not (or_none and known.is_of_type(own.array))
        ):
            raise _nothing_known(own.array[unknown], known)
        if unknown.size:
            others = {"item": "users", "user": "items"}[known.key]
            warn(
                f"{unknown.size:,} of {there.size:,} {MEMBERS[known.key]} are unknown to the "
                f"model and left out, such as {shown(own.array[unknown].tolist()[0])}"
                + f"; {lost:,} of {rows.size:,} {others} have no others" * bool(lost)
                + ": those whom the model knows stay as they were" * bool(lost and or_none),
                ParameterWarning,
            )
        same = found.size == num_columns and np.array_equal(found, np.arange(num_columns))
        return cls(matrix, None if same else found, num_columns)

    def take(self, rows: Indices) -> Csr:
        """Return these rows; -1 stands for an empty one."""
        chosen = self.matrix.take(rows)
        if self.columns is None:
            return chosen
        column = self.columns[chosen.indices]
        keep = column >= 0
        indptr = np.append(0, np.cumsum(keep))[chosen.indptr]
        weights = np.ones(chosen.nnz, np.float32) if chosen.weights is None else chosen.weights
        shape = (rows.size, self.num_columns)
        found = scipy.sparse.csr_matrix((weights[keep], column[keep], indptr), shape=shape)
        found.sort_indices()
        ones = chosen.weights is None
        return Csr(indptr, found.indices.astype(np.int32), None if ones else found.data, shape)


def check_named(model: "Recommender", given: Interactions, *, users_too: bool) -> None:
    """Raise if the model has ids and `given` has none: row numbers would be taken for ids."""
    sides = [("item", model.item_ids, given.item_ids)]
    if users_too:
        sides.append(("user", model.user_ids, given.user_ids))
    for side, known, ids in sides:
        if known is not None and ids is None:
            raise TypeError(
                f"user_items has no {side} ids, while the model was trained with some, such as "
                f"{shown(known[:1].tolist()[0])}; try Interactions.from_csr(matrix, user_ids, "
                "item_ids)"
            )


def rows_of_users(
    model: "Recommender", given: Interactions, *, may_be_new: bool
) -> tuple[Indices, Csr]:
    """Return the rows of all given users in the model, or 0, 1, 2 and so on, and their histories.

    Unknown users are a KeyError, unless they `may_be_new`.
    """
    check_named(model, given, users_too=not may_be_new)
    everybody = np.arange(given.num_users)
    asked = Names.make(model, "history", given.user_ids, given.num_users).array
    rows = everybody if may_be_new else Names.of_users(model).rows(asked)
    return rows, Histories.of_users(model, given, everybody).take(everybody)


def _look(matrix: Csr, rows: Indices, known: Indices) -> tuple[NDArray[np.bool_], int]:
    """Return which columns there are in these rows, and how many rows have only unknown ones."""
    occurring, lost = np.zeros(matrix.num_columns, dtype=bool), 0
    for start, stop in slices(rows.size):
        part = matrix.take(rows[start:stop])
        occurring[part.indices] = True
        seen = np.append(0, np.cumsum(known[part.indices] >= 0))[part.indptr]
        lost += int(np.count_nonzero((np.diff(part.indptr) > 0) & (np.diff(seen) == 0)))
    return occurring, lost


def _nothing_known(ids: IdArray, known: Names) -> KeyError:
    """Return the error of histories of which no item is known, or of items without known users."""
    first, example = ids[:1].tolist()[0], known.array[:1].tolist()[0]
    hint = f"use the {known.key} ids of the training data"
    if isinstance(first, str) != isinstance(example, str):
        kinds = ("strings", "integers") if isinstance(first, str) else ("integers", "strings")
        hint = f"they are {kinds[0]}, while those of the training data are {kinds[1]}; convert them"
    return KeyError(
        f"all {ids.size:,} {MEMBERS[known.key]} are unknown to the model, such as "
        f"{shown(first)}, where {shown(example)} is known: {hint}"
    )
