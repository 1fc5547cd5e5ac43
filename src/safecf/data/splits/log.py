"""`Log`: interactions in the order of the file, with times, weights and groups, for splits."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from safecf.data.matrices.coo import Coo, read_coo
from safecf.data.matrices.csr_from_coo import Cleaning, PairError, csr_from_coo, drop_rare
from safecf.data.matrices.ids import IdArray, sort_by_appearance, sort_by_id, to_numpy
from safecf.data.matrices.interactions import Interactions
from safecf.data.matrices.read_only import ReadOnly
from safecf.data.reading.layout import Layout, Source, name_all
from safecf.data.splits.held_out import Split
from safecf.data.splits.known_users import per_user_holdout, temporal
from safecf.data.splits.protocol import HELDOUT_SHARE, MIN_INTERACTIONS
from safecf.data.splits.strong_generalization import (
    repeated_strong_generalization,
    strong_generalization,
)
from safecf.errors import shown


@dataclass(frozen=True, eq=False, repr=False)
class Log(ReadOnly):
    """Row n: user `user_ids[users[n]]` interacted with item `item_ids[items[n]]`.

    `user_ids` and `item_ids` ascend, so that a split of the codes is also the split of the ids.
    Rows may have `ratings`, `weights` and `timestamps` (datetime64[us], UTC); `groups[u]` is the
    label of user u. Columns that were not read are None. The arrays can only be read; the
    constructor is internal, `datasets.read` and `datasets.load` make logs.

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
    def from_sources(cls, sources: Iterable[Source], layout: Layout) -> "Log":
        """Read files, one after the other; ids in text become integers if all of them are."""
        sources = list(sources)
        coo = read_coo(sources, layout)
        users, user_ids = sort_by_id(coo.users, coo.user_ids)
        items, item_ids = sort_by_id(coo.items, coo.item_ids)
        groups = None
        if coo.group is not None:
            where = name_all([each.name for each in sources])
            labels = _label_per_user(users, coo.group, user_ids, where)
            groups = to_numpy(coo.group_ids)[labels]
        return cls(users, items, user_ids, item_ids, coo.rating, coo.weight, coo.timestamp, groups)

    @classmethod
    def of_matrix(cls, matrix: csr_matrix, groups: IdArray | None = None) -> "Log":
        """Return the entries of a matrix, row by row; ids are the row and column numbers."""
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
        """Return `Interactions`, with ids in order of first appearance.

        Interactions have their weights if `weighted`, else 1. The other parameters are those of
        `Interactions.from_frame`; `duplicates` is "sum" by default if `weighted`, else "last".
        """
        weights = self._weights(weighted)
        users, user_ids = sort_by_appearance(self.users, self.user_ids)
        items, item_ids = sort_by_appearance(self.items, self.item_ids)
        coo = Coo(users, items, user_ids, item_ids, weight=weights)
        merge = duplicates or ("sum" if weighted else "last")
        cleaning = Cleaning(min_user_interactions, min_item_interactions, merge)
        return Interactions.from_coo(coo, cleaning)

    def filtered(self, *, min_user_interactions: int = 1, min_item_interactions: int = 1) -> "Log":
        """Drop first the items with fewer users, then the users with fewer items, once."""
        cleaning = Cleaning(min_user_interactions, min_item_interactions)
        matrix = csr_from_coo(self.users, self.items, None, self._shape, "last")
        _, users, items = drop_rare(matrix, cleaning)
        if not users.any():
            raise ValueError(
                f"no interaction is left of {len(self):,}; lower min_user_interactions or "
                "min_item_interactions"
            )
        if users.all() and items.all():
            return self
        kept = self.part(np.flatnonzero(users[self.users] & items[self.items]))
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
        """Keep one row per user and item: the first one, with the earliest time.

        `duplicates` says how to merge weights, as in `Interactions.from_frame`. Pairs of weight 0
        are dropped.
        """
        Cleaning(duplicates=duplicates)
        try:
            matrix = csr_from_coo(self.users, self.items, self.weights, self._shape, duplicates)
        except PairError as problem:
            user, item = self.user_ids[[problem.row]], self.item_ids[[problem.column]]
            raise problem.named(*user.tolist(), *item.tolist()) from None
        if matrix.nnz == len(self):
            return self
        # One number per pair, which ascends in the order of the matrix.
        pairs = self.users.astype(np.int64) * self.item_ids.size + self.items
        kept = np.repeat(np.arange(matrix.num_rows), np.diff(matrix.indptr))
        kept = kept * self.item_ids.size + matrix.indices
        order = np.argsort(pairs, kind="stable")
        starts = np.searchsorted(pairs[order], kept)
        found = self.part(order[starts])
        if self.timestamps is not None:
            # runs of equal pairs, those of weight 0 included
            runs = np.flatnonzero(np.append(True, np.diff(pairs[order]) != 0))
            earliest = np.minimum.reduceat(self.timestamps[order], runs)
            found = replace(found, timestamps=earliest[np.searchsorted(runs, starts)])
        if self.weights is not None:
            weights = np.ones(matrix.nnz, np.float32) if matrix.weights is None else matrix.weights
            found = replace(found, weights=weights)
        return found.part(np.argsort(order[starts]))

    def strong_generalization(
        self,
        *,
        heldout: int | None = None,
        min_interactions: int = MIN_INTERACTIONS,
        weighted: bool = False,
        **options: Any,
    ) -> Split:
        """Split as `safecf.split.strong_generalization` does, with the original ids.

        By default, 10 % of the users with at least `min_interactions` are held out for validation,
        and as many for the test.
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
        """Replace the codes in a split by the original ids."""
        ids: dict[str, Any] = {
            "user_ids": self.user_ids[split.user_ids],
            "item_ids": self.item_ids[split.item_ids],
        }
        return replace(split, **ids)

    def part(self, rows: NDArray[np.int64]) -> "Log":
        """Return these rows, with all ids."""
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


def _label_per_user(
    users: NDArray[np.int32], labels: NDArray[np.int32], user_ids: IdArray, where: str
) -> NDArray[np.int32]:
    """Return one label per user; raise if a user's rows have different labels."""
    label = np.empty(user_ids.size, dtype=np.int32)
    label[users] = labels
    other = np.flatnonzero(label[users] != labels)
    if other.size:
        user = user_ids[users[other[:1]]].tolist()[0]
        raise ValueError(
            f"{where}: user {shown(user)} has more than one group; give every user one label, the "
            "same in all rows"
        )
    return label
