"""`Log`: interactions in the order in which they were written down, for splits."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from safecf.data.matrices.assemble import Keep, PairError, assemble, drop_rare
from safecf.data.matrices.encode import Encoded
from safecf.data.matrices.ids import IdArray, to_numpy
from safecf.data.matrices.interactions import Interactions
from safecf.data.matrices.numbering import by_appearance, by_id, label_of
from safecf.data.splits.strong import (
    Split,
    per_user_holdout,
    repeated_strong_generalization,
    strong_generalization,
    temporal,
)

# Of the users with enough interactions, how many are held out for validation, and for the test.
HELDOUT_SHARE = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class Log:
    """Row n says that user `user_ids[users[n]]` interacted with item `item_ids[items[n]]`.

    `users` and `items` are numbers in the order of the ids, which are ascending: smaller ids have
    smaller numbers, so that splits of the numbers and of the ids are the same. Rows may have
    `ratings`, `weights` and `timestamps` (datetime64[us], UTC), and users `groups`: `groups[u]` is
    the label of user u. None stands for what there is not.

    >>> log = datasets.load("ml-1m", path="ml-1m.zip")
    >>> model.fit(log.interactions(min_user_interactions=5))
    >>> split = log.temporal(cutoff="2000-12-01")
    """

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    user_ids: IdArray
    item_ids: IdArray
    ratings: NDArray[np.float32] | None = None
    weights: NDArray[np.float32] | None = None
    timestamps: NDArray[np.datetime64] | None = None
    groups: IdArray | None = None

    @classmethod
    def of(cls, rows: Encoded) -> "Log":
        """Number the rows by the order of the ids."""
        users, user_ids = by_id(rows.users, rows.user_ids)
        items, item_ids = by_id(rows.items, rows.item_ids)
        groups = None
        if rows.group is not None:
            groups = to_numpy(rows.group_ids)[label_of(users, rows.group, user_ids)]
        return cls(
            users, items, user_ids, item_ids, rows.rating, rows.weight, rows.timestamp, groups
        )

    @classmethod
    def of_matrix(cls, matrix: csr_matrix, groups: IdArray | None = None) -> "Log":
        """Return the pairs of a matrix, row by row; ids are the numbers of rows and columns."""
        pairs = matrix.tocoo()
        users, items = (np.arange(size, dtype=np.int64) for size in matrix.shape)
        return cls(pairs.row, pairs.col, users, items, groups=groups)

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

        Every interaction weighs 1, or its weight if `weighted`. The other parameters are those of
        `Interactions.from_frame`; duplicates are added up if `weighted`, else the last one counts.
        """
        weights = self._weights(weighted)
        users, user_ids = by_appearance(self.users, self.user_ids)
        items, item_ids = by_appearance(self.items, self.item_ids)
        rows = Encoded(users, items, user_ids, item_ids, weight=weights)
        ways = duplicates or ("sum" if weighted else "last")
        keep = Keep(min_user_interactions, min_item_interactions, ways)
        return Interactions.from_rows(rows, keep)

    def filtered(self, *, min_user_interactions: int = 1, min_item_interactions: int = 1) -> "Log":
        """Drop first the items with fewer users, then the users with fewer items, once."""
        keep = Keep(min_user_interactions, min_item_interactions)
        matrix = assemble(self.users, self.items, None, self._shape, "last")
        _, users, items = drop_rare(matrix, keep)
        if not users.any():
            raise ValueError(
                f"no interaction is left of {len(self):,}; lower min_user_interactions or "
                "min_item_interactions"
            )
        if users.all() and items.all():
            return self
        kept = self._rows(np.flatnonzero(users[self.users] & items[self.items]))
        user_number, item_number = (np.cumsum(mask, dtype=np.int32) - 1 for mask in (users, items))
        return replace(
            kept,
            users=user_number[kept.users],
            items=item_number[kept.items],
            user_ids=self.user_ids[users],
            item_ids=self.item_ids[items],
            groups=None if self.groups is None else self.groups[users],
        )

    def merged(self, duplicates: str = "sum") -> "Log":
        """Keep one row per user and item, the first, with the earliest time.

        What becomes of the weights is said in `Interactions.from_frame`. A pair whose weight is 0
        is dropped.
        """
        Keep(duplicates=duplicates)
        try:
            matrix = assemble(self.users, self.items, self.weights, self._shape, duplicates)
        except PairError as problem:
            user, item = self.user_ids[[problem.row]], self.item_ids[[problem.column]]
            raise problem.named(*user.tolist(), *item.tolist()) from None
        if matrix.nnz == len(self):
            return self
        # Pairs by user, then by item, as the matrix has them.
        pairs = self.users.astype(np.int64) * self.item_ids.size + self.items
        kept = np.repeat(np.arange(matrix.num_rows), np.diff(matrix.indptr))
        kept = kept * self.item_ids.size + matrix.indices
        order = np.argsort(pairs, kind="stable")
        starts = np.searchsorted(pairs[order], kept)
        found = self._rows(order[starts])
        if self.timestamps is not None:
            # pairs of weight 0 begin a run as well
            runs = np.flatnonzero(np.append(True, np.diff(pairs[order]) != 0))
            earliest = np.minimum.reduceat(self.timestamps[order], runs)
            found = replace(found, timestamps=earliest[np.searchsorted(runs, starts)])
        if self.weights is not None:
            weights = np.ones(matrix.nnz, np.float32) if matrix.weights is None else matrix.weights
            found = replace(found, weights=weights)
        return found._rows(np.argsort(order[starts]))

    def strong_generalization(
        self,
        *,
        heldout: int | None = None,
        min_interactions: int = 5,
        weighted: bool = False,
        **options: Any,
    ) -> Split:
        """Split as `safecf.split.strong_generalization` does, with the original ids.

        By default, a tenth of the users with at least `min_interactions` is held out for
        validation, and as many for the test.
        """
        made = strong_generalization(
            self.users,
            self.items,
            heldout=self._heldout(min_interactions) if heldout is None else heldout,
            min_interactions=min_interactions,
            weights=self._weights(weighted),
            groups=self.groups,
            **options,
        )
        return self._named(made)

    def repeated_strong_generalization(self, *, heldout: int, **options: Any) -> Iterator[Split]:
        """Split as `safecf.split.repeated_strong_generalization` does, with the original ids."""
        made = repeated_strong_generalization(
            self.users, self.items, heldout=heldout, groups=self.groups, **options
        )
        return (self._named(split) for split in made)

    def per_user_holdout(self, *, weighted: bool = False, **options: Any) -> Split:
        """Split as `safecf.split.per_user_holdout` does, with the original ids."""
        interactions = self.interactions(weighted=weighted)
        groups = self.groups
        if groups is not None and interactions.user_ids is not None:
            groups = groups[np.searchsorted(self.user_ids, interactions.user_ids)]
        return per_user_holdout(interactions, groups=groups, **options)

    def temporal(self, *, weighted: bool = False, **options: Any) -> Split:
        """Split as `safecf.split.temporal` does, with the original ids."""
        if self.timestamps is None:
            raise ValueError("the log has no times; read it with timestamp=")
        made = temporal(
            self.users,
            self.items,
            self.timestamps,
            weights=self._weights(weighted),
            groups=self.groups,
            **options,
        )
        return self._named(made)

    @property
    def _shape(self) -> tuple[int, int]:
        return self.user_ids.size, self.item_ids.size

    def _weights(self, weighted: bool) -> NDArray[np.float32] | None:
        if weighted and self.weights is None:
            raise ValueError("the log has no weights; read it with weight=")
        return self.weights if weighted else None

    def _heldout(self, min_interactions: int) -> int:
        lengths = np.bincount(self.users, minlength=self.user_ids.size)
        return max(1, round(HELDOUT_SHARE * np.count_nonzero(lengths >= min_interactions)))

    def _named(self, split: Split) -> Split:
        """Give a split of `users` and `items` the original ids."""
        ids: dict[str, Any] = {
            "user_ids": self.user_ids[split.user_ids],
            "item_ids": self.item_ids[split.item_ids],
        }
        return replace(split, **ids)

    def _rows(self, rows: NDArray[np.int64]) -> "Log":
        columns = ("users", "items", "ratings", "weights", "timestamps")
        values = {name: getattr(self, name) for name in columns}
        chosen: dict[str, Any] = {n: v if v is None else v[rows] for n, v in values.items()}
        return replace(self, **chosen)

    def __repr__(self) -> str:
        optional = ("ratings", "weights", "timestamps", "groups")
        also = [name for name in optional if getattr(self, name) is not None]
        return (
            f"Log({len(self):,} interactions of {self.user_ids.size:,} users with "
            f"{self.item_ids.size:,} items{''.join(f', {name}' for name in also)})"
        )
