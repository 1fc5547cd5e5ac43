"""`Log`: interactions in the order in which they were written down, for splits."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from safecf.data.assemble import assemble, drop_rare
from safecf.data.encode import Encoded
from safecf.data.ids import IdArray, to_numpy
from safecf.data.interactions import Interactions
from safecf.data.matrix import Csr
from safecf.data.split import Split, strong_generalization


@dataclass(frozen=True, eq=False, repr=False)
class Log:
    """Row n says that user `user_ids[users[n]]` interacted with item `item_ids[items[n]]`.

    `users` and `items` are numbers in the order of the ids, which are ascending: smaller ids have
    smaller numbers, so that splits of the numbers and of the ids are the same. `ratings` are the
    ratings or counts and `timestamps` the times, or None where there are none.

    >>> log = datasets.load("ml-1m", path="ml-1m.zip")
    >>> model.fit(log.interactions(min_user_interactions=5))
    """

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    user_ids: IdArray
    item_ids: IdArray
    ratings: NDArray[np.float32] | None = None
    timestamps: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, rows: Encoded) -> "Log":
        """Number the rows by the order of the ids."""
        users, user_ids = _by_id(rows.users, rows.user_ids)
        items, item_ids = _by_id(rows.items, rows.item_ids)
        ratings = rows.weight if rows.rating is None else rows.rating
        return cls(users, items, user_ids, item_ids, ratings, rows.timestamp)

    def __len__(self) -> int:
        return int(self.users.size)

    def interactions(
        self,
        *,
        weighted: bool = False,
        min_user_interactions: int = 1,
        min_item_interactions: int = 1,
        duplicates: str | None = None,
    ) -> Interactions:
        """Return both directions, with ids in order of first appearance.

        Every interaction weighs 1, or its rating or count if `weighted`. The other parameters are
        those of `Interactions.from_frame`; duplicates are added up if `weighted`, else the last
        one counts.
        """
        if weighted and self.ratings is None:
            raise ValueError("the log has no ratings to weigh with; leave out weighted=True")
        users, user_ids = _by_appearance(self.users, self.user_ids)
        items, item_ids = _by_appearance(self.items, self.item_ids)
        weight = self.ratings if weighted else None
        rows = Encoded(users, items, user_ids, item_ids, weight=weight)
        ways = duplicates or ("sum" if weighted else "last")
        return Interactions._made(rows, min_user_interactions, min_item_interactions, ways)

    def filtered(self, *, min_user_interactions: int = 1, min_item_interactions: int = 1) -> "Log":
        """Drop first the items with fewer users, then the users with fewer items, once."""
        shape = self.user_ids.size, self.item_ids.size
        matrix = assemble(self.users, self.items, None, shape, "last")
        _, users, items = drop_rare(matrix, min_user_interactions, min_item_interactions)
        if not users.any():
            raise ValueError(
                f"no interaction is left of {len(self):,}; lower min_user_interactions or "
                "min_item_interactions"
            )
        if users.all() and items.all():
            return self
        kept = self._rows(users[self.users] & items[self.items])
        user_number, item_number = (np.cumsum(mask, dtype=np.int32) - 1 for mask in (users, items))
        return replace(
            kept,
            users=user_number[kept.users],
            items=item_number[kept.items],
            user_ids=self.user_ids[users],
            item_ids=self.item_ids[items],
        )

    def strong_generalization(self, *, heldout: int, **options: Any) -> Split:
        """Split as `safecf.split.strong_generalization` does, with the original ids."""
        return self.named(strong_generalization(self.users, self.items, heldout=heldout, **options))

    def named(self, split: Split) -> Split:
        """Give a split of `users` and `items` the original ids."""
        ids: dict[str, Any] = {
            "user_ids": self.user_ids[split.user_ids],
            "item_ids": self.item_ids[split.item_ids],
        }
        return replace(split, **ids)

    def _rows(self, keep: NDArray[np.bool_]) -> "Log":
        ratings = None if self.ratings is None else self.ratings[keep]
        timestamps = None if self.timestamps is None else self.timestamps[keep]
        users, items = self.users[keep], self.items[keep]
        return replace(self, users=users, items=items, ratings=ratings, timestamps=timestamps)

    def __repr__(self) -> str:
        also = [name for name in ("ratings", "timestamps") if getattr(self, name) is not None]
        return (
            f"Log({len(self):,} interactions of {self.user_ids.size:,} users with "
            f"{self.item_ids.size:,} items{''.join(f', {name}' for name in also)})"
        )


def _by_id(codes: NDArray[np.int32], ids: Any) -> tuple[NDArray[np.int32], IdArray]:
    """Return the codes and the ids in ascending order of the ids."""
    # By code point, as Python sorts; Arrow sorts the UTF-8 bytes, which is the same.
    order = pc.sort_indices(ids).to_numpy().astype(np.int64)
    rank = np.empty(order.size, dtype=np.int32)
    rank[order] = np.arange(order.size, dtype=np.int32)
    return rank[codes], to_numpy(ids.take(pa.array(order)))


def _by_appearance(codes: NDArray[np.int32], ids: IdArray) -> tuple[NDArray[np.int32], Any]:
    """Return the codes and the ids in order of first appearance; ids without a row go."""
    # Csr lists the rows of every code in ascending order: the first one is its appearance.
    rows = Csr(np.arange(codes.size + 1), codes, None, (codes.size, ids.size)).transpose()
    there = np.flatnonzero(np.diff(rows.indptr))
    order = there[np.argsort(rows.indices[rows.indptr[there]])]
    number = np.empty(ids.size, dtype=np.int32)
    number[order] = np.arange(order.size, dtype=np.int32)
    arrow = pa.array(ids[order], type=pa.large_string() if ids.dtype == object else pa.int64())
    return number[codes], arrow
