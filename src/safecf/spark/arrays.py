"""What tasks on executors share: factors between Arrow and NumPy, and the native backend."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import TaskContext

from safecf.backends.cpu.native import CpuBackend

Floats = NDArray[np.float32]
Batches = Iterator[pa.RecordBatch]


def matrix(features: pa.Array, width: int) -> Floats:
    """Return lists of `width` numbers as the rows of a matrix.

    >>> matrix(pa.array([[1.0, 2.0], [3.0, 4.0]]), 2).shape
    (2, 2)
    """
    values = features.flatten().to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(values.reshape(-1, width), dtype=np.float32)


def lists(rows: Floats) -> pa.Array:
    """Return the rows of a matrix as lists of float32.

    >>> lists(np.zeros((3, 2), dtype=np.float32)).type
    ListType(list<item: float>)
    """
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.ListArray.from_arrays(offsets, pa.array(rows.reshape(-1)))


def task_backend() -> CpuBackend:
    """Return the native backend with the threads of a task, `spark.task.cpus`."""
    context = TaskContext.get()
    return CpuBackend(1 if context is None else context.cpus())


def task_partition() -> int:
    """Return the number of the task's partition."""
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()
