"""Peak memory of training beside the formula of docs/memory.md."""

import statistics
import tempfile

import numpy as np
import scipy.sparse

from benchmarks.clock import apart, cost
from benchmarks.harness import Found, Row, Size, progress
from benchmarks.matrices import long_tailed
from safecf.free_memory import available_bytes, training_bytes
from safecf.models import SAFER2

ARRAYS = ("data", "indices", "indptr")


def measure(size: Size, cases: list[Row]) -> Found:
    """Train on several shapes, and compare the peak with the formula."""
    for case in cases:
        matrix, d = long_tailed(*size.shape(*case["shape"])), size.factors(case["factors"])
        formula = expected_bytes(matrix, d, size.threads)
        rise = train_apart(matrix, d, size.threads, 2, {})["rise"]
        row = {"users": matrix.shape[0], "items": matrix.shape[1], "interactions": matrix.nnz}
        row |= {"factors": d, "formula": formula, "rise": rise, "ratio": rise / formula}
        yield "peaks", row
    yield "setting", {"threads": size.threads}


def expected_bytes(matrix: scipy.sparse.csr_matrix, factors: int, threads: int) -> int:
    """The formula of docs/memory.md for an unweighted matrix: both directions, and training."""
    return 8 * matrix.nnz + training_bytes(*matrix.shape, matrix.nnz, factors, threads)


def fits(matrix: scipy.sparse.csr_matrix, factors: int, threads: int) -> bool:
    """Whether memory for training is free, with a fifth to spare; print a message if not."""
    needed, free = expected_bytes(matrix, factors, threads), available_bytes()
    enough = free is None or 1.2 * needed < free
    if not enough:
        progress(f"d = {factors}: left out, {needed / 2**30:.0f} GiB are not free")
    return enough


def train_apart(
    matrix: scipy.sparse.csr_matrix, factors: int, threads: int, epochs: int, options: Row
) -> Row:
    """Train SAFER2 on a matrix that is read from files, in a process of its own; see `train`."""
    options = {"iterations": epochs, "num_threads": threads, "random_state": 0, **options}
    with tempfile.TemporaryDirectory() as folder:
        for name in ARRAYS:
            np.save(f"{folder}/{name}.npy", getattr(matrix, name))
        found: Row = apart(train, folder, matrix.shape, factors, options)
    return found


def train(folder: str, shape: tuple[int, int], factors: int, options: Row) -> Row:
    """Train; return seconds per epoch and around the epochs, and by how far the peak rose."""
    small = long_tailed(200, 100, 2000)  # loads all code, so that its memory is not counted
    SAFER2(factors=8, iterations=1, random_state=0).fit(small, show_progress=False)
    arrays = tuple(np.load(f"{folder}/{name}.npy") for name in ARRAYS)
    matrix = scipy.sparse.csr_matrix(arrays, shape=shape, copy=False)
    model = SAFER2(factors=factors, **options)
    found = cost(lambda: model.fit(matrix, show_progress=False))
    seconds = [sum(record.seconds.values()) for record in model.history]
    median = statistics.median(seconds[1:] or seconds)
    return {"seconds": median, "around": found["seconds"] - sum(seconds), "rise": found["rise"]}
