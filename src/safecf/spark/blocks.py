"""Ratings as blocks of users and of items, each of which holds its own interactions.

An id's hash says which block it belongs to, and a second hash which position it has there, so that
the first users of every block are a random sample. A block has its interactions by row (`Csr`).
Their columns are positions in a table of the other side's factors: of all of them, if the driver
holds that side, else of the rows that the block needs, ordered by block and position.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StructField, StructType
from pyspark.storagelevel import StorageLevel

from safecf.als.loss import Loss, Vector
from safecf.models.scaling import DataSums
from safecf.spark.chunks import COLUMNS, Arrays, named, pack

# A row with more pairs than this times d in one block of the other side is hot there: instead of
# the factors of all those pairs, it gets its normal equations, d (d + 1) numbers.
HOT = 4

Offsets = NDArray[np.int64]
Batches = Iterator[pa.RecordBatch]
Task = Callable[[Batches], Batches]


@dataclass(frozen=True)
class Side:
    """Users or items: `index` has id, block and position, `interactions` the blocks' arrays.

    The factors of a side that is `held` are at the driver, which sends them with the tasks; those
    of others are spread over the executors.
    """

    name: str
    index: DataFrame
    sizes: Offsets
    held: bool
    interactions: DataFrame

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self.sizes)

    @property
    def offsets(self) -> Offsets:
        """Where each block begins among all rows."""
        return np.append(0, np.cumsum(self.sizes))

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(self.sizes.sum())

    def unpersist(self) -> None:
        """Let go of what is cached."""
        self.index.unpersist()
        self.interactions.unpersist()


class Layout(NamedTuple):
    """Both sides, and sums over the data."""

    users: Side
    items: Side
    sums: DataSums

    def unpersist(self) -> None:
        """Let go of what is cached."""
        self.users.unpersist()
        self.items.unpersist()


def check_ratings(ratings: DataFrame) -> None:
    """Raise if there is nothing to learn from, or something that cannot be learned from."""
    confidence = F.col("confidence")
    bad = {
        "have no user": F.col("user").isNull(),
        "have no item": F.col("item").isNull(),
        "have no rating": confidence.isNull() | F.isnan(confidence),
        "have a negative rating": confidence < 0,
        "have a rating beyond float32": confidence > float(np.finfo(np.float32).max),
    }
    counts = [F.count_if(wrong).alias(what) for what, wrong in bad.items()]
    found = ratings.agg(F.count_if(confidence > 0).alias("good"), *counts).collect()[0].asDict()
    good = found.pop("good")
    for what, count in found.items():
        if count:
            raise ValueError(f"{count:,} rows of the data set {what}; drop or mend them")
    if not good:
        raise ValueError("the data set has no row with a rating above 0; check its columns")


def lay_out(
    ratings: DataFrame,
    blocks: tuple[int, int],
    loss: Loss,
    factors: int,
    held: Callable[[int], bool],
    level: StorageLevel,
) -> Layout:
    """Cut ratings, with the columns user, item and confidence, into blocks of users and items.

    `held` says whether the driver can hold the factors of so many rows.
    """
    check_ratings(ratings)
    ratings = ratings.where("confidence > 0")
    indices = [
        _numbered(ratings.select(F.col(name).alias("id")), count).persist(level)
        for name, count in zip(("user", "item"), blocks, strict=True)
    ]
    sizes = _sizes(indices, blocks)
    coded = ratings
    for name, index in zip(("user", "item"), indices, strict=True):
        places = index.select(
            F.col("id").alias(name), *(F.col(each).alias(f"{name}_{each}") for each in PLACE)
        )
        coded = coded.join(places, name)
    holds = [held(int(size.sum())) for size in sizes]
    coded = coded.select(
        "user_block", "user_position", "item_block", "item_position", "confidence"
    ).persist(level)
    built = []
    for side, (own, other) in enumerate((("user", "item"), ("item", "user"))):
        build = _Build(
            sizes=sizes[side],
            offsets=np.append(0, np.cumsum(sizes[1 - side])) if holds[1 - side] else None,
            most=HOT * factors,
            loss=loss if side == 0 else None,
        )
        names = [f"{own}_block", f"{own}_position", f"{other}_block", f"{other}_position"]
        pairs = coded.select(*names, F.col("confidence").cast("float"))
        rows = pairs.repartitionById(blocks[side], F.col(names[0])).mapInArrow(build, COLUMNS)
        built.append(rows.persist(level))
    sums = collected_sums(built[0])
    interactions = built
    if not all(holds):
        interactions = [_with_foreign(built, side, blocks[side]).persist(level) for side in (0, 1)]
    for frame in interactions:
        frame.count()
    for frame in (coded, *(built if interactions is not built else [])):
        frame.unpersist()
    sides = [
        Side(name, indices[side], sizes[side], holds[side], interactions[side])
        for side, name in enumerate(("users", "items"))
    ]
    return Layout(sides[0], sides[1], sums)


def _with_foreign(built: list[DataFrame], side: int, blocks: int) -> DataFrame:
    """Return the arrays of a side's blocks, with those that the other side has built for them."""
    foreign = F.col("name").isin(list(FOREIGN))
    found = built[side].where(~foreign).union(built[1 - side].where(foreign))
    return found.repartitionById(blocks, F.col("block"))


PLACE = "block", "position"
# Arrays that are built by the block that needs them, for the block that has to send.
FOREIGN = "send", "hot", "hot_indptr", "hot_indices", "hot_confidence"


def collected_sums(built: DataFrame) -> DataSums:
    """Add up the data's sums over the blocks of users, in their order."""
    table = built.where("name = 'sums'").toArrow().sort_by("block")
    parts = [np.frombuffer(data.as_buffer()) for data in table.column("data")]
    return DataSums(*np.sum(parts, axis=0).tolist())


def _numbered(ids: DataFrame, blocks: int) -> DataFrame:
    """Return every id once, with its block and its position there."""
    kind = ids.schema["id"].dataType
    schema = StructType(
        [StructField("id", kind), *(StructField(name, IntegerType()) for name in PLACE)]
    )
    hashed = ids.distinct().select(
        "id",
        F.pmod(F.xxhash64("id"), F.lit(blocks)).cast("int").alias("block"),
        F.xxhash64(F.lit(1), "id").alias("order"),
    )
    return hashed.repartitionById(blocks, F.col("block")).mapInArrow(_positions, schema)


def _positions(batches: Batches) -> Batches:
    """Number the ids of a block by their hash."""
    found = list(batches)
    if not found:
        return
    table = pa.Table.from_batches(found).sort_by([("order", "ascending"), ("id", "ascending")])
    position = pa.array(np.arange(table.num_rows, dtype=np.int32))
    yield from table.drop_columns("order").append_column("position", position).to_batches()


def _sizes(indices: list[DataFrame], blocks: tuple[int, int]) -> list[Offsets]:
    """Return the number of rows of every block of both sides."""
    found = [np.zeros(count, dtype=np.int64) for count in blocks]
    places = [
        index.select(F.lit(side).alias("side"), "block") for side, index in enumerate(indices)
    ]
    for row in places[0].union(places[1]).groupBy("side", "block").count().collect():
        found[row["side"]][row["block"]] = row["count"]
    return found


@dataclass(frozen=True)
class _Build:
    """Makes a block's arrays from its interactions, as a task.

    `offsets` are those of the other side's blocks if the driver holds it, `most` is the number of
    pairs from which on a row is hot, and `loss` is given for the side whose sums are wanted.
    """

    sizes: Offsets
    offsets: Offsets | None
    most: int
    loss: Loss | None

    def __call__(self, batches: Batches) -> Batches:
        found = [batch for batch in batches if batch.num_rows]
        if not found:
            return
        table = pa.Table.from_batches(found).combine_chunks()
        block, row, source, column, confidence = (
            each.to_numpy(zero_copy_only=False) for each in table.columns
        )
        own = int(block[0])
        del table, found, block
        pairs = _merged(row, source, column, confidence)
        yield from pack(self._arrays(own, int(self.sizes[own]), pairs))

    def _arrays(self, own: int, rows: int, pairs: "_Pairs") -> Iterator[Any]:
        """Return entries for `pack`."""
        degree = np.bincount(pairs.row, minlength=rows)
        mass: Vector = np.bincount(pairs.row, pairs.confidence, rows).astype(np.float64)
        every = pairs
        if self.offsets is None:
            hot = every.hot(self.most)
            pairs = every.take(~hot)
            key = (pairs.source.astype(np.int64) << 32) | pairs.column
            needed, indices = np.unique(key, return_inverse=True)
            for source in np.unique(needed >> 32).tolist():
                send = needed[needed >> 32 == source] & 0xFFFFFFFF
                yield source, own, "send", send
            yield from _hot_arrays(own, every.take(hot))
        else:
            indices = self.offsets[pairs.source] + pairs.column
        equal = bool((pairs.confidence == 1).all())
        counts = np.bincount(pairs.row, minlength=rows)
        arrays = {
            "indptr": np.append(0, np.cumsum(counts)),
            "indices": indices,
            "confidence": None if equal else pairs.confidence,
            "degree": degree,
            "mass": mass,
        }
        yield from named(own, 0, arrays)
        if self.loss is not None:
            squares: Vector = np.bincount(every.row, every.confidence**2, rows).astype(np.float64)
            yield own, 0, "sums", np.array(DataSums.of(self.loss, degree, mass, squares))


@dataclass(frozen=True)
class _Pairs:
    """Interactions in the order of row, source and column."""

    row: NDArray[Any]
    source: NDArray[Any]
    column: NDArray[Any]
    confidence: NDArray[np.float64]

    def take(self, which: NDArray[Any]) -> "_Pairs":
        return _Pairs(*(each[which] for each in vars(self).values()))

    def hot(self, most: int) -> NDArray[np.bool_]:
        """Which pairs are of a row that has more than `most` of them in one source."""
        changes = (np.diff(self.row) != 0) | (np.diff(self.source) != 0)
        starts = np.append(0, np.flatnonzero(changes) + 1)
        lengths = np.diff(np.append(starts, len(self.row)))
        return np.repeat(lengths > most, lengths)


def _merged(
    row: NDArray[Any], source: NDArray[Any], column: NDArray[Any], confidence: NDArray[Any]
) -> _Pairs:
    """Sort, and add up the confidences of pairs that occur more than once."""
    order = np.lexsort((confidence, column, source, row))
    pairs = _Pairs(row, source, column, confidence.astype(np.float64)).take(order)
    keys = (pairs.row, pairs.source, pairs.column)
    first = np.append(True, np.any([np.diff(key) != 0 for key in keys], axis=0))
    if first.all():
        return pairs
    total = np.add.reduceat(pairs.confidence, np.flatnonzero(first))
    merged = pairs.take(first)
    return _Pairs(merged.row, merged.source, merged.column, total)


def _hot_arrays(own: int, hot: _Pairs) -> Iterator[Any]:
    """Return the pairs of hot rows for the blocks that have their other halves."""
    for source in np.unique(hot.source).tolist():
        part = hot.take(hot.source == source)
        rows, counts = np.unique(part.row, return_counts=True)
        arrays = {
            "hot": rows,
            "hot_indptr": np.append(0, np.cumsum(counts)),
            "hot_indices": part.column,
            "hot_confidence": part.confidence,
        }
        yield from named(source, own, arrays)


def by_block(work: Callable[[int, Arrays], Iterator[Any]]) -> Task:
    """Make a task that works on one block after the other, given its arrays; it returns arrays."""
    return by_block_batches(partial(_packed, work))


def by_block_batches(work: Callable[[int, Arrays], Batches]) -> Task:
    """Make a task that works on one block after the other, and returns batches."""
    return partial(_each_block, work)


def _packed(work: Callable[[int, Arrays], Iterator[Any]], block: int, arrays: Arrays) -> Batches:
    return pack(work(block, arrays))


def _each_block(work: Callable[[int, Arrays], Batches], batches: Batches) -> Batches:
    found = list(batches)
    if not found:
        return
    table = pa.Table.from_batches(found)
    for block, part in parts_of(table).items():
        yield from work(block, part)


def parts_of(table: pa.Table) -> dict[int, Arrays]:
    """Return the arrays of every block, in the order of blocks."""
    column = table.column("block")
    return {
        block: Arrays(table.filter(pa.compute.equal(column, block)))
        for block in sorted(set(column.to_pylist()))
    }
