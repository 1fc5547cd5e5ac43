"""Arrays in Arrow rows: what travels between executors, and between them and the driver.

A row holds up to a few megabytes of one array. `block` says which block of users or items the
array is for, `source` which block it comes from, `part` which piece of the array it is.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

SCHEMA = pa.schema(
    [
        ("block", pa.int32()),
        ("source", pa.int32()),
        ("name", pa.string()),
        ("part", pa.int32()),
        ("data", pa.binary()),
    ]
)
COLUMNS = StructType(
    [
        StructField("block", IntegerType()),
        StructField("source", IntegerType()),
        StructField("name", StringType()),
        StructField("part", IntegerType()),
        StructField("data", BinaryType()),
    ]
)
# Bytes of one row: small beside a task's memory, large beside what a row costs.
PIECE = 4 * 2**20

# What every array holds; rows of factors follow each other.
TYPES: dict[str, Any] = {
    # interactions of a block, by row
    "indptr": np.int64,
    "indices": np.int32,
    "confidence": np.float32,
    "degree": np.int64,
    "mass": np.float64,
    "mark": np.int64,
    "big_mark": np.int64,
    "big_degree": np.int64,
    # the rows that another block needs, and the pairs of its rows whose equations this one sends
    "send": np.int32,
    "hot_rows": np.int32,
    "hot_counts": np.int64,
    "hot_columns": np.int32,
    "hot_confidence": np.float32,
    "big_rows": np.int32,
    "big_counts": np.int64,
    "big_columns": np.int32,
    "big_confidence": np.float32,
    # the state of a block
    "factors": np.float32,
    "losses": np.float64,
    "weights": np.float64,
    # a message: rows of the fixed side, and normal equations of hot rows
    "rows": np.float32,
    "words": np.uint32,
    "col_weight": np.float64,
    "pair_weight": np.float64,
    "hot": np.int32,
    "hot_gram": np.float32,
    "hot_right": np.float32,
    "hot_mass": np.float64,
    # results for the driver
    "sums": np.float64,
    "gram": np.float32,
    "sample": np.float64,
}

Array = NDArray[Any]


def pack(arrays: Iterable[tuple[int, int, str, Array]]) -> Iterator[pa.RecordBatch]:
    """Cut arrays, given as (block, source, name, array), into rows, which share their memory."""
    for block, source, name, array in arrays:
        flat = np.ascontiguousarray(array, dtype=TYPES[name]).reshape(-1)
        data = pa.py_buffer(flat.view(np.uint8))
        for part, first in enumerate(range(0, max(1, data.size), PIECE)):
            piece = data[first : first + PIECE]
            ends = pa.py_buffer(np.array([0, piece.size], np.int32))
            row = [pa.array([each]) for each in (block, source, name, part)]
            row.append(pa.Array.from_buffers(pa.binary(), 1, [None, ends, piece]))
            columns = [each.cast(kind.type) for each, kind in zip(row, SCHEMA, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


class Arrays:
    """The arrays of some rows, by name and source.

    >>> table = pa.Table.from_batches(pack([(0, 3, "weights", np.ones(2))]))
    >>> Arrays(table).of("weights", 3)
    array([1., 1.])
    """

    def __init__(self, table: pa.Table) -> None:
        self._pieces: dict[tuple[str, int], list[tuple[int, Any]]] = {}
        columns = [table.column(name).to_pylist() for name in ("source", "name", "part")]
        for source, name, part, data in zip(*columns, table.column("data"), strict=True):
            self._pieces.setdefault((name, source), []).append((part, data))

    def sources(self, name: str) -> list[int]:
        """Return where arrays of this name come from, in order."""
        return sorted(source for each, source in self._pieces if each == name)

    def length(self, name: str, source: int = 0) -> int:
        """Return the numbers of an array."""
        pieces = self._pieces.get((name, source), [])
        size = sum(data.as_buffer().size for _, data in pieces)
        return size // np.dtype(TYPES[name]).itemsize

    def of(self, name: str, source: int = 0) -> Array:
        """Return an array, which may be written to; empty if there is none."""
        pieces = sorted(self._pieces.get((name, source), []), key=lambda piece: piece[0])
        buffers = [data.as_buffer() for _, data in pieces]
        found = np.empty(sum(buffer.size for buffer in buffers), dtype=np.uint8)
        first = 0
        for buffer in buffers:
            found[first : first + buffer.size] = np.frombuffer(buffer, dtype=np.uint8)
            first += buffer.size
        return found.view(TYPES[name])

    def optional(self, name: str, source: int = 0) -> Array | None:
        """Return an array, or None."""
        return self.of(name, source) if (name, source) in self._pieces else None


def named(block: int, source: int, arrays: Mapping[str, Array | None]) -> Iterator[Any]:
    """Return entries for `pack` of those arrays that there are."""
    return ((block, source, name, each) for name, each in arrays.items() if each is not None)
