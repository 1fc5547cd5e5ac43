"""Alignment: the items of a split, found among the model's items by their ids."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from safecf.data.matrices.ids import Index
from safecf.errors import ParameterWarning, warn

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Alignment:
    """Item i of the split is item `columns[i]` of the model, or unknown to it if that is -1."""

    columns: Numbers
    num_items: int  # of the model

    @property
    def foreign(self) -> Numbers:
        """The model's items that the split does not have; they are not ranked."""
        return np.setdiff1d(np.arange(self.num_items), self.columns)

    def to_model(self, matrix: Any) -> csr_matrix:
        """Return a matrix over the split's items as one over the model's."""
        entries = matrix.tocoo()
        column = self.columns[entries.col]
        keep = column >= 0
        places = (entries.row[keep], column[keep])
        return csr_matrix((entries.data[keep], places), shape=(matrix.shape[0], self.num_items))

    def to_split(self, ids: NDArray[Any]) -> NDArray[Any]:
        """Return the model's item indices as those of the split; -1 stays -1."""
        back = np.full(self.num_items + 1, -1, dtype=ids.dtype)  # the last entry is for -1
        known = np.flatnonzero(self.columns >= 0)
        back[self.columns[known]] = known
        return np.asarray(back[ids])


def align(model: Any, split: Any) -> Alignment | None:
    """Find the split's items among the model's by their ids.

    None if both have the same items in the same order, or if one of them has no ids: then item i
    of the split is taken for item i of the model.
    """
    known, asked = getattr(model, "item_ids", None), getattr(split, "item_ids", None)
    if known is None or asked is None:
        return None
    num_items = max(int(model.shape[1]), len(known))
    columns = Index(np.asarray(known), len(known)).find(asked)
    if num_items == columns.size and np.array_equal(columns, np.arange(num_items)):
        return None
    missing = int(np.count_nonzero(columns < 0))
    if missing == columns.size:
        raise ValueError(
            f"the model knows none of the split's {missing:,} items: its ids are such as "
            f"{known[:1].tolist()[0]!r}, those of the split such as {asked[:1].tolist()[0]!r}; "
            "train it on split.training, or split the data that it was trained on"
        )
    if missing:
        warn(
            f"the model does not know {missing:,} of the split's {columns.size:,} items, and never "
            "ranks them; train it on split.training to compare it with others",
            ParameterWarning,
        )
    return Alignment(columns, num_items)


def held_out_ids(split: Any, on: str) -> NDArray[Any] | None:
    """Return the ids of the users of `on`, "test" or "validation"; None if the split has none."""
    ids = getattr(split, "user_ids", None)
    if ids is None:
        return None
    begin, size = split.train.shape[0], getattr(split, on).target.shape[0]
    validation = getattr(split, "validation", None)
    if on == "test" and validation is not None:
        begin += validation.target.shape[0]
    found = np.asarray(ids[begin : begin + size])
    return found if found.size == size else None


def warn_of_known_users(model: Any, split: Any, on: str) -> None:
    """Warn if the model was trained on held-out users who are not among `split.train`."""
    known, ids = getattr(model, "user_ids", None), held_out_ids(split, on)
    if known is None or ids is None:
        return
    trained = Index(np.asarray(known), len(known)).find(ids) >= 0
    new = np.isin(ids, split.user_ids[: split.train.shape[0]], invert=True)
    seen = int(np.count_nonzero(trained & new))
    if seen:
        warn(
            f"the model was trained on {seen:,} of the {ids.size:,} {on} users, so that its "
            "scores are too good; train it on split.training",
            ParameterWarning,
        )
