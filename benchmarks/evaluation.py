"""Evaluation of 10,000 users x 20,000 items, and its parts, beside a bare product of that size."""

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import numpy as np
import threadpoolctl
import typer

from benchmarks import report
from benchmarks.matrices import long_tailed
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.csr import Csr
from safecf.data.matrices.csr_from_scipy import check_matrix
from safecf.data.splits.held_out import HeldOut, Split
from safecf.defaults import TAILS
from safecf.evaluation import evaluate
from safecf.measures.bootstrap import resample
from safecf.measures.ranks import RANK_METRICS
from safecf.models import IALS

METRICS = ("recall", "precision", "map", "mrr", "hit")
PRODUCT, GIVEN = "bare product", "evaluation of given factors"
WIDTHS = (32, 64, 256)  # factors for which ranks are counted beside the product,
HELD_OUT = (10, 33, 100, 400)  # of so many items per user
INTERACTIONS = 50  # per user; a fifth of them held out


class Ranker:
    """Users with given factors: what is left of `recommend` without fold-in."""

    def __init__(self, users: Any, items: Any, threads: int) -> None:
        self.user_factors, self.item_factors = users, items
        self.index = CpuBackend(threads).index(items)

    def recommend(
        self, userid: Any, user_items: Any, N: int = 10, recalculate_user: bool = False
    ) -> tuple[Any, Any]:
        """Return the N best items by x_u . y_i."""
        liked = check_matrix(user_items, allow_empty=True)
        return self.index.search(self.user_factors[userid], N, liked)


def make_split(users: int, items: int) -> Split:
    """Return held-out users with long-tailed histories, and as many to train on."""
    matrix = long_tailed(2 * users, items, 2 * users * INTERACTIONS)
    hidden = np.random.default_rng(0).random(matrix.nnz) < 0.2
    parts = []
    for mask in (~hidden, hidden):
        part = matrix.copy()
        part.data = mask.astype(np.float32)
        part.eliminate_zeros()
        parts.append(part[users:])
    nobody = HeldOut(parts[0][:0], parts[1][:0])
    ids = np.arange(items)
    return Split(matrix[:users], nobody, HeldOut(*parts), ids, np.arange(2 * users))


def timed(step: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def main(
    users: Annotated[int, typer.Option(help="Held-out users.")] = 10_000,
    items: Annotated[int, typer.Option(help="Items.")] = 20_000,
    factors: Annotated[int, typer.Option(help="d.")] = 128,
    k: Annotated[int, typer.Option(help="Length of the rankings.")] = 100,
    threads: Annotated[int, typer.Option(help="Threads of everything.")] = 2,
    repeats: Annotated[int, typer.Option(help="Alternating repeats.")] = 5,
) -> None:
    """Time the product, the evaluation without fold-in, and all that comes on top of it."""
    split = make_split(users, items)
    model = IALS(factors, iterations=1, num_threads=threads, random_state=0)
    model.fit(split.train, show_progress=False)
    queries, candidates = model.fold_in(split.test.history), model.item_factors
    ranker = Ranker(queries, candidates, threads)
    product = np.empty((users, items), dtype=np.float32)
    scores = np.random.default_rng(0).random(users)
    steps: dict[str, Callable[[], Any]] = {
        PRODUCT: lambda: np.matmul(queries, candidates.T, out=product),
        GIVEN: lambda: evaluate(ranker, split, k=k, metrics=METRICS),
        "evaluation of IALS": lambda: evaluate(model, split, k=k, metrics=METRICS),
        "and auc, ndcg and log_rank": lambda: evaluate(
            model, split, k=k, metrics=(*METRICS, *RANK_METRICS)
        ),
        "bootstrap": lambda: resample(scores, TAILS, 2000, seed=0),
    }
    seconds = alternating(steps, threads, repeats)
    ratios = pairs(seconds, GIVEN, PRODUCT)
    page = report.write(
        "evaluation",
        f"Evaluation of {users:,} users x {items:,} items",
        f"d = {factors}, top {k}, {len(METRICS)} metrics per user, {threads} threads, {repeats} "
        "alternating repeats. The bare product is numpy's, in float32, of all users with all "
        "items. The evaluation of given factors ranks, finds the hits, scores, profiles the users "
        "and counts the exposure; that of IALS also folds the users in, exactly, and computes "
        "their losses and those of the training users. The bootstrap is "
        f"of {users:,} distinct scores: 2,000 draws, 10 levels.",
        table(seconds),
        f"Evaluation of given factors takes {statistics.median(ratios):.2f} times as long as the "
        f"product (pairs: {min(ratios):.2f} to {max(ratios):.2f}).",
        f"The ranks of T held-out items per user, {', '.join(map(str, HELD_OUT))} at random, "
        "counted among the items that are not in the history. At most twice the product is the "
        "target. Factors are random, so that held-out items have all ranks.",
        *(rank_table(split, width, threads, repeats) for width in WIDTHS),
    )
    print(page.read_text())


def rank_table(split: Split, factors: int, threads: int, repeats: int) -> str:
    """Time the bare product, the ranks of held-out items, and the top 100."""
    rng = np.random.default_rng(0)
    history = check_matrix(split.test.history, allow_empty=True)
    users, items = (rng.normal(size=(size, factors)).astype(np.float32) for size in history.shape)
    index, product = CpuBackend(threads).index(items), np.empty(history.shape, dtype=np.float32)
    steps: dict[str, Callable[[], Any]] = {PRODUCT: lambda: np.matmul(users, items.T, out=product)}
    for count in HELD_OUT:
        target = targets(*history.shape, count, rng)
        steps[f"ranks, d = {factors}, T = {count}"] = partial(index.ranks, users, target, history)
    steps[f"top 100, d = {factors}"] = lambda: index.search(users, 100, history)
    return table(alternating(steps, threads, repeats))


def targets(users: int, items: int, count: int, rng: np.random.Generator) -> Csr:
    """Return `count` items per user: one at random in each of `count` parts of the items."""
    edges = np.linspace(0, items, count + 1).astype(np.int32)
    columns = rng.integers(edges[:-1], edges[1:], (users, count), dtype=np.int32)
    return Csr(count * np.arange(users + 1), columns.ravel(), None, (users, items))


def alternating(
    steps: dict[str, Callable[[], Any]], threads: int, repeats: int
) -> dict[str, list[float]]:
    """Return the seconds of every step, one after the other, again and again."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    with threadpoolctl.threadpool_limits(threads, "blas"):
        for step in steps.values():
            step()  # loads code and memory
        for _ in range(repeats):
            for name, step in steps.items():
                seconds[name].append(timed(step))
                print(f"{name}: {seconds[name][-1]:.3f} s", flush=True)
    return seconds


def pairs(seconds: dict[str, list[float]], ours: str, theirs: str) -> list[float]:
    """Return the ratios of two steps of the same repeat."""
    return [a / b for a, b in zip(seconds[ours], seconds[theirs], strict=True)]


def table(seconds: dict[str, list[float]]) -> str:
    """Write a line per step; ratios are medians over pairs."""
    rows = []
    for name, times in seconds.items():
        spread = f"{min(times):.3f} to {max(times):.3f}"
        ratio = f"{statistics.median(pairs(seconds, name, PRODUCT)):.2f}"
        rows.append([name, f"{statistics.median(times):.3f}", spread, ratio])
    return report.table(["", "seconds, median", "spread", "product = 1"], rows)
