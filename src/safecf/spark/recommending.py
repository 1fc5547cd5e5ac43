"""Top k by dot product: blocks of queries against blocks of candidates, searched natively.

Memory of a task: a block of queries and one of candidates, with k results per query, in Arrow
batches of up to spark.sql.execution.arrow.maxBytesPerBatch; blocks have `blockSize` rows of d
factors, 4 blockSize d bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    FloatType,
    LongType,
    StructField,
    StructType,
)

from safecf.spark.arrays import Batches, Floats, matrix, task_backend, task_partition


def top_k(
    queries: DataFrame,
    candidates: DataFrame,
    k: int,
    block_size: int,
    width: int,
    names: tuple[str, str],
) -> DataFrame:
    """Return the k candidates with the best scores x.y for every query, best first.

    Both have id and features. Ties rank by the candidates' ids. The columns of the result are
    called names[0], and recommendations, an array of (names[1], rating).
    """
    ids, found_ids = queries.schema["id"].dataType, candidates.schema["id"].dataType
    # Ranges of ids: blocks, and rows in a block, come in the order of the ids.
    ordered = candidates.repartitionByRange("id").sortWithinPartitions("id")
    left = _blocks(queries, block_size, width, "query")
    right = _blocks(ordered, block_size, width, "candidate")
    found = left.crossJoin(right).mapInArrow(
        _searcher(k, width), _schema(id=ids, found=ArrayType(_entry(found_ids)))
    )
    merged = F.slice(F.array_sort(F.flatten(F.collect_list("found"))), 1, k)
    lists = F.transform(
        merged,
        lambda entry: F.struct(entry["id"].alias(names[1]), (-entry["loss"]).alias("rating")),
    )
    per_query = found.groupBy("id").agg(lists.alias("recommendations"))
    return per_query.withColumnRenamed("id", names[0])


def _schema(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


def _entry(ids: DataType) -> StructType:
    """Entries sort as they rank: by -score, then by id."""
    return _schema(loss=FloatType(), id=ids)


def _blocks(factors: DataFrame, size: int, width: int, name: str) -> DataFrame:
    """Return blocks of rows: a number, the ids, and the factors as bytes."""
    schema = _schema(
        **{
            f"{name}_block": LongType(),
            f"{name}_ids": ArrayType(factors.schema["id"].dataType),
            f"{name}_factors": BinaryType(),
        }
    )

    def cut(batches: Batches) -> Batches:
        number = task_partition() << 32
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            while sum(map(len, waiting)) >= size:
                table = pa.Table.from_batches(waiting).combine_chunks()
                yield block(table.slice(0, size), number)
                number += 1
                waiting = table.slice(size).to_batches()
        if sum(map(len, waiting)):
            yield block(pa.Table.from_batches(waiting), number)

    def block(table: pa.Table, number: int) -> pa.RecordBatch:
        ids = table["id"].combine_chunks()
        rows = matrix(table["features"].combine_chunks(), width)
        columns = [
            pa.array([number], pa.int64()),
            pa.ListArray.from_arrays(pa.array([0, len(ids)], pa.int32()), ids),
            pa.array([rows.tobytes()], pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(columns, names=schema.names)

    return factors.select("id", "features").mapInArrow(cut, schema)


@dataclass
class TopK:
    """The best candidates so far of a block of queries: scores by row, and ids row after row.

    A score of minus infinity stands for no candidate.
    """

    queries: pa.Array
    scores: Floats
    ids: pa.Array

    def merged(self, other: "TopK", k: int) -> "TopK":
        """Return the best k of both; where they tie, the candidates of this one come first."""
        scores = np.hstack([self.scores, other.scores])
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        rows, mine = len(scores), self.scores.shape[1]
        at = np.arange(rows)[:, None]
        source = np.where(
            order < mine,
            at * mine + order,
            rows * mine + at * other.scores.shape[1] + order - mine,
        )
        ids = pa.concat_arrays([self.ids, other.ids]).take(pa.array(source.reshape(-1)))
        return TopK(self.queries, scores[at, order], ids)

    def batch(self) -> pa.RecordBatch:
        """Return one row per query, its entries best first."""
        there = self.scores > -np.inf
        offsets = np.append(0, np.cumsum(there.sum(axis=1))).astype(np.int32)
        entries = pa.StructArray.from_arrays(
            [
                pa.array(-self.scores[there]),
                self.ids.filter(pa.array(there.reshape(-1))),
            ],
            names=["loss", "id"],
        )
        lists = pa.ListArray.from_arrays(offsets, entries)
        return pa.RecordBatch.from_arrays([self.queries, lists], names=["id", "found"])


def _searcher(k: int, width: int) -> Callable[[Batches], Batches]:
    """Return what searches pairs of blocks; the pairs of one block of queries come in a row."""

    def search(batches: Batches) -> Batches:
        backend = task_backend()
        current, found = None, None
        for batch in batches:
            for row in range(len(batch)):
                number = batch["query_block"][row].as_py()
                new = _found(backend, batch, row, k, width)
                if found is not None and number == current:
                    found = found.merged(new, k)
                    continue
                if found is not None:
                    yield found.batch()
                current, found = number, new
        if found is not None:
            yield found.batch()

    return search


def _found(backend: Any, batch: pa.RecordBatch, row: int, k: int, width: int) -> TopK:
    """Search one block of candidates for one block of queries."""
    queries, candidates = (
        np.frombuffer(batch[f"{name}_factors"][row].as_buffer(), np.float32).reshape(-1, width)
        for name in ("query", "candidate")
    )
    at, scores = backend.index(candidates).search(queries, min(k, len(candidates)))
    ids = batch["candidate_ids"][row].values
    return TopK(
        batch["query_ids"][row].values,
        np.where(at >= 0, scores, -np.inf).astype(np.float32),
        ids.take(pa.array(np.maximum(at, 0).reshape(-1))),
    )
