"""Frames of factors, one row per id, made of blocks or of what the driver holds."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    DoubleType,
    FloatType,
    IntegerType,
    StructField,
    StructType,
)

from safecf.spark.arrays import Batches, lists
from safecf.spark.blocks import by_block_batches
from safecf.spark.chunks import Arrays
from safecf.spark.engine import Engine

# Rows of a batch of factors.
ROWS = 4096


def factor_frame(engine: Engine, side: int, more: dict[str, tuple[str, float]]) -> DataFrame:
    """Return ids and factors of a side, with `more` columns: arrays of the blocks, scaled."""
    layout = engine.sides[side]
    columns = [
        StructField("features", ArrayType(FloatType(), containsNull=False)),
        *(StructField(name, DoubleType()) for name in more),
    ]
    factors = engine.factors[side]
    if factors is not None:
        vectors = [scale * engine.of_rows(side, array) for array, scale in more.values()]
        attach = partial(_attach, layout.offsets, factors, vectors)
        return layout.index.mapInArrow(attach, StructType([layout.index.schema["id"], *columns]))
    place = [StructField(name, IntegerType()) for name in ("block", "position")]
    explode = partial(_explode, engine.setting.factors, list(more.values()))
    spread = engine.state(side).mapInArrow(
        by_block_batches(explode), StructType([*place, *columns])
    )
    return layout.index.join(spread, ["block", "position"]).select("id", "features", *more)


def _attach(
    offsets: NDArray[Any], factors: NDArray[Any], more: list[NDArray[Any]], batches: Batches
) -> Batches:
    """Give ids, with block and position, their factors."""
    for batch in batches:
        block, position = (batch.column(name).to_numpy() for name in ("block", "position"))
        rows = offsets[block] + position
        yield _batch([batch.column("id")], factors[rows], [each[rows] for each in more])


def _explode(
    factors: int, more: list[tuple[str, float]], block: int, state: Arrays
) -> Iterator[pa.RecordBatch]:
    """Return the rows of a block's state."""
    rows = state.of("factors").reshape(-1, factors)
    vectors = [scale * state.of(array) for array, scale in more]
    for first in range(0, len(rows), ROWS):
        part = slice(first, first + ROWS)
        position = np.arange(first, min(first + ROWS, len(rows)), dtype=np.int32)
        place = [pa.array(np.full(len(position), block, dtype=np.int32)), pa.array(position)]
        yield _batch(place, rows[part], [each[part] for each in vectors])


def _batch(
    before: list[pa.Array], factors: NDArray[Any], more: list[NDArray[Any]]
) -> pa.RecordBatch:
    features = lists(np.ascontiguousarray(factors, dtype=np.float32))
    columns = [*before, features, *(pa.array(each.astype(np.float64)) for each in more)]
    return pa.RecordBatch.from_arrays(columns, [str(place) for place in range(len(columns))])
