"""Recommendations of many users into a file, beside the product and selection alone; and memory."""

import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse
import threadpoolctl
import typer

from benchmarks import report
from benchmarks.apart import Cost, apart, cost
from benchmarks.epochs import timed
from benchmarks.matrices import long_tailed
from safecf import Interactions
from safecf.batch import recommend_to_file
from safecf.models import IALS, Recommender

TOP, BATCH = 10, 2048
INTERACTIONS = 50  # per user
PRODUCT, NUMPY, SEARCH = "bare product", "product and argpartition, numpy", "`model.recommend`"
SUFFIXES = (".parquet", ".csv", ".jsonl", ".csv.gz")
MEMORY_USERS, MEMORY_ITEMS, MEMORY_FACTORS, MEMORY_INTERACTIONS = (250_000, 1_000_000), 5000, 16, 20


def named(matrix: scipy.sparse.csr_matrix) -> Interactions:
    """Return interactions with strings for ids."""
    users, items = matrix.shape
    user_ids = np.array([f"user-{number:08d}" for number in range(users)], dtype=object)
    return Interactions.from_csr(matrix, user_ids, [f"item-{number}" for number in range(items)])


def steps(
    model: IALS, matrix: scipy.sparse.csr_matrix, data: Interactions, folder: str
) -> dict[str, Callable[[], Any]]:
    """Return what is timed, by name."""
    users, items = model.both_factors()
    scores = np.empty((BATCH, len(items)), dtype=np.float32)

    def product(select: bool) -> None:
        for first in range(0, len(users), BATCH):
            part = users[first : first + BATCH]
            found = np.matmul(part, items.T, out=scores[: len(part)])
            if select:
                np.argpartition(found, -TOP, axis=1)

    def to_file(suffix: str) -> Callable[[], Any]:
        path = Path(folder) / f"out{suffix}"
        return lambda: recommend_to_file(model, path, data, N=TOP, show_progress=False)

    return {
        PRODUCT: lambda: product(select=False),
        NUMPY: lambda: product(select=True),
        SEARCH: lambda: model.recommend(np.arange(len(users)), matrix, N=TOP),
        **{f"`recommend_to_file`, {suffix}": to_file(suffix) for suffix in SUFFIXES},
    }


def memory(users: int) -> Cost:
    """Return what a file for so many users takes; factors and histories are random."""
    rng = np.random.default_rng(0)
    small = long_tailed(1000, MEMORY_ITEMS, 20_000)
    model = IALS(MEMORY_FACTORS, iterations=1, num_threads=2, random_state=0)
    model.fit(named(small), show_progress=False)
    model.user_factors = rng.normal(size=(users, MEMORY_FACTORS)).astype(np.float32)
    columns = rng.integers(MEMORY_ITEMS // MEMORY_INTERACTIONS, size=(users, MEMORY_INTERACTIONS))
    columns += np.arange(MEMORY_INTERACTIONS) * (MEMORY_ITEMS // MEMORY_INTERACTIONS)
    indptr = np.arange(users + 1) * MEMORY_INTERACTIONS
    ones = np.ones(columns.size, dtype=np.float32)
    shape = (users, MEMORY_ITEMS)
    data = named(scipy.sparse.csr_matrix((ones, columns.ravel(), indptr), shape=shape))
    model.user_ids = data.user_ids
    return cost(lambda: write(model, data))


def write(model: Recommender, data: Interactions) -> None:
    with tempfile.TemporaryDirectory() as folder:
        recommend_to_file(model, Path(folder) / "out.parquet", data, N=TOP, show_progress=False)


def main(
    users: Annotated[int, typer.Option(help="Users.")] = 10_000,
    items: Annotated[int, typer.Option(help="Items.")] = 20_000,
    factors: Annotated[int, typer.Option(help="d.")] = 128,
    threads: Annotated[int, typer.Option(help="Threads of everything.")] = 2,
    repeats: Annotated[int, typer.Option(help="Alternating repeats.")] = 3,
) -> None:
    """Time files of all formats beside the product and selection alone, and measure the memory."""
    matrix = long_tailed(users, items, users * INTERACTIONS)
    data = named(matrix)
    model = IALS(factors, iterations=1, num_threads=threads, random_state=0)
    model.fit(data, show_progress=False)
    with tempfile.TemporaryDirectory() as folder:
        compared = steps(model, matrix, data, folder)
        seconds: dict[str, list[float]] = {name: [] for name in compared}
        for repeat in range(repeats + 1):
            for name, step in compared.items():
                with threadpoolctl.threadpool_limits(threads, "blas"):
                    taken = timed(step)
                if repeat > 0:  # the first loads code and memory
                    seconds[name].append(taken)
    rises = {size: Cost(*apart("benchmarks.batch", "memory", size)) for size in MEMORY_USERS}
    page = report.write(
        "batch",
        f"Recommendations of {users:,} users x {items:,} items into a file",
        f"Top {TOP}, d = {factors}, {matrix.nnz:,} known pairs left out (not by numpy), ids are "
        f"strings, {threads} threads, {repeats} alternating repeats. The product is numpy's, in "
        f"float32, in batches of {BATCH:,} users.",
        _times(seconds),
        f"Peak memory of a Parquet file for more and more users, {MEMORY_ITEMS:,} items, d = "
        f"{MEMORY_FACTORS}, histories of {MEMORY_INTERACTIONS}: how far the process grows beyond "
        "the model and the data, which are there before.",
        report.table(
            ["users", "seconds", "MiB beyond model and data"],
            [
                [f"{n:,}", report.short(c.seconds), f"{c.rise / 2**20:.0f}"]
                for n, c in rises.items()
            ],
        ),
    )
    print(page.read_text())


def _times(seconds: dict[str, list[float]]) -> str:
    """Write the median seconds, and the ratios to three bases by pairs."""
    rows = []
    for name, times in seconds.items():
        row = [name, report.short(statistics.median(times))]
        for base in (PRODUCT, NUMPY, SEARCH):
            pairs = zip(times, seconds[base], strict=True)
            row.append(f"{statistics.median(ours / theirs for ours, theirs in pairs):.2f}")
        rows.append(row)
    heads = ["", "seconds, median", "product = 1", "and argpartition = 1", "`recommend` = 1"]
    return report.table(heads, rows)
