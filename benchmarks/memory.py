"""Peak memory of training beside the formula of docs/memory.md."""

import tempfile

import numpy as np
import scipy.sparse

from benchmarks.clock import Cost, apart, cost
from benchmarks.harness import Part, Size, Tables, benchmark, progress
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
    """Return the number of interactions, and by how many bytes training raises the peak.

    The training reads its matrix from a file, in a process of its own.
    """
    matrix = long_tailed(users, items, interactions)
    with tempfile.TemporaryDirectory() as folder:
        save(folder, matrix)
        found = apart("memory", "train", folder, matrix.shape, factors, threads, model)
    return matrix.nnz, Cost(*found).rise


def fits(size: int) -> bool:
    """Whether so many bytes are free, with a fifth to spare."""
    free = available_bytes()
    return free is None or 1.2 * size < free


def save(folder: str, matrix: scipy.sparse.csr_matrix) -> None:
    """Write a matrix for another process."""
    for name in ARRAYS:
        np.save(f"{folder}/{name}.npy", getattr(matrix, name))


def load(folder: str, shape: tuple[int, int]) -> scipy.sparse.csr_matrix:
    """Read what `save` has written."""
    arrays = tuple(np.load(f"{folder}/{name}.npy") for name in ARRAYS)
    return scipy.sparse.csr_matrix(arrays, shape=shape, copy=False)


def warm(model: str) -> None:
    """Load all code, so that its memory is not counted."""
    small = long_tailed(200, 100, 2000)
    MODELS[model](factors=8, iterations=1, random_state=0).fit(small, show_progress=False)


def train(folder: str, shape: tuple[int, int], factors: int, threads: int, name: str) -> Cost:
    """Train, and return what it took."""
    warm(name)
    matrix = load(folder, shape)
    model = MODELS[name](factors=factors, iterations=2, num_threads=threads, random_state=0)
    return cost(lambda: model.fit(matrix, show_progress=False))
