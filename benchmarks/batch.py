"""Recommendations of many users into a file, beside the product and selection alone; and memory."""

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.clock import Step, apart, compared, cost, in_turn
from benchmarks.harness import Found, Row, Size
from benchmarks.matrices import long_tailed, setting_of
from safecf import Interactions
from safecf.batch import recommend_to_file
from safecf.models import IALS

USERS, ITEMS, FACTORS, INTERACTIONS = 10_000, 20_000, 128, 50  # interactions per user
TOP, BATCH = 10, 2048
PRODUCT, NUMPY, SEARCH = "bare product", "product and argpartition, numpy", "`model.recommend`"
SUFFIXES = (".parquet", ".csv", ".jsonl", ".csv.gz")
MEMORY_USERS, MEMORY_ITEMS, MEMORY_FACTORS, MEMORY_INTERACTIONS = (250_000, 1_000_000), 5000, 16, 20


def measure(size: Size) -> Found:
    """Time files of all formats beside the product and selection alone, and measure the memory."""
    matrix = long_tailed(*size.shape(USERS, ITEMS, USERS * INTERACTIONS))
    data, d = named(matrix), size.factors(FACTORS)
    model = IALS(d, iterations=1, num_threads=size.threads, random_state=0)
    model.fit(data, show_progress=False)
    with tempfile.TemporaryDirectory() as folder:
        seconds = in_turn(steps(model, matrix, data, Path(folder)), size.repeats, size.threads)
    yield "times", compared(seconds, product=PRODUCT, numpy=NUMPY, recommend=SEARCH)
    for users in sorted({size.count(users, 1000) for users in MEMORY_USERS}):
        yield "peaks", {"users": users, **apart(memory, users)}
    setting = setting_of(matrix, factors=d, top=TOP, batch=BATCH)
    setting |= {"threads": size.threads, "repeats": size.repeats, "memory_items": MEMORY_ITEMS}
    setting |= {"memory_factors": MEMORY_FACTORS, "memory_interactions": MEMORY_INTERACTIONS}
    yield "setting", setting


def named(matrix: scipy.sparse.csr_matrix) -> Interactions:
    """Return interactions with strings for ids."""
    users, items = matrix.shape
    user_ids = np.array([f"user-{number:08d}" for number in range(users)], dtype=object)
    return Interactions.from_csr(matrix, user_ids, [f"item-{number}" for number in range(items)])


def steps(
    model: IALS, matrix: scipy.sparse.csr_matrix, data: Interactions, folder: Path
) -> dict[str, Step]:
    """Return what is timed, by name."""
    users, items = model.both_factors()
    scores = np.empty((BATCH, len(items)), dtype=np.float32)

    def product(select: bool) -> None:
        for first in range(0, len(users), BATCH):
            part = users[first : first + BATCH]
            found = np.matmul(part, items.T, out=scores[: len(part)])
            if select:
                np.argpartition(found, -TOP, axis=1)

    def to_file(suffix: str) -> Any:
        recommend_to_file(model, folder / f"out{suffix}", data, N=TOP, show_progress=False)

    return {
        PRODUCT: partial(product, select=False),
        NUMPY: partial(product, select=True),
        SEARCH: lambda: model.recommend(np.arange(len(users)), matrix, N=TOP),
        **{f"`recommend_to_file`, {suffix}": partial(to_file, suffix) for suffix in SUFFIXES},
    }


def memory(users: int) -> Row:
    """Return what a file for so many users takes; factors and histories are random."""
    rng = np.random.default_rng(0)
    small = long_tailed(1000, MEMORY_ITEMS, 20_000)
    model = IALS(MEMORY_FACTORS, iterations=1, num_threads=2, random_state=0)
    model.fit(named(small), show_progress=False)
    model.user_factors = rng.normal(size=(users, MEMORY_FACTORS)).astype(np.float32)
    columns = rng.integers(MEMORY_ITEMS // MEMORY_INTERACTIONS, size=(users, MEMORY_INTERACTIONS))
    columns += np.arange(MEMORY_INTERACTIONS) * (MEMORY_ITEMS // MEMORY_INTERACTIONS)
    indptr, ones = np.arange(users + 1) * MEMORY_INTERACTIONS, np.ones(columns.size, np.float32)
    parts = ones, columns.ravel(), indptr
    data = named(scipy.sparse.csr_matrix(parts, shape=(users, MEMORY_ITEMS)))
    model.user_ids = data.user_ids
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.parquet"
        return cost(lambda: recommend_to_file(model, path, data, N=TOP, show_progress=False))
