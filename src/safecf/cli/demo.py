"""`safecf demo`: iALS and SAFER2 side by side, on people of whom a few share a rare taste."""

import time
from typing import Annotated, Any

import numpy as np
import scipy.sparse
import typer
from rich.console import Console
from rich.table import Table

from safecf.evaluation.metrics import recall
from safecf.evaluation.tail import tail_mean
from safecf.models import IALS, SAFER2

USERS, ITEMS, TASTES, HISTORY = 3000, 800, 12, 30
CUTOFF, TAIL = 20, 0.3


def demo(
    seed: Annotated[int, typer.Option(help="Seed of the data and of both models.")] = 0,
) -> None:
    """Train iALS and SAFER2 on a small synthetic matrix and compare who is served how well."""
    console = Console()
    history, target = _split(_interactions(seed), seed)
    console.print(
        f"{USERS:,} users, {ITEMS} items, {history.nnz:,} interactions to train on, "
        f"{target.nnz:,} held out; {TASTES} tastes, the rarest shared by few."
    )
    table = Table(title=f"recall@{CUTOFF} on the held-out interactions")
    for heading in ("model", "all users", f"worst-off {TAIL:.0%}", "CVaR of the loss", "seconds"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    # fewer factors than tastes, so that the models have to choose whom to serve; the weights are
    # the best of a small grid for either model on other seeds
    options: dict[str, Any] = {"factors": 6, "iterations": 20, "random_state": seed}
    models = {
        "iALS": IALS(unobserved_weight=0.2, regularization=0.03, **options),
        f"SAFER2 (tail {TAIL})": SAFER2(
            tail=TAIL, unobserved_weight=0.05, regularization=0.002, bandwidth=0.1, **options
        ),
    }
    for name, model in models.items():
        begin = time.perf_counter()
        model.fit(history)
        seconds = time.perf_counter() - begin
        ranked, _ = model.recommend(np.arange(USERS), history, N=CUTOFF)
        scores = recall(ranked, target, CUTOFF)
        row = (np.nanmean(scores), tail_mean(scores, TAIL), model.history[-1].cvar)
        table.add_row(name, *(f"{value:.4f}" for value in row), f"{seconds:.2f}")
    console.print(table)
    console.print(
        "Every model minimises a loss of its own, so only the recalls compare. A short history "
        "and a rare taste make a user hard to serve; SAFER2 gives such users more weight."
    )


def _interactions(seed: int) -> scipy.sparse.csr_matrix:
    """Draw people with one taste each, tastes of falling popularity, histories of any length."""
    rng = np.random.default_rng(seed)
    sizes = 0.5 ** np.arange(TASTES)
    taste = rng.choice(TASTES, USERS, p=sizes / sizes.sum())
    likes = rng.pareto(1.5, (TASTES, ITEMS)) * (rng.random((TASTES, ITEMS)) < 0.2) + 0.01
    length = np.clip(rng.lognormal(np.log(HISTORY), 0.7, USERS), 5, ITEMS // 4).astype(int)
    # the n largest of log(likes) + Gumbel noise are n draws without replacement
    keys = np.log(likes)[taste] + rng.gumbel(size=(USERS, ITEMS))
    rank = np.argsort(np.argsort(-keys, axis=1), axis=1)
    return scipy.sparse.csr_matrix((rank < length[:, None]).astype(np.float32))


def _split(
    matrix: scipy.sparse.csr_matrix, seed: int
) -> tuple[scipy.sparse.csr_matrix, scipy.sparse.csr_matrix]:
    """Hide a fifth of the interactions."""
    hidden = np.random.default_rng(seed + 1).random(matrix.nnz) < 0.2
    parts = []
    for mask in (~hidden, hidden):
        part = matrix.copy()
        part.data = mask.astype(np.float32)
        part.eliminate_zeros()
        parts.append(part)
    return parts[0], parts[1]
