"""float32 against float64: half-steps, scores and whole trainings of ill-conditioned problems."""

import math
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
CHUNK = 256  # rows of a Gramian that are summed one after the other
MANY = 100_000  # items of a user
EPOCHS = 3
NO_PROMISE = "beyond float32"


@attack(
    "A row of n items and d factors, solved in float32, is as close to the solution x* of A x = b "
    "as the conditions of A and of b = sum_j p_j y_j allow: |x - x*| <= D / (1 - D) |x*| in the "
    "norm of A, with D = 2 (d + n) eps (cond A + sqrt(cond A) sum_j p_j |y_j| / |b|), eps = 2^-23, "
    "plus s eps |G| |A^-1| for the Gramian G of m rows, s = m up to 256 and 256 + m / 256 beyond, "
    "plus what underflows. From D = 1 on, nothing is promised.",
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
    promised = beyond = 0
    for row, x in enumerate(factors.astype(np.float64)):
        system, right = dense_system(rows, row, others, gram)
        if not right.any():
            assert not x.any(), f"row {row} by {backend}: not zero"
            continue
        best, bound = solved_with_bound(rows, row, others, system, right)
        bound += gram_bound(others, rows.gram_weight[row] * gram, system)
        if bound >= 1:
            beyond += 1
            continue
        promised += 1
        error = np.sqrt((x - best) @ system @ (x - best) / (right @ best))
        assert error <= bound / (1 - bound), (
            f"row {row} by {backend}, {len(rows.matrix.row(row)[0])} items, {len(x)} factors: "
            f"error {error:.2g}, where {bound / (1 - bound):.2g} is allowed"
        )
    if not beyond:
        return "all rows within the bound"
    return f"some rows within the bound, some {NO_PROMISE}" if promised else f"all {NO_PROMISE}"


def solved_with_bound(
    rows: Rows, row: int, others: Floats, system: Floats, right: Floats
) -> tuple[Floats, float]:
    """Return the solution in float64, and the bound D of the relative error in float32.

    The factor 2 (d + n) eps is that of sums of n products and of the elimination of d unknowns,
    whose backward error is at most that times A. Errors of b count relative to the sum of the
    lengths of its terms. A product below the smallest normal number may be lost.
    """
    values, basis = np.linalg.eigh(system)
    if values[0] <= EPS**2 * values[-1]:  # singular, also for float64
        return np.zeros_like(right), np.inf
    columns, confidence = rows.matrix.row(row)
    condition, size = values[-1] / values[0], len(right) + len(columns)
    terms = rows.row_weight[row] * confidence @ np.linalg.norm(others[columns], axis=1)
    cancelled = terms / np.linalg.norm(right)
    best = basis @ (basis.T @ right / values)
    lost = size * TINY * np.sqrt(len(right) / values[0] / (right @ best))
    return best, 2 * size * EPS * (condition + np.sqrt(condition) * cancelled) + lost


def gram_bound(others: Floats, gram: Floats, system: Floats) -> float:
    """Return the part of the bound that is due to the Gramian, summed 256 rows at a time."""
    summed = min(len(others), CHUNK + len(others) / CHUNK)
    smallest = np.linalg.eigvalsh(system)[0]
    return summed * EPS * np.linalg.norm(gram, 2) / smallest if smallest > 0 else np.inf


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
    "Three exact ALS epochs in float32 have the objectives of float64 up to 12 D times that of "
    "factors of zero, with D = 2 (d + n) eps cond, which bounds the error of each of the 6 "
    "half-steps; cond is the largest condition of a system, and n the longest row. For SAFER2, "
    "whose weights change with the losses by up to 1 / h, it is 12 (1 + 1 / h) D. Items are "
    "repeated, and there are users of one item. From D = 1 on, nothing is promised.",
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
        "iterations": EPOCHS,
        "regularization": log_uniform(rng, 1e-6, 0.1),
        "unobserved_weight": log_uniform(rng, 1e-4, 1),
        "solver": "exact",
        "random_state": int(rng.integers(1000)),
    }
    steepness = 0.0
    if kind is MODELS["SAFER2"]:
        options["bandwidth"] = log_uniform(rng, 0.03, 3)
        steepness = 1 / options["bandwidth"]
    conditions = [1.0]
    histories = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for backend in ("cpu", "numpy"):
            model = kind(**options, backend=backend)

            def watch(*_: Any, model: Any = model) -> None:
                conditions.append(largest_condition(model, data))

            try:
                histories.append(model.fit(data, False, watch).history)
            except ModelFitError:
                return "refused"
    size = options["factors"] + max(np.diff(data.indptr).max(), data.getnnz(axis=0).max())
    bound = 2 * size * EPS * max(conditions)
    if bound >= 1:
        return NO_PROMISE
    mass = np.asarray(data.sum(axis=1))[:, 0]
    zero = float((model.compose().loss.pair_weight(mass) * mass / 2)[mass > 0].mean())
    allowed = 4 * EPOCHS * (1 + steepness) * bound
    worst = EPS
    for ours, exact in zip(*histories, strict=True):
        error = abs(ours.objective - exact.objective) / zero
        assert error <= allowed, (
            f"{kind.__name__}, {options}: off by {error:.2g} at epoch {ours.epoch}, where "
            f"{allowed:.2g} is allowed"
        )
        worst = max(worst, error)
    return f"{kind.__name__}, off by up to 1e{math.ceil(math.log10(worst))}"


def largest_condition(model: Any, data: sp.csr_matrix) -> float:
    """Return the largest condition of the systems of users and items, given the other side."""
    loss, ridge, risk, _ = model.compose()
    users, items = (np.asarray(side, np.float64) for side in model.both_factors())
    mass, b = np.asarray(data.sum(axis=1))[:, 0], loss.unobserved_weight
    pairs = loss.pair_weight(mass)[:, None] * data.toarray()
    weights = model.user_weights[:, None]
    ridges = (
        ridge.weights(pairs.sum(axis=1), b * model.num_items),
        ridge.weights(pairs.sum(axis=0), b * risk.tail * model.num_users),
    )
    found = 1.0
    for weight, fixed, own in (
        (pairs + b, items, ridges[0]),
        ((weights * (pairs + b)).T, users, ridges[1]),
    ):
        systems = np.einsum("rj,jk,jl->rkl", weight, fixed, fixed, optimize=True)
        systems += own[:, None, None] * np.eye(fixed.shape[1])
        found = max(found, float(np.linalg.cond(systems).max()))
    return found


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
