"""`Interactions`: who interacted with what, by user and by item."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import scipy.sparse
from numpy.typing import ArrayLike

from safecf.data.matrices.assemble import Keep, PairError, assemble, drop_rare
from safecf.data.matrices.encode import Encoded, encode
from safecf.data.matrices.ids import IdArray, check_ids, to_numpy
from safecf.data.matrices.matrix import Csr, check_matrix
from safecf.data.matrices.summary import Summary
from safecf.data.reading.columns import Column, Layout
from safecf.data.reading.frames import frame_source
from safecf.data.reading.paths import PARQUET, TEXT, Paths, expand
from safecf.data.reading.readers import parquet_source, text_file_source

# of the rows; ratings only choose among them
KEPT = ("weight",)


@dataclass(frozen=True, eq=False, repr=False)
class Interactions:
    """The same interactions in both directions: row i of `items` lists the users of item i.

    `user_ids[u]` and `item_ids[i]` are the original ids, int64 numbers or str objects; None
    stands for 0, 1, 2 and so on.

    >>> Interactions.from_csr(scipy.sparse.csr_matrix([[0, 1, 1]])).items.shape
    (3, 1)
    >>> Interactions.from_frame({"user": ["ann", "bob"], "item": [7, 7]}).user_ids
    array(['ann', 'bob'], dtype=object)
    """

    users: Csr
    items: Csr
    user_ids: IdArray | None = None
    item_ids: IdArray | None = None

    @classmethod
    def from_csr(
        cls, matrix: Any, user_ids: ArrayLike | None = None, item_ids: ArrayLike | None = None
    ) -> Self:
        """Take a scipy.sparse matrix with users in rows and items in columns, and their ids."""
        users = check_matrix(matrix)
        row_ids = check_ids(user_ids, users.num_rows, "user_ids")
        column_ids = check_ids(item_ids, users.num_columns, "item_ids")
        return cls(users, users.transpose(), row_ids, column_ids)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        user: Column = "user",
        item: Column = "item",
        weight: Column | None = None,
        rating: Column | None = None,
        min_rating: float | None = None,
        min_user_interactions: int = 1,
        min_item_interactions: int = 1,
        duplicates: str = "sum",
    ) -> Self:
        """Take a frame of pandas, polars or Arrow with one row per interaction.

        Users and items are numbered in the order of their first appearance.

        Parameters
        ----------
        frame
            A DataFrame of pandas or polars, an Arrow table, anything else with the Arrow PyCapsule
            interface, or a dict of arrays. A `RecordBatchReader` is read batch by batch.
        user, item
            Columns of the ids, by name or by position: integers or strings.
        weight
            Column of the confidence weights, >= 0; a weight of 0 is no interaction. Without it
            every interaction weighs 1.
        rating, min_rating
            Keep only the rows whose rating is at least `min_rating`.
        min_user_interactions, min_item_interactions
            First the items with fewer users are dropped, then the users with fewer items, once.
            Duplicates count as one.
        duplicates
            What becomes of several rows of one user and item: "sum" adds up their weights, "max",
            "first" and "last" keep one, "error" refuses them.
        """
        layout = Layout(user, item, rating, weight, min_rating=min_rating)
        keep = Keep(min_user_interactions, min_item_interactions, duplicates)
        return cls.from_rows(encode([frame_source(frame, layout)], layout, keep=KEPT), keep)

    @classmethod
    def from_parquet(
        cls,
        paths: Paths,
        *,
        user: Column = "user",
        item: Column = "item",
        weight: Column | None = None,
        rating: Column | None = None,
        min_rating: float | None = None,
        min_user_interactions: int = 1,
        min_item_interactions: int = 1,
        duplicates: str = "sum",
    ) -> Self:
        """Read Parquet files: a path, a folder, a pattern such as "log/*.parquet", or a list.

        The files are read a part at a time. The other parameters are those of `from_frame`.
        """
        layout = Layout(user, item, rating, weight, min_rating=min_rating)
        keep = Keep(min_user_interactions, min_item_interactions, duplicates)
        sources = [parquet_source(path, layout) for path in expand(paths, PARQUET)]
        return cls.from_rows(encode(sources, layout, keep=KEPT), keep)

    @classmethod
    def from_csv(
        cls,
        paths: Paths,
        *,
        user: Column = "user",
        item: Column = "item",
        weight: Column | None = None,
        rating: Column | None = None,
        min_rating: float | None = None,
        min_user_interactions: int = 1,
        min_item_interactions: int = 1,
        duplicates: str = "sum",
        separator: str = ",",
        header: bool = True,
        encoding: str = "utf8",
    ) -> Self:
        """Read text files: a path, a folder, a pattern such as "log/*.csv.gz", or a list.

        Files that end in .gz, .bz2, .zst, .lz4, .xz or .zip are decompressed. Ids are integers if
        all of them are; "007" is not. `separator` is what stands between two fields: any one
        character, or "::". `header` says whether the first line holds the names; without, columns
        are given by position. The other parameters are those of `from_frame`.
        """
        layout = Layout(
            user,
            item,
            rating,
            weight,
            min_rating=min_rating,
            separator=separator,
            header=header,
            encoding=encoding,
        )
        keep = Keep(min_user_interactions, min_item_interactions, duplicates)
        sources = [text_file_source(path, layout) for path in expand(paths, TEXT)]
        encoded = encode(sources, layout, keep=KEPT, integers_in_text=True)
        return cls.from_rows(encoded, keep)

    @classmethod
    def from_rows(cls, rows: Encoded, keep: Keep) -> Self:
        """Assemble numbered rows into both directions, with the ids of what is left."""
        shape = len(rows.user_ids), len(rows.item_ids)
        try:
            users = assemble(rows.users, rows.items, rows.weight, shape, keep.duplicates)
        except PairError as problem:
            user, item = rows.user_ids[problem.row], rows.item_ids[problem.column]
            raise problem.named(user.as_py(), item.as_py()) from None
        before = users.nnz
        users, kept_users, kept_items = drop_rare(users, keep)
        if users.nnz == 0:
            reason = "all weights are 0; check the weight column"
            if before:
                reason = "lower min_user_interactions or min_item_interactions"
            raise ValueError(f"no interaction is left of {rows.users.size:,} rows: {reason}")
        ids = [
            to_numpy(ids if kept.all() else ids.filter(pa.array(kept)))
            for ids, kept in ((rows.user_ids, kept_users), (rows.item_ids, kept_items))
        ]
        return cls(users, users.transpose(), *ids)

    @property
    def num_users(self) -> int:
        """Number of users, with or without interactions."""
        return self.users.num_rows

    @property
    def num_items(self) -> int:
        """Number of items, with or without interactions."""
        return self.users.num_columns

    @property
    def nnz(self) -> int:
        """Number of interactions."""
        return self.users.nnz

    def to_csr(self) -> scipy.sparse.csr_matrix:
        """Return a scipy.sparse matrix with users in rows; its indices must not be written to."""
        return self.users.to_scipy()

    def summary(self) -> Summary:
        """Return users, items, interactions, density and how unequally they are spread."""
        lengths = np.diff(self.users.indptr), np.diff(self.items.indptr)
        return Summary.of(*lengths, weighted=self.users.weights is not None)

    def __repr__(self) -> str:
        return (
            f"Interactions({self.num_users:,} users, {self.num_items:,} items, "
            f"{self.nnz:,} interactions)"
        )

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()
