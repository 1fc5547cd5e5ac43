"""float32 against float64: half-steps, scores and whole trainings of ill-conditioned problems."""

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from safecf.als.loss import Loss, Ridge
from safecf.als.rows import Rows, gramian, user_rows
from safecf.als.solvers import Exact
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.csr import Csr
from safecf.errors import ModelFitError, SolveError
from safecf.models import MODELS
from soak.attack import attack
from soak.draws import log_uniform

Floats = NDArray[Any]

EPS = float(np.finfo(np.float32).eps)
TINY = float(np.finfo(np.float32).tiny)
SMALLEST = 1e-30  # of a right-hand side: products of its numbers are still above TINY
HOPELESS = 1e8  # a condition of which float32 resolves nothing
MANY = 100_000  # items of a user


@attack(
    "A row solved in float32 is as good as that in float64 up to the condition of its system: "
    "(x - x*)' A (x - x*) <= (1e-4 + (16 eps cond A)^2) b'x*, with A x* = b and eps = 2^-23. So "
    "it is better than factors of zero up to a condition of 5e5.",
    cases=20_000,
)
def half_steps(rng: np.random.Generator) -> str:
    """Solve ill-conditioned rows by the kernels of any instruction set."""
    fixed, rows, unobserved = random_rows(rng)
    backends = CpuBackend.variants(2)
    backend: Any = backends[rng.integers(len(backends))]
    placed = backend.place(fixed)
    factors = backend.zeros(rows.matrix.num_rows, fixed.shape[1])
    try:
        side = backend.fix(placed, gramian(Loss(unobserved), backend, placed))
        backend.solve_rows(rows, side, factors, Exact())
    except SolveError:
        return "refused"
    others = fixed.astype(np.float64)
    gram = unobserved * others.T @ others
    worst = 0.0
    for row, x in enumerate(factors.astype(np.float64)):
        system, right = dense_system(rows, row, others, gram)
        condition = np.linalg.cond(system) if right.any() else np.inf
        if np.linalg.norm(right) < SMALLEST or condition > HOPELESS:
            continue  # beyond float32, or beyond the reference
        best = np.linalg.solve(system, right)
        error = (x - best) @ system @ (x - best) / (right @ best)
        bound = 1e-4 + (16 * EPS * condition) ** 2
        assert error <= bound, (
            f"row {row} by {backend}, {len(rows.matrix.row(row)[0])} items, {len(x)} factors: "
            f"error {error:.2g} at condition {condition:.2g}"
        )
        worst = max(worst, error / bound)
    return "within a tenth of the bound" if worst < 0.1 else "within the bound"


@attack(
    "Scores in float32 are within (d + 2) eps |x| |y| of float64, and the best k are those in "
    "float64, but for items whose scores are as close.",
    cases=5_000,
)
def scores(rng: np.random.Generator) -> str:
    """Search the best of random factors, of any size and with repeated rows."""
    width, count = int(rng.choice([1, 5, 16, 33, 100])), int(rng.choice([1, 7, 64, 300]))
    items = rng.normal(size=(count, width)) * 10.0 ** rng.uniform(-9, 9, size=(count, 1))
    items = items[rng.integers(count, size=count)].astype(np.float32)
    users = (rng.normal(size=(4, width)) * log_uniform(rng, 1e-9, 1e9)).astype(np.float32)
    best = int(rng.integers(1, count + 1))
    backends = CpuBackend.variants(2)
    backend = backends[rng.integers(len(backends))]
    ids, found = backend.index(items).search(users, best)
    exact = users.astype(np.float64) @ items.astype(np.float64).T
    lengths = [np.linalg.norm(side.astype(np.float64), axis=1) for side in (users, items)]
    bound = (width + 2) * EPS * np.outer(*lengths) + TINY
    off = np.abs(found - np.take_along_axis(exact, ids, 1))
    assert (off <= np.take_along_axis(bound, ids, 1)).all(), f"{backend}: off by {off.max()}"
    last = np.take_along_axis(exact + bound, ids[:, -1:], 1)
    left_out = exact - bound > last
    np.put_along_axis(left_out, ids, False, axis=1)
    assert not left_out.any(), f"{backend}: an item is left out that is better"
    return f"{backend}"


@attack(
    "Three exact ALS epochs in float32 have the objectives of float64 up to 1e-3, with repeated "
    "items, users of one item, and regularization down to 1e-4; up to 5e-2 down to 1e-6.",
    cases=1_000,
)
def objectives(rng: np.random.Generator) -> str:
    """Train with both backends, from the same start."""
    users, columns = int(rng.choice([5, 40])), int(rng.choice([4, 30, 100]))
    likes = rng.random((users, columns)) < rng.choice([0.05, 0.3, 0.9])
    likes[:, rng.integers(columns, size=columns // 3)] = likes[:, :1]  # repeated items
    likes[rng.integers(users)] = np.arange(columns) == 0
    weights = 10.0 ** rng.uniform(-1, 1, likes.shape) * rng.choice([1, 1e-6, 1e6])
    data = sp.csr_matrix(np.where(likes, weights if rng.random() < 0.5 else 1, 0))
    kind: Any = MODELS[str(rng.choice(["IALS", "ERMMF", "SAFER2"]))]
    options: dict[str, Any] = {
        "factors": int(rng.choice([2, 8, 20])),
        "iterations": 3,
        "regularization": log_uniform(rng, 1e-6, 0.1),
        "unobserved_weight": log_uniform(rng, 1e-4, 1),
        "solver": "exact",
        "random_state": int(rng.integers(1000)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            single, double = (
                kind(**options, backend=backend).fit(data, show_progress=False).history
                for backend in ("cpu", "numpy")
            )
        except ModelFitError:
            return "refused"
    for ours, exact in zip(single, double, strict=True):
        error = abs(ours.objective - exact.objective) / abs(exact.objective)
        bound = 1e-3 if options["regularization"] >= 1e-4 else 5e-2
        assert error <= bound, (
            f"{kind.__name__}, {options}: off by {error:.2g} at epoch {ours.epoch}"
        )
    return f"{kind.__name__}"


def random_rows(rng: np.random.Generator) -> tuple[Floats, Rows, float]:
    """Return fixed factors, the systems of some rows, and b."""
    width = int(rng.choice([1, 2, 7, 16, 17, 33, 64]))
    columns = int(rng.choice([1, 2, 16, 40, 200]))
    if rng.random() < 0.02:
        columns, width = MANY, min(width, 16)
    fixed = rng.normal(size=(columns, width)) * log_uniform(rng, 1e-6, 1e2)
    kind = rng.choice(["plain", "repeated", "low rank", "spread"])
    if kind == "repeated":
        fixed = fixed[rng.integers(1 + columns // 8, size=columns)]
    elif kind == "low rank":
        fixed = np.outer(fixed[:, 0], rng.normal(size=width)) + 1e-5 * fixed
    elif kind == "spread":
        fixed *= 10.0 ** rng.uniform(-4, 4, size=(columns, 1))
    fixed = fixed.astype(np.float32)
    lengths = rng.choice([0, 1, 2, width, columns // 2, columns], size=6)
    lengths = np.minimum(lengths, columns)
    chosen = [np.sort(rng.choice(columns, size, replace=False)) for size in lengths]
    indptr = np.append(0, np.cumsum(lengths)).astype(np.int64)
    matrix = Csr(indptr, np.concatenate(chosen).astype(np.int32), None, (len(lengths), columns))
    if rng.random() < 0.7:
        powers = rng.choice([0.5, 3, 10, 30])
        weights = 10.0 ** rng.uniform(-powers, min(powers, 10), size=matrix.nnz)
        matrix = Csr(indptr, matrix.indices, weights.astype(np.float32), matrix.shape)
    unobserved = log_uniform(rng, 1e-8, 10) * (rng.random() < 0.9)
    ridge = Ridge(log_uniform(rng, 1e-12, 1e2) * (rng.random() < 0.9))
    loss = Loss(unobserved, float(rng.choice([0, 0.5, 1])))
    weight = rng.uniform(0.01, 1, size=len(lengths))
    rows = user_rows(matrix, matrix.row_mass(), weight, loss, ridge, (columns, columns))
    return fixed, rows, unobserved


def dense_system(rows: Rows, row: int, others: Floats, gram: Floats) -> tuple[Floats, Floats]:
    """A = g G + Y' diag(p) Y + ridge I and b = Y' p, in float64."""
    columns, confidence = rows.matrix.row(row)
    pairs, own = rows.row_weight[row] * confidence, others[columns]
    system = rows.gram_weight[row] * gram + own.T @ (pairs[:, None] * own)
    return system + rows.ridge[row] * np.eye(len(gram)), own.T @ pairs
