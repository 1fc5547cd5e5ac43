"""Fold-in: the factors of new users, given those of the items, by the native half-step.

    ( b Y'Y + a_u sum_i c_ui y_i y_i' + ridge_u I ) x_u = a_u sum_i c_ui y_i

Every interaction brings its item's factors along, 4 d bytes; a task holds `CHUNK` interactions, or
a user's whole history if that is longer, with twice their factors.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, FloatType, StructField, StructType

from safecf.als.loss import Loss, Ridge
from safecf.als.rows import naming, user_rows
from safecf.data.matrices.csr import Csr
from safecf.models.training import FOLD_IN
from safecf.spark.arrays import Batches, lists, matrix, task_backend, task_partition

CHUNK = 2**16


@dataclass(frozen=True)
class Fold:
    """What the fold-in takes from a model: loss, ridge, Y'Y, |V| and d."""

    loss: Loss
    ridge: Ridge
    gram: NDArray[np.float64]
    num_items: int
    width: int

    def __call__(self, interactions: DataFrame, items: DataFrame) -> DataFrame:
        """Return id and features of the users who have known items; confidences are above 0."""
        known = items.select("id", "features")
        joined = interactions.join(known, interactions["item"] == known["id"])
        rows = joined.select("user", "item", "confidence", "features").repartition("user")
        ordered = rows.sortWithinPartitions("user", "item", "confidence").drop("item")
        schema = StructType(
            [
                StructField("id", interactions.schema["user"].dataType),
                StructField("features", ArrayType(FloatType())),
            ]
        )
        return ordered.mapInArrow(self._solver(), schema)

    def _solver(self) -> Callable[[Batches], Batches]:
        def solve(batches: Batches) -> Batches:
            backend = task_backend()
            for table in whole_users(batches):
                yield self.solved(table, backend)

        return solve

    def solved(self, table: pa.Table, backend: Any) -> pa.RecordBatch:
        """Return the users' factors, given all their interactions."""
        users, confidence = table["user"].combine_chunks(), table["confidence"].to_numpy()
        starts = np.append(0, changes(users))
        columns = len(users)
        history = Csr(
            np.append(starts, columns).astype(np.int64),
            np.arange(columns, dtype=np.int32),  # each interaction has factors of its own
            np.ascontiguousarray(confidence, dtype=np.float32),
            (len(starts), columns),
        )
        ids = users.take(pa.array(starts))
        fixed = backend.fix(
            backend.place(matrix(table["features"].combine_chunks(), self.width)),
            (self.loss.unobserved_weight * self.gram).astype(np.float32),
        )
        mass = history.row_mass()
        rows = user_rows(
            backend.place_matrix(history),
            mass,
            np.ones(len(starts)),
            self.loss,
            self.ridge,
            (columns, self.num_items),
        )
        factors = backend.zeros(len(starts), self.width)
        with naming("user", ids):
            backend.solve_rows(rows, fixed, factors, FOLD_IN)
        return pa.RecordBatch.from_arrays(
            [ids, lists(backend.fetch(factors))], names=["id", "features"]
        )


def changes(ids: pa.Array) -> NDArray[np.int64]:
    """Return where an id differs from the one before.

    >>> changes(pa.array(["a", "a", "b"]))
    array([2])
    """
    differs = pc.not_equal(ids.slice(1), ids.slice(0, max(len(ids) - 1, 0)))
    return np.flatnonzero(pc.fill_null(differs, True).to_numpy(zero_copy_only=False)) + 1


def whole_users(batches: Batches) -> Iterator[pa.Table]:
    """Join batches, ordered by user, to tables that no user's interactions are split among."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if not len(batch):
            continue
        users = batch["user"]
        starts = changes(users)
        if waiting and waiting[-1]["user"][-1] != users[0]:
            starts = np.append(0, starts)
        if len(starts) and sum(map(len, waiting)) + len(batch) >= CHUNK:
            last = int(starts[-1])
            yield pa.Table.from_batches([*waiting, batch.slice(0, last)])
            waiting = []
            batch = batch.slice(last)  # noqa: PLW2901 - what is left of it
        waiting.append(batch)
    if waiting:
        yield pa.Table.from_batches(waiting)


def gram_of(factors: DataFrame, width: int) -> NDArray[np.float64]:
    """Y'Y of the features, a sum over partitions in their order."""

    def product(batches: Batches) -> Batches:
        backend = task_backend()
        total = np.zeros((width, width))
        for batch in batches:
            if len(batch):
                total += backend.gram(backend.place(matrix(batch["features"], width)))
        part = pa.array([task_partition()], pa.int32())
        yield pa.RecordBatch.from_arrays(
            [part, pa.array([total.tobytes()], pa.binary())], names=["part", "gram"]
        )

    found = factors.select("features").mapInArrow(product, "part int, gram binary").collect()
    parts = [np.frombuffer(row.gram) for row in sorted(found, key=lambda row: row.part)]
    return np.asarray(sum(parts, np.zeros(width * width))).reshape(width, width)
