"""Peak memory of training beside the formula of docs/memory.md."""

import statistics
import tempfile
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.clock import apart, cost
from benchmarks.harness import Part, Row, Size, Tables, benchmark, progress
from benchmarks.matrices import long_tailed
from safecf.free_memory import available_bytes, training_bytes
from safecf.models import MODELS

ARRAYS = ("data", "indices", "indptr")
CASES = [
    # users, items, interactions, factors: many interactions, then large factors
    (100_000, 20_000, 20_000_000, 16),
    (100_000, 20_000, 4_000_000, 128),
]
EXPERIMENT = benchmark("memory", "Peak memory of training", Part("", "memory:measure"))


def measure(size: Size) -> Tables:
    """Train on two shapes, and compare the peak with the formula."""
    rows = []
    for users, items, interactions, factors in CASES:
        shape, d = size.shape(users, items, interactions), size.factors(factors)
        nnz, measured = rise(*shape, d, size.threads)
        formula = expected_bytes(*shape[:2], nnz, d, size.threads)
        row = {"users": shape[0], "items": shape[1], "interactions": nnz, "factors": d}
        rows.append(row | {"formula": formula, "rise": measured, "ratio": measured / formula})
        progress(str(rows[-1]))
    return {"setting": [{"threads": size.threads}], "peaks": rows}


def expected_bytes(
    users: int, items: int, interactions: int, factors: int, threads: int, *, blocks: bool = False
) -> int:
    """The formula of docs/memory.md for an unweighted matrix: both directions, and training."""
    matrices = 2 * 4 * interactions
    return matrices + training_bytes(users, items, interactions, factors, threads, blocks=blocks)


def rise(
    users: int, items: int, interactions: int, factors: int, threads: int, model: str = "SAFER2"
) -> tuple[int, int]:
    """Return the number of interactions, and by how many bytes training raises the peak."""
    matrix = long_tailed(users, items, interactions)
    return matrix.nnz, train_apart(matrix, model, factors, threads, 2, {})["rise"]


def fits(size: int) -> bool:
    """Whether so many bytes are free, with a fifth to spare."""
    free = available_bytes()
    return free is None or 1.2 * size < free


def train_apart(
    matrix: scipy.sparse.csr_matrix,
    model: str,
    factors: int,
    threads: int,
    epochs: int,
    options: dict[str, Any],
) -> Row:
    """Train on a matrix that is read from files, in a process of its own; see `train`."""
    options = {"iterations": epochs, "num_threads": threads, "random_state": 0, **options}
    with tempfile.TemporaryDirectory() as folder:
        for name in ARRAYS:
            np.save(f"{folder}/{name}.npy", getattr(matrix, name))
        found: Row = apart("memory", "train", folder, matrix.shape, model, factors, options)
    return found


def train(
    folder: str, shape: tuple[int, int], name: str, factors: int, options: dict[str, Any]
) -> Row:
    """Train; return seconds per epoch and around the epochs, and by how far the peak rose."""
    small = long_tailed(200, 100, 2000)  # loads all code, so that its memory is not counted
    MODELS[name](factors=8, iterations=1, random_state=0).fit(small, show_progress=False)
    arrays = tuple(np.load(f"{folder}/{name}.npy") for name in ARRAYS)
    matrix = scipy.sparse.csr_matrix(arrays, shape=shape, copy=False)
    model = MODELS[name](factors=factors, **options)
    found = cost(lambda: model.fit(matrix, show_progress=False))
    seconds = [sum(record.seconds.values()) for record in model.history]
    median = statistics.median(seconds[1:] or seconds)
    return {"seconds": median, "around": found.seconds - sum(seconds), "rise": found.rise}
