"""Evaluation of 10,000 users x 20,000 items, and its parts, beside a bare product of that size."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.clock import Step, compared, in_turn
from benchmarks.harness import Found, Row, Size
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

USERS, ITEMS, FACTORS, TOP = 10_000, 20_000, 128, 100
METRICS = ("recall", "precision", "map", "mrr", "hit")
DRAWS = 2000  # of the bootstrap
PRODUCT = "bare product"
WIDTHS = (32, 64, 256)  # factors for which ranks are counted beside the product,
HELD_OUT = (10, 33, 100, 400)  # of so many items per user
INTERACTIONS = 50  # per user; a fifth of them held out


class Ranker:
    """Users with given factors: what is left of `recommend` without fold-in."""

    def __init__(self, users: Any, items: Any, threads: int) -> None:
        self.user_factors, self.item_factors = users, items
        self.index = CpuBackend(threads).index(items)

    def recommend(self, userid: Any, user_items: Any, N: int = 10, **options: Any) -> Any:
        """Return the N best items by x_u . y_i."""
        liked = check_matrix(user_items, allow_empty=True)
        return self.index.search(self.user_factors[userid], N, liked)


def measure(size: Size) -> Found:
    """Time the product, the evaluation without fold-in, and all that comes on top of it."""
    users, items, _ = size.shape(USERS, ITEMS, 1)
    split, d, k = make_split(users, items), size.factors(FACTORS), min(TOP, items // 2)
    model = IALS(d, iterations=1, num_threads=size.threads, random_state=0)
    model.fit(split.train, show_progress=False)
    queries, candidates = model.fold_in(split.test.history), model.item_factors
    ranker = Ranker(queries, candidates, size.threads)
    product = np.empty((users, items), dtype=np.float32)
    scores, every = np.random.default_rng(0).random(users), (*METRICS, *RANK_METRICS)
    steps: dict[str, Step] = {
        PRODUCT: lambda: np.matmul(queries, candidates.T, out=product),
        "evaluation of given factors": lambda: evaluate(ranker, split, k=k, metrics=METRICS),
        "evaluation of IALS": lambda: evaluate(model, split, k=k, metrics=METRICS),
        "and auc, ndcg and log_rank": lambda: evaluate(model, split, k=k, metrics=every),
        "bootstrap": lambda: resample(scores, TAILS, DRAWS, seed=0),
    }
    yield "times", compared(in_turn(steps, size.repeats, size.threads), product=PRODUCT)
    for width in sorted({size.factors(width) for width in WIDTHS}):
        yield "ranks", [{"factors": width, **row} for row in _ranks(split, width, k, size)]
    setting: Row = {"users": users, "items": items, "factors": d, "top": k, "draws": DRAWS}
    setting |= {"metrics": len(METRICS), "threads": size.threads, "repeats": size.repeats}
    yield "setting", setting | {"tails": len(TAILS), "held_out": ", ".join(map(str, HELD_OUT))}


def make_split(users: int, items: int) -> Split:
    """Return held-out users with long-tailed histories, and as many to train on."""
    matrix = long_tailed(2 * users, items, min(2 * users * INTERACTIONS, users * items // 4))
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


def _ranks(split: Split, factors: int, k: int, size: Size) -> list[Row]:
    """Time the bare product, the ranks of held-out items, and the top k."""
    rng = np.random.default_rng(0)
    history = check_matrix(split.test.history, allow_empty=True)
    users, items = (rng.normal(size=(rows, factors)).astype(np.float32) for rows in history.shape)
    index, product = CpuBackend(size.threads).index(items), np.empty(history.shape, np.float32)
    steps: dict[str, Step] = {PRODUCT: lambda: np.matmul(users, items.T, out=product)}
    for count in HELD_OUT:
        target = targets(*history.shape, min(count, len(items) // 2), rng)
        steps[f"ranks, d = {factors}, T = {count}"] = partial(index.ranks, users, target, history)
    steps[f"top {k}, d = {factors}"] = lambda: index.search(users, k, history)
    return compared(in_turn(steps, size.repeats, size.threads), product=PRODUCT)


def targets(users: int, items: int, count: int, rng: np.random.Generator) -> Csr:
    """Return `count` items per user: one at random in each of `count` parts of the items."""
    edges = np.linspace(0, items, count + 1).astype(np.int32)
    columns = rng.integers(edges[:-1], edges[1:], (users, count), dtype=np.int32)
    return Csr(count * np.arange(users + 1), columns.ravel(), None, (users, items))
