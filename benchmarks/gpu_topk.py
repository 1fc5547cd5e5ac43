"""Top-k for all users of the MSD shape on a GPU, beside the bare product."""

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks import report
from benchmarks.devices import backend_of, forget, peak, timed, waiter
from benchmarks.matrices import long_tailed
from benchmarks.peers import SAFER2 as SETTINGS
from benchmarks.records import Options, progress
from benchmarks.report import short
from safecf.data.matrices.csr_from_scipy import check_matrix
from safecf.models import SAFER2

SHAPE = (571_355, 41_140, 33_600_000)  # all users, not those of training alone
FACTORS, TOP, GOAL = 512, 100, 5.0
EPOCHS, REPEATS = 2, 3
PRODUCT_ROWS = 2048
PRODUCT = "bare product, float32"
SEARCH, RECOMMEND = "the backend's `search`", "`model.recommend_all`"


def measure(options: Options) -> dict[str, Any]:
    """Train for two epochs, and rank for everybody."""
    matrix, d = long_tailed(*options.shape(*SHAPE)), options.factors(FACTORS)
    where = {"backend": "torch", "device": options.device, "random_state": 0}
    model = SAFER2(d, iterations=EPOCHS, **where, **SETTINGS["msd"])
    model.fit(matrix, show_progress=False)
    queries, seen = model.user_factors, check_matrix(matrix)
    index = backend_of(options).index(model.item_factors)
    top = min(TOP, matrix.shape[1])
    seconds = {PRODUCT: _product(queries, model.item_factors, options)}
    forget(options.device)
    steps = {
        SEARCH: lambda: index.search(queries, top, seen),
        RECOMMEND: lambda: model.recommend_all(matrix, N=top),
    }
    for name, step in steps.items():
        seconds[name] = _repeated(name, step, options)
    return {
        "size": [*matrix.shape, matrix.nnz],
        "factors": d,
        "top": top,
        "seconds": seconds,
        "memory": peak(options.device),
        "seen": _seen(model.recommend_all(matrix[:1000], N=top), matrix),
    }


def _product(users: Any, items: Any, options: Options) -> list[float]:
    """Time the product of all factors, some users at a time, on the device."""
    x, y = (torch.tensor(side, device=options.device) for side in (users, items))
    scores = x.new_empty(PRODUCT_ROWS, len(items))

    def product() -> None:
        for part in x.split(PRODUCT_ROWS):
            torch.mm(part, y.T, out=scores[: len(part)])

    return _repeated(PRODUCT, product, options)


def _repeated(name: str, step: Callable[[], Any], options: Options) -> list[float]:
    """Time a step several times, after a first time that loads code and memory."""
    seconds = [timed(step, waiter(options.device)) for _ in range(REPEATS + 1)]
    progress(f"{name}: {' '.join(f'{taken:.3f}' for taken in seconds)} s")
    return seconds[1:]


def _seen(ids: Any, matrix: Any) -> int:
    """Count the items among those of the first users that they have already."""
    rows = np.repeat(np.arange(len(ids)), ids.shape[1])[ids.ravel() >= 0]
    return int((matrix[: len(ids)][rows, ids[ids >= 0]] != 0).sum())


def section(results: dict[str, Any], options: Options) -> list[str]:
    """Write the seconds beside those of the product."""
    (users, items, nnz), seconds = results["size"], results["seconds"]
    base, memory = statistics.median(seconds[PRODUCT]), results["memory"]
    rows = []
    for name, times in seconds.items():
        median = statistics.median(times)
        spread = f"{short(min(times))} to {short(max(times))}"
        rows.append([name, short(median), spread, f"{median / base:.2f}", f"{users / median:,.0f}"])
    size = "" if memory is None else f" The peak of GPU memory is {memory / 2**30:.2f} GiB."
    return [
        f"Top {results['top']} of {items:,} items for {users:,} users without the {nnz:,} pairs "
        f"that are known, d = {results['factors']}, factors of a SAFER2 of {EPOCHS} epochs. "
        f"Queries start and answers end in the host's memory; the bare product is that of all "
        f"factors on the GPU, {PRODUCT_ROWS:,} users at a time, of which nothing is kept. Under "
        f"{GOAL:g} seconds is the goal of `recommend_all`: "
        f"{report.met(statistics.median(seconds[RECOMMEND]), GOAL)}. Of the answers to the first "
        f"users, {results['seen']} are known pairs.{size}",
        report.table(["", "seconds, median", "spread", "product = 1", "users per second"], rows),
    ]
