"""`Interactions`: the data type that models are fitted on, in CSR by user and by item."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import scipy.sparse
from numpy.typing import ArrayLike

from safecf.data.limits import SMALLEST_WEIGHT
from safecf.data.matrices.coo import Coo, read_coo
from safecf.data.matrices.csr import Csr
from safecf.data.matrices.csr_from_coo import Cleaning, PairError, csr_from_coo, drop_rare
from safecf.data.matrices.csr_from_scipy import check_matrix
from safecf.data.matrices.ids import IdArray, check_ids, to_numpy
from safecf.data.matrices.read_only import ReadOnly
from safecf.data.matrices.summary import Summary
from safecf.data.reading.layout import Column, Layout, Source
from safecf.data.reading.paths import PARQUET, TEXT, Paths, find_files
from safecf.data.reading.sources import frame_source, parquet_source, text_source


@dataclass(frozen=True, eq=False, repr=False)
class Interactions(ReadOnly):
    """Interactions by user and by item: `items` is the transpose of `users`.

    `user_ids[u]` and `item_ids[i]` are the original ids, int64 numbers or str objects; None
    stands for 0, 1, 2 and so on. An `Interactions` has memory of its own, which can only be read;
    `to_csr` returns a copy. It is made by `from_csr`, `from_frame`, `from_parquet` or `from_csv`:
    the constructor is internal.

    >>> Interactions.from_csr(scipy.sparse.csr_matrix([[0, 1, 1]])).items.shape
    (3, 1)
    >>> Interactions.from_frame({"user": ["ann", "bob"], "item": [7, 7]}).user_ids
    array(['ann', 'bob'], dtype=object)
    """

    users: Csr
    items: Csr
    user_ids: IdArray | None = None
    item_ids: IdArray | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.users, Csr) or not isinstance(self.items, Csr):
            raise TypeError(
                f"Interactions is made by from_csr, from_frame, from_parquet or from_csv, not of a "
                f"{type(self.users).__name__} and a {type(self.items).__name__}; try "
                "Interactions.from_csr(user_items)"
            )
        super().__post_init__()

    @classmethod
    def from_csr(
        cls, matrix: Any, user_ids: ArrayLike | None = None, item_ids: ArrayLike | None = None
    ) -> Self:
        """Convert a scipy.sparse matrix with users in rows and items in columns; it is copied."""
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
        """Convert a frame of pandas, polars or Arrow with one row per interaction.

        Users and items are numbered by first appearance.

        Parameters
        ----------
        frame
            A DataFrame of pandas or polars, an Arrow table, anything else with the Arrow PyCapsule
            interface, or a dict of arrays. A `RecordBatchReader` is read batch by batch.
        user, item
            Columns of the ids (integers or strings), by name or by position.
        weight
            Column of the confidence weights, >= 0; rows of weight 0 are dropped. Without it, every
            interaction has weight 1.
        rating, min_rating
            Keep only the rows whose rating is at least `min_rating`.
        min_user_interactions, min_item_interactions
            First the items with fewer users are dropped, then the users with fewer items, once.
            Duplicates count as one.
        duplicates
            How to merge several rows of one user and item: "sum" adds up their weights, "max",
            "first" and "last" keep one of them, "error" raises.
        """
        layout = Layout(user, item, rating, weight, min_rating=min_rating)
        cleaning = Cleaning(min_user_interactions, min_item_interactions, duplicates)
        return cls._from_sources([frame_source(frame, layout)], layout, cleaning)

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

        The files are read batch by batch. The other parameters are those of `from_frame`.
        """
        layout = Layout(user, item, rating, weight, min_rating=min_rating)
        cleaning = Cleaning(min_user_interactions, min_item_interactions, duplicates)
        sources = [parquet_source(path, layout) for path in find_files(paths, PARQUET)]
        return cls._from_sources(sources, layout, cleaning)

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

        Files that end in .gz, .bz2, .zst, .lz4, .xz or .zip are decompressed. Ids become integers
        if all of them are integers ("007" is a string). `separator` is any one character, or "::".
        `header` says whether the first line holds the column names; if not, give columns by
        position. The other parameters are those of `from_frame`.
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
        cleaning = Cleaning(min_user_interactions, min_item_interactions, duplicates)
        sources = [text_source(path, layout) for path in find_files(paths, TEXT)]
        return cls._from_sources(sources, layout, cleaning)

    @classmethod
    def _from_sources(cls, sources: Iterable[Source], layout: Layout, cleaning: Cleaning) -> Self:
        values = ("weight",)  # ratings and times need not be kept
        return cls.from_coo(read_coo(sources, layout, values=values), cleaning)

    @classmethod
    def from_coo(cls, coo: Coo, cleaning: Cleaning) -> Self:
        """Convert rows with integer codes, and keep the ids of the users and items that remain."""
        shape = len(coo.user_ids), len(coo.item_ids)
        try:
            users = csr_from_coo(coo.users, coo.items, coo.weight, shape, cleaning.duplicates)
        except PairError as problem:
            user, item = coo.user_ids[problem.row], coo.item_ids[problem.column]
            raise problem.named(user.as_py(), item.as_py()) from None
        before = users.nnz
        users, kept_users, kept_items = drop_rare(users, cleaning)
        if users.nnz == 0:
            reason = f"all weights are 0, or below {SMALLEST_WEIGHT:.2g}; check the weight column"
            if before:
                reason = "lower min_user_interactions or min_item_interactions"
            raise ValueError(f"no interaction is left of {coo.users.size:,} rows: {reason}")
        ids = [
            to_numpy(ids if kept.all() else ids.filter(pa.array(kept)))
            for ids, kept in ((coo.user_ids, kept_users), (coo.item_ids, kept_items))
        ]
        return cls(users, users.transpose(), *ids)

    @property
    def num_users(self) -> int:
        """Number of users, those without interactions included."""
        return self.users.num_rows

    @property
    def num_items(self) -> int:
        """Number of items, those without interactions included."""
        return self.users.num_columns

    @property
    def nnz(self) -> int:
        """Number of interactions."""
        return self.users.nnz

    def to_csr(self) -> scipy.sparse.csr_matrix:
        """Return a copy as a scipy.sparse matrix with users in rows.

        >>> Interactions.from_frame({"user": ["ann", "bob"], "item": [7, 7]}).to_csr().toarray()
        array([[1.],
               [1.]], dtype=float32)
        """
        return self.users.to_scipy().copy()

    def summary(self) -> Summary:
        """Return the counts, the density, and quantiles of the interactions per user and item."""
        lengths = np.diff(self.users.indptr), np.diff(self.items.indptr)
        return Summary.of(*lengths, weighted=self.users.weights is not None)

    def __repr__(self) -> str:
        return (
            f"Interactions({self.num_users:,} users, {self.num_items:,} items, "
            f"{self.nnz:,} interactions)"
        )

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()
