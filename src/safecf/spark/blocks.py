"""Ratings as blocks of users and of items, each of which holds its own interactions.

But for big items: those of very many users stay in the blocks of their users.

An id's hash says which block it belongs to, and a second hash which position it has there, so that
the first users of every block are a random sample. A block has its interactions by row (`Csr`).
Their columns are positions in a table of the other side's factors: of all of them, if the driver
holds that side, else of the rows that the block needs, ordered by block and position.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StructField, StructType
from pyspark.storagelevel import StorageLevel

from safecf.als.loss import Loss
from safecf.data.limits import LARGEST_WEIGHT
from safecf.models.scaling import DataSums
from safecf.spark.arrays import Batches
from safecf.spark.building import PAIR_ARRAYS, Big, Build, Offsets, changed, most_ratings
from safecf.spark.chunks import COLUMNS, Arrays, pack

# Rows that a side may have: positions are int32.
MOST = 2**31 - 1

PLACE = "block", "position"
# Arrays that are built by the block that needs them, for the block that has to send.
FOREIGN = "send", *(f"hot_{each}" for each in PAIR_ARRAYS)

Task = Callable[[Batches], Batches]


@dataclass(frozen=True)
class Side:
    """Users or items: `index` has id, block and position, `interactions` the blocks' arrays.

    The factors of a side that is `held` are at the driver, which sends them with the tasks; those
    of others are spread over the executors. `marks` are checksums of the blocks' interactions, of
    items without the big ones.
    """

    name: str
    index: DataFrame
    sizes: Offsets
    held: bool
    interactions: DataFrame
    marks: Offsets

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


class Layout(NamedTuple):
    """Both sides, sums over the data, and a number that tells data apart."""

    users: Side
    items: Side
    sums: DataSums
    fingerprint: str


def check_ratings(ratings: DataFrame) -> str:
    """Raise if there is nothing to learn from, or something that cannot be learned from.

    The result tells data apart: sums over the hashes of rows, in whatever order they come.
    """
    confidence = F.col("confidence")
    bad = {
        "have no user": F.col("user").isNull(),
        "have no item": F.col("item").isNull(),
        "have no rating": confidence.isNull() | F.isnan(confidence),
        "have a negative rating": confidence < 0,
        f"have a rating (times alpha) above {LARGEST_WEIGHT:g}": confidence > float(LARGEST_WEIGHT),
        "have a rating too small for float32": confidence == 0,
    }
    counts = [F.count_if(wrong).alias(what) for what, wrong in bad.items()]
    row = F.xxhash64("user", "item", confidence)
    hashes = F.bit_xor(row).alias("xor"), F.sum(F.pmod(row, F.lit(2**28))).alias("sum")
    good = F.count_if(confidence > 0).alias("good")
    found = ratings.agg(good, *hashes, *counts).collect()[0].asDict()
    good, *fingerprint = (found.pop(name) for name in ("good", "xor", "sum"))
    for what, count in found.items():
        if count:
            raise ValueError(f"{count:,} rows of the data set {what}; drop, clip or scale them")
    if not good:
        raise ValueError("the data set has no row with a rating above 0; check its columns")
    return " ".join(map(str, fingerprint))


def lay_out(
    ratings: DataFrame,
    blocks: tuple[int, int],
    loss: Loss,
    factors: int,
    held: Callable[[tuple[int, int]], tuple[bool, bool]],
    level: StorageLevel,
    ending: ExitStack,
    *,
    cached: bool = False,
) -> Layout:
    """Cut ratings, with the columns user, item and confidence, into blocks of users and items.

    `held` says whether the driver holds the factors of users and of items, given how many they are.
    What is cached for longer than this takes is let go of by `ending`. Ratings that are not
    `cached` are, in the meantime: a frame may be costly to compute, or come out differently the
    next time.
    """
    with ExitStack() as meanwhile:
        ratings = ratings if cached else _kept(ratings, level, meanwhile)
        fingerprint = check_ratings(ratings)
        numbered = [
            _kept(_numbered(ratings.select(F.col(name).alias("id")), count), level, ending)
            for name, count in zip(("user", "item"), blocks, strict=True)
        ]
        counted = _counted(numbered, blocks)
        holds = held((counted[0].rows, counted[1].rows))
        limit = np.inf if holds[0] else most_ratings(factors, blocks[0])
        users_index, items_index = map(_checked, numbered, counted)
        items_index = items_index.withColumn("big", F.col("count") > F.lit(float(limit)))
        indices = users_index, items_index
        coded = _kept(_coded(ratings, *indices), level, meanwhile)
        until = ending if all(holds) else meanwhile
        of_users, of_items = (each.offsets for each in counted)
        big = Big()
        if counted[1].longest > limit:
            big = Big(_rows_of(items_index.where("big"), of_items))
        build = Build(of_users, of_items, holds[1], factors, loss, big)
        users = _kept(_made(build, _pairs(coded, "user", "item")), level, until)
        pairs = _pairs(coded.where("not big"), "item", "user")
        if len(big.rows):
            big = _with_degrees(big, users)
            pairs = pairs.union(_without_pairs(items_index.where("big")))
        build = Build(of_items, of_users, holds[0], factors, None, big)
        built = [users, _kept(_made(build, pairs), level, until)]
        interactions = built
        if not all(holds):
            interactions = [
                _kept(_with_foreign(built, side, blocks[side]), level, ending) for side in (0, 1)
            ]
        sides = [
            Side(
                name,
                indices[side].select("id", *PLACE),
                counted[side].sizes,
                holds[side],
                interactions[side],
                _marks(interactions[side], counted[side].sizes),
            )
            for side, name in enumerate(("users", "items"))
        ]
        big_marks = _collected(interactions[0], "big_mark")
        if sides[0].marks.sum() != np.concatenate([sides[1].marks, *big_marks.values()]).sum():
            raise changed("the blocks of users and of items were made of different interactions")
        return Layout(sides[0], sides[1], collected_sums(built[0]), fingerprint)


def _kept(frame: DataFrame, level: StorageLevel, until: ExitStack) -> DataFrame:
    """Cache a frame."""
    until.callback(frame.unpersist)
    return frame.persist(level)


def _coded(ratings: DataFrame, *indices: DataFrame) -> DataFrame:
    """Return ratings with places instead of ids, and whether the item is big."""
    coded = ratings
    for name, index in zip(("user", "item"), indices, strict=True):
        renamed = {"id": name} | {each: f"{name}_{each}" for each in PLACE}
        coded = coded.join(index.drop("count").withColumnsRenamed(renamed), name)
    places = [f"{name}_{each}" for name in ("user", "item") for each in PLACE]
    return coded.select(*places, F.col("confidence").cast("float"), "big")


def _pairs(coded: DataFrame, own: str, other: str) -> DataFrame:
    """Return the pairs that `Build` makes the blocks of a side of."""
    return coded.select(
        F.col(f"{own}_block").alias("block"),
        f"{own}_position",
        f"{other}_block",
        f"{other}_position",
        "confidence",
    )


def _made(build: Build, pairs: DataFrame) -> DataFrame:
    """Return the arrays of a side's blocks."""
    return pairs.repartitionById(len(build.own) - 1, F.col("block")).mapInArrow(build, COLUMNS)


def _rows_of(index: DataFrame, offsets: Offsets) -> Offsets:
    """Return the places of ids among all, in order."""
    block, position = (each.to_numpy() for each in index.select(*PLACE).toArrow().columns)
    return np.sort(offsets[block] + position)


def _without_pairs(index: DataFrame) -> DataFrame:
    """Return a row without a rating for each big item, so that a block of these alone is made."""
    nowhere, nothing = F.lit(-1), F.lit(0.0).cast("float")
    return index.select(*PLACE, nowhere.alias("other"), nowhere.alias("there"), nothing)


def _with_degrees(big: Big, users: DataFrame) -> Big:
    """Count the users of big items, in the blocks of users that have been made."""
    counts = _collected(users, "big_degree")
    return Big(big.rows, np.sum(list(counts.values()), axis=0))


def _collected(interactions: DataFrame, name: str) -> dict[int, Offsets]:
    """Return an array of every block that has one."""
    table = interactions.where(F.col("name") == name).toArrow()
    return {block: arrays.of(name) for block, arrays in parts_of(table).items()}


def _marks(interactions: DataFrame, sizes: Offsets) -> Offsets:
    """Compute the blocks of a side; return their checksums."""
    found = _collected(interactions, "mark")
    if len(found) != np.count_nonzero(sizes):
        raise changed("it lacks ids")
    marks = np.zeros(len(sizes), np.int64)
    for block, mark in found.items():
        marks[block] = mark[0]
    return marks


def _with_foreign(built: list[DataFrame], side: int, blocks: int) -> DataFrame:
    """Return the arrays of a side's blocks, with those that the other side has built for them."""
    foreign = F.col("name").isin(list(FOREIGN))
    found = built[side].where(~foreign).union(built[1 - side].where(foreign))
    return found.repartitionById(blocks, F.col("block"))


def collected_sums(built: DataFrame) -> DataSums:
    """Add up the data's sums over the blocks of users, in their order."""
    table = built.where("name = 'sums'").toArrow().sort_by("block")
    parts = [np.frombuffer(data.as_buffer()) for data in table.column("data")]
    return DataSums(*np.sum(parts, axis=0).tolist())


def _numbered(ids: DataFrame, blocks: int) -> DataFrame:
    """Return every id once, with its block, its position there, and how often it occurs."""
    kind = ids.schema["id"].dataType
    schema = StructType(
        [
            StructField("id", kind),
            StructField("count", LongType()),
            *(StructField(name, IntegerType()) for name in PLACE),
        ]
    )
    hashed = (
        ids.groupBy("id")
        .count()
        .select(
            "id",
            "count",
            F.pmod(F.xxhash64("id"), F.lit(blocks)).cast("int").alias("block"),
            F.xxhash64(F.lit(1), "id").alias("order"),
        )
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


class Counted(NamedTuple):
    """The rows of a side's blocks, checksums of their ids, and the most ratings of one id."""

    sizes: Offsets
    marks: Offsets
    longest: int

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.sizes.sum())

    @property
    def offsets(self) -> Offsets:
        """Where each block begins among all rows."""
        return np.append(0, np.cumsum(self.sizes))


def _counted(indices: list[DataFrame], blocks: tuple[int, int]) -> list[Counted]:
    """Count the ids of both sides."""
    places = [
        index.select(F.lit(side).alias("side"), "block", "count", F.xxhash64("id").alias("mark"))
        for side, index in enumerate(indices)
    ]
    sums = (
        F.count("*").alias("size"),
        F.bit_xor("mark").alias("mark"),
        F.max("count").alias("longest"),
    )
    found = places[0].union(places[1]).groupBy("side", "block").agg(*sums).collect()
    sides = []
    for side, (name, count) in enumerate(zip(("users", "items"), blocks, strict=True)):
        rows = [row for row in found if row["side"] == side]
        sizes, marks = np.zeros((2, count), dtype=np.int64)
        for row in rows:
            sizes[row["block"]], marks[row["block"]] = row["size"], row["mark"]
        sides.append(Counted(sizes, marks, max(row["longest"] for row in rows)))
        if sides[-1].rows > MOST:
            raise ValueError(f"{sides[-1].rows:,} {name}: more than {MOST:,} cannot be numbered")
    return sides


def _checked(index: DataFrame, counted: Counted) -> DataFrame:
    """Return an index whose tasks raise if the ids are not those that were counted.

    What Spark has lost, it reads again: factors would go to the ids that have taken those places.
    """
    marked = index.withColumn("mark", F.xxhash64("id"))
    return marked.mapInArrow(partial(_same_ids, counted.marks), index.schema)


def _same_ids(marks: Offsets, batches: Batches) -> Batches:
    """Return the rows of a block, once they all have been checked."""
    rows = [batch for batch in batches if batch.num_rows]
    if rows:
        block = rows[0].column("block")[0].as_py()
        hashes = [np.bitwise_xor.reduce(batch.column("mark").to_numpy()) for batch in rows]
        if np.bitwise_xor.reduce(hashes) != marks[block]:
            raise changed("it has other ids")
    for batch in rows:
        yield batch.drop_columns("mark")


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
    blocks = sorted(set(column.to_pylist()))
    if len(blocks) == 1:  # nothing to be copied
        return {blocks[0]: Arrays(table)}
    return {block: Arrays(table.filter(pc.equal(column, block))) for block in blocks}
