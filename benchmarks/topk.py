"""Top-k for all users beside the bare product, and the time of a single request."""

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import threadpoolctl

from benchmarks import report
from benchmarks.epochs import timed
from benchmarks.matrices import long_tailed
from benchmarks.records import Options, progress
from safecf.als.loss import Loss, Ridge
from safecf.als.rows import user_rows
from safecf.als.solvers import Exact
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.csr_from_scipy import check_matrix
from safecf.models import IALS

SHAPE = (100_000, 20_000, 7_000_000)
FACTORS, TOP, BATCH = 128, 100, 2048
ONE_FACTORS, ONE_TOP, HISTORY, REQUESTS = 256, 20, 100, 2000
TARGET, TARGET_SECONDS = 1.5, 1e-3
PRODUCT = "bare product"


def measure(options: Options) -> dict[str, Any]:
    """Rank for everybody, then for one new user at a time."""
    matrix = long_tailed(*options.shape(*SHAPE))
    return {"all": _everybody(matrix, options), "one": _single(matrix, options)}


def _everybody(matrix: Any, options: Options) -> dict[str, Any]:
    """Time the product, our top-k, and implicit's, in the same batches of users."""
    d, threads = options.factors(FACTORS), options.threads
    model = IALS(d, iterations=2, num_threads=threads, random_state=0)
    model.fit(matrix, show_progress=False)
    queries, items = model.user_factors, model.item_factors
    index, theirs = CpuBackend(threads).index(items), _implicit(model, threads)
    batches = [
        np.arange(first, min(first + BATCH, len(queries)))
        for first in range(0, len(queries), BATCH)
    ]
    seen = [matrix[batch] for batch in batches]
    checked = [check_matrix(part, allow_empty=True) for part in seen]
    scores = np.empty((BATCH, len(items)), dtype=np.float32)

    def product() -> None:
        for batch in batches:
            np.matmul(queries[batch[0] : batch[-1] + 1], items.T, out=scores[: batch.size])

    def verb() -> None:
        for batch, part in zip(batches, checked, strict=True):
            index.search(queries[batch[0] : batch[-1] + 1], TOP, part)

    def recommend(of: Any) -> Callable[[], None]:
        def run() -> None:
            for batch, part in zip(batches, seen, strict=True):
                of.recommend(batch, part, N=TOP)

        return run

    steps = {
        PRODUCT: product,
        "safecf, the backend's `search`": verb,
        "safecf, `model.recommend`": recommend(model),
        "implicit, `model.recommend`": recommend(theirs),
    }
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for repeat in range(options.repeats + 1):
        for name, step in steps.items():
            # the others have threads of their own
            with threadpoolctl.threadpool_limits(threads if name == PRODUCT else 1, "blas"):
                taken = timed(step)
            if repeat > 0:  # the first loads code and memory
                seconds[name].append(taken)
                progress(f"top {TOP} of {len(items):,}, {name}: {taken:.2f} s")
    size = [*matrix.shape, matrix.nnz]
    return {"size": size, "factors": d, "threads": threads, "seconds": seconds}


def _implicit(model: IALS, threads: int) -> Any:
    """Return implicit's model with the factors of ours."""
    from implicit.cpu.als import AlternatingLeastSquares  # noqa: PLC0415 - not in our own environment

    with threadpoolctl.threadpool_limits(1, "blas"):  # what it advises
        theirs = AlternatingLeastSquares(model.factors, num_threads=threads)
    theirs.user_factors, theirs.item_factors = model.user_factors, model.item_factors
    return theirs


def _single(matrix: Any, options: Options) -> dict[str, Any]:
    """Time fold-in and top-k of one new user after the other, with one thread."""
    d, rng, users = options.factors(ONE_FACTORS), np.random.default_rng(0), matrix.shape[0]
    model = IALS(d, iterations=2, num_threads=1, random_state=0)
    model.fit(matrix[: max(100, users // 10)], show_progress=False)
    requests = max(100, round(REQUESTS * min(1, 10 * options.scale)))
    rows = _histories(matrix, requests, rng)
    items, b = model.item_factors, model.unobserved_weight
    backend, loss, ridge = CpuBackend(1), Loss(b, 0.0), Ridge(model.regularization)
    fixed, index = backend.fix(items, b * backend.gram(items)), backend.index(items)

    def verbs(history: Any, systems: Any) -> None:
        factors = np.zeros((1, d), dtype=np.float32)
        backend.solve_rows(systems, fixed, factors, Exact())
        index.search(factors, ONE_TOP, history)

    checked = [check_matrix(row) for row in rows]
    sizes, one = (len(items), model.num_items), np.ones(1)
    systems = [user_rows(each, each.row_mass(), one, loss, ridge, sizes) for each in checked]
    folded = [model.fold_in(row) for row in rows]
    calls: dict[str, Callable[[int], Any]] = {
        "`model.recommend(recalculate_user=True)`": lambda at: model.recommend(
            0, rows[at], N=ONE_TOP, recalculate_user=True
        ),
        "its fold-in, `model.fold_in`": lambda at: model.fold_in(rows[at]),
        "its top-k, `model.recommend_factors`": lambda at: model.recommend_factors(
            folded[at], rows[at], N=ONE_TOP
        ),
        "`solve_rows` and `search` of the backend": lambda at: verbs(checked[at], systems[at]),
    }
    with threadpoolctl.threadpool_limits(1, "blas"):
        # each by itself, as a service would: they do not push each other's arrays out of the caches
        seconds = {
            name: [timed(lambda at=at, call=call: call(at)) for at in range(requests)]
            for name, call in calls.items()
        }
    quantiles = {
        name: [float(np.quantile(times[10:], q)) for q in (0.5, 0.99)]
        for name, times in seconds.items()
    }
    for name, (median, p99) in quantiles.items():
        progress(f"{name}: {median * 1e6:.0f} us, 99 %: {p99 * 1e6:.0f} us")
    return {"items": len(items), "factors": d, "requests": requests, "quantiles": quantiles}


def _histories(matrix: Any, count: int, rng: np.random.Generator) -> list[Any]:
    """Return rows of HISTORY items each, drawn by their popularity."""
    items = matrix.shape[1]
    popularity = np.bincount(matrix.indices, minlength=items) + 1.0
    length, rows = min(HISTORY, items // 4), []
    for _ in range(count):
        row = matrix[:1].copy()
        chosen = rng.choice(items, length, replace=False, p=popularity / popularity.sum())
        row.indices = np.sort(chosen).astype(np.int32)
        row.data = np.ones(length, dtype=matrix.dtype)
        row.indptr = np.array([0, length], dtype=np.int32)
        rows.append(row)
    return rows


def section(results: dict[str, Any], options: Options) -> list[str]:
    """Write both tables with their targets."""
    whole, one = results["all"], results["one"]
    seconds, base = whole["seconds"], whole["seconds"][PRODUCT]
    users, items, nnz = whole["size"]
    rows = []
    for name, times in seconds.items():
        ratios = [ours / bare for ours, bare in zip(times, base, strict=True)]
        spread = f"{report.short(min(times))} to {report.short(max(times))}"
        ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        rows.append([name, report.short(statistics.median(times)), spread, ratio])
    micro = [
        [name, *(f"{value * 1e6:,.0f}" for value in values)]
        for name, values in one["quantiles"].items()
    ]
    return [
        f"Top {TOP} of {items:,} items for {users:,} users without the {nnz:,} pairs that are "
        f"known, d = {whole['factors']}, {whole['threads']} threads, factors of an IALS of two "
        f"epochs, batches of {BATCH:,} users for all, {len(base)} alternating repeats. The bare "
        f"product is numpy's, in float32, of the same batches. At most {TARGET} times the product "
        "is the target.",
        report.table(["", "seconds, median", "spread", "product = 1, median of pairs"], rows),
        f"One new user after the other, with {one['requests']:,} different histories of "
        f"{min(HISTORY, one['items'] // 4)} items: exact fold-in at d = {one['factors']}, then the "
        f"top {ONE_TOP} of {one['items']:,} items without the history, one thread. Under "
        f"{TARGET_SECONDS * 1e6:,.0f} microseconds is the target.",
        report.table(["", "microseconds, median", "99 %"], micro),
    ]
