"""Top-k for all users beside the bare product, on the CPU and a device; and single requests."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
import threadpoolctl

from benchmarks.clock import Step, compared, in_turn, spread, timed
from benchmarks.harness import Found, Row, Size
from benchmarks.matrices import long_tailed, setting_of
from benchmarks.peers import SETTINGS, installed
from safecf.als.rows import user_rows
from safecf.als.solvers import Exact
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.csr_from_scipy import check_matrix
from safecf.models import IALS, SAFER2

SHAPE = (100_000, 20_000, 7_000_000)
FACTORS, TOP, BATCH = 128, 100, 2048
ONE_FACTORS, ONE_TOP, HISTORY, REQUESTS = 256, 20, 100, 2000
PRODUCT = "bare product"


def on_host(size: Size) -> Found:
    """Rank for everybody, then for one new user at a time."""
    matrix = long_tailed(*size.shape(*SHAPE))
    history, d = min(HISTORY, matrix.shape[1] // 4), size.factors(ONE_FACTORS)
    requests = max(100, round(REQUESTS * min(1, 10 * size.scale)))
    setting = setting_of(matrix, top=TOP, batch=BATCH, threads=size.threads, repeats=size.repeats)
    setting |= {"factors": size.factors(FACTORS), "one_factors": d, "one_top": ONE_TOP}
    yield "setting", setting | {"history": history, "requests": requests}
    times = in_turn(_everybody(matrix, size), size.repeats, blas={PRODUCT: size.threads})
    yield "everybody", compared(times, product=PRODUCT)
    rows = _histories(matrix, requests, history)
    model = IALS(d, iterations=2, num_threads=1, random_state=0)
    model.fit(matrix[: max(100, matrix.shape[0] // 10)], show_progress=False)
    with threadpoolctl.threadpool_limits(1, "blas"):
        for name, call in _single(model, rows).items():
            # each by itself, as in a service, so that the others' arrays are not in the caches
            times = [timed(partial(call, at)) for at in range(len(rows))]
            median, p99 = (float(np.quantile(times[10:], q)) for q in (0.5, 0.99))
            yield "single", {"name": name, "median": median, "p99": p99}


def _everybody(matrix: Any, size: Size) -> dict[str, Step]:
    """Return the product, our top-k, and implicit's, in the same batches of users."""
    threads = size.threads
    model = IALS(size.factors(FACTORS), iterations=2, num_threads=threads, random_state=0)
    model.fit(matrix, show_progress=False)
    queries, items = model.user_factors, model.item_factors
    index = CpuBackend(threads).index(items)
    batches = np.split(np.arange(len(queries)), np.arange(BATCH, len(queries), BATCH))
    seen = [matrix[batch] for batch in batches]
    checked = [check_matrix(part, allow_empty=True) for part in seen]
    scores = np.empty((BATCH, len(items)), dtype=np.float32)

    def product() -> None:
        for batch in batches:
            np.matmul(queries[batch[0] : batch[-1] + 1], items.T, out=scores[: batch.size])

    def search() -> None:
        for batch, part in zip(batches, checked, strict=True):
            index.search(queries[batch[0] : batch[-1] + 1], TOP, part)

    def recommend(of: Any) -> None:
        for batch, part in zip(batches, seen, strict=True):
            of.recommend(batch, part, N=TOP)

    steps = {PRODUCT: product, "safecf, the backend's `search`": search}
    steps["safecf, `model.recommend`"] = partial(recommend, model)
    if installed("implicit"):
        steps["implicit, `model.recommend`"] = partial(recommend, _implicit(model, threads))
    return steps


def _implicit(model: IALS, threads: int) -> Any:
    """Return implicit's model with the factors of ours."""
    from implicit.cpu.als import AlternatingLeastSquares  # noqa: PLC0415 - an environment of peers

    with threadpoolctl.threadpool_limits(1, "blas"):  # what it advises
        theirs = AlternatingLeastSquares(model.factors, num_threads=threads)
    theirs.user_factors, theirs.item_factors = model.user_factors, model.item_factors
    return theirs


def _single(model: IALS, rows: list[Any]) -> dict[str, Callable[[int], Any]]:
    """Return fold-in and top-k of one new user, with one thread, given the number of the row."""
    items, backend = model.item_factors, CpuBackend(1)
    loss, ridge, *_ = model.compose()
    fixed = backend.fix(items, loss.unobserved_weight * backend.gram(items))
    index = backend.index(items)
    checked = [check_matrix(row) for row in rows]
    sizes, one = (len(items), model.num_items), np.ones(1)
    systems = [user_rows(each, each.row_mass(), one, loss, ridge, sizes) for each in checked]
    folded = [model.fold_in(row) for row in rows]

    def verbs(at: int) -> None:
        factors = np.zeros((1, model.factors), dtype=np.float32)
        backend.solve_rows(systems[at], fixed, factors, Exact())
        index.search(factors, ONE_TOP, checked[at])

    return {
        "`model.recommend(recalculate_user=True)`": lambda at: model.recommend(
            0, rows[at], N=ONE_TOP, recalculate_user=True
        ),
        "its fold-in, `model.fold_in`": lambda at: model.fold_in(rows[at]),
        "its top-k, `model.recommend_factors`": lambda at: model.recommend_factors(
            folded[at], rows[at], N=ONE_TOP
        ),
        "`solve_rows` and `search` of the backend": verbs,
    }


def _histories(matrix: Any, count: int, length: int) -> list[Any]:
    """Return rows of so many items each, drawn by their popularity."""
    items, rows, rng = matrix.shape[1], [], np.random.default_rng(0)
    popularity = np.bincount(matrix.indices, minlength=items) + 1.0
    for _ in range(count):
        chosen = rng.choice(items, length, replace=False, p=popularity / popularity.sum())
        parts = np.ones(length, matrix.dtype), np.sort(chosen).astype(np.int32), [0, length]
        rows.append(scipy.sparse.csr_matrix(parts, shape=(1, items)))
    return rows


def on_device(size: Size, shape: list[int], factors: int, repeats: int, goal: float) -> Found:
    """Train for two epochs on a device, and rank for everybody."""
    import torch  # noqa: PLC0415 - other benchmarks do without

    from benchmarks import devices  # noqa: PLC0415

    matrix, d = long_tailed(*size.shape(*shape)), size.factors(factors)
    where: dict[str, Any] = {"backend": "torch", "device": size.device, "random_state": 0}
    model = SAFER2(d, iterations=2, **where, **SETTINGS["msd"]).fit(matrix, show_progress=False)
    seen, top, wait = check_matrix(matrix), min(TOP, matrix.shape[1]), devices.waiter(size.device)
    yield "setting", setting_of(matrix, factors=d, top=top, epochs=2, batch=BATCH, goal=goal)
    index, medians = devices.backend_of(size).index(model.item_factors), list[float]()

    def row(name: str, step: Step) -> Row:
        seconds = spread([timed(step, wait) for _ in range(repeats + 1)][1:])
        medians.append(seconds["median"])
        found = {"name": name, "seconds": seconds, "ratio": medians[-1] / medians[0]}
        return found | {"users_per_second": matrix.shape[0] / medians[-1]}

    x, y = (
        torch.tensor(side, device=size.device) for side in (model.user_factors, model.item_factors)
    )
    scores = x.new_empty(BATCH, len(y))

    def product(x: Any, y: Any, scores: Any) -> None:
        for part in x.split(BATCH):
            torch.mm(part, y.T, out=scores[: len(part)])

    yield "everybody", row(f"{PRODUCT}, float32", partial(product, x, y, scores))
    del x, y, scores
    devices.forget(size.device)
    search = partial(index.search, model.user_factors, top, seen)
    yield "everybody", row("the backend's `search`", search)
    yield "everybody", row("`model.recommend_all`", lambda: model.recommend_all(matrix, N=top))
    yield "setting", {"memory": devices.peak(size.device)}
    ids = model.recommend_all(matrix[:1000], N=top)
    rows = np.repeat(np.arange(len(ids)), ids.shape[1])[ids.ravel() >= 0]
    known = int((matrix[: len(ids)][rows, ids[ids >= 0]] != 0).sum())
    yield "setting", {"known": known}
