"""Every verb of the PyTorch backend, and every model on it, against the float64 twin."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from benchmarks import report
from benchmarks.devices import backend_of
from benchmarks.matrices import long_tailed
from benchmarks.records import Options, progress
from safecf.als.kernels import KERNELS
from safecf.als.optimizers import SGD
from safecf.als.population import Smoothing
from safecf.als.solvers import CG, Exact, Gradient, SpectralCG
from safecf.backends.numpy import NumpyBackend
from safecf.models import MODELS
from tests.problems import LOSSES, matrix_of, problem_of

Size = tuple[int, int, int]  # users, items, interactions

FACTORS = (16, 33, 256, 512, 1100, 2048)
# around the widths of tiles, of tasks, and of rows that are solved in lockstep
LENGTHS = (0, 1, 2, 15, 16, 17, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025, 2500)
LARGE = 1024  # from here on the twin, which has an eigenbasis for each row, takes too long
COLUMNS, UNOBSERVED, BLOCK, TOP = 3000, 0.02, 64, 20
TWIN = NumpyBackend()
DEFAULT = {"tolerance": 1e-3}
ROUGH, TIGHT = SpectralCG(1e-3), SpectralCG(1e-6, 500)
# The largest difference over the largest value. float32 against float64; as few steps of CG from
# both, as plain CG amplifies rounding; bfloat16 and TF32 have 8 and 11 bits.
CLOSE, SOLVED, CG_STEPS, BFLOAT16, TF32 = 2e-5, 1e-4, 1e-3, 8e-3, 4e-3
# of the objectives and the scores of whole trainings, in float32 and at the default tolerance
TRAINED, ROUGHLY_TRAINED = (1e-5, 1e-3), (1e-3, 5e-2)


class Found(NamedTuple):
    """How far a verb is from the twin, and how far it may be."""

    what: str
    error: float
    bound: float


def measure(options: Options) -> dict[str, Any]:
    """Compare all verbs at every d, then whole trainings; an error over its bound is a failure."""
    backend, found = backend_of(options), []
    widths = [d for d in FACTORS if options.scale == 1 or d <= 33]
    for d in widths:
        for each in verbs(backend, d):
            found.append({"factors": d, **each._asdict()})
        progress(f"verbs, d = {d}")
    for what, factors, size, given in _trainings(widths):
        for each in training(what, factors, size, given, options.device):
            found.append({"factors": factors, **each._asdict()})
        progress(f"{what}, d = {factors}")
    beyond = [each for each in found if not each["error"] <= each["bound"]]
    for each in beyond:
        progress(f"beyond its bound: {each}")
    return {"found": found, "failure": bool(beyond), "device": repr(backend)}


def verbs(backend: Any, d: int) -> Iterator[Found]:
    """Compare every verb on rows of many lengths with confidences."""
    rng = np.random.default_rng(d)
    matrix = matrix_of(LENGTHS, COLUMNS, rng, weighted=True)
    weights = np.clip(rng.normal(0.3, 0.4, len(LENGTHS)), 0, 1)
    rows = problem_of(matrix, LOSSES["normalised"](UNOBSERVED)).user_rows(weights)
    x, y = (
        rng.normal(0, 1 / np.sqrt(d), (count, d)).astype(np.float32)
        for count in (len(LENGTHS), COLUMNS)
    )
    case = _Case(backend, rows, x, y)
    yield from case.products(rng)
    yield from case.solves()
    yield from case.losses_and_gradients()
    yield from case.blocks(min(BLOCK, d))
    yield from sums(backend, rng)
    yield from searches(backend, d, rng)


class _Case:
    """The users' half-step on a backend and on the twin."""

    def __init__(self, backend: Any, rows: Any, x: Any, y: Any) -> None:
        self.rows, self.x, self.y = rows, x, y
        self.gram = UNOBSERVED * TWIN.gram(np.float64(y))
        self.spectrum, self.basis = np.linalg.eigh(self.gram)
        self.both = [(each, self._placed(each)) for each in (backend, TWIN)]

    def _placed(self, backend: Any) -> Any:
        return replace(self.rows, matrix=backend.place_matrix(self.rows.matrix))

    def products(self, rng: np.random.Generator) -> Iterator[Found]:
        """Gramians and rotations."""
        weight = rng.random(len(self.y))
        for what, given, solver, bound in (
            ("gram", None, None, CLOSE),
            ("gram, weighted", weight, None, CLOSE),
            ("gram, TF32", None, ROUGH, TF32),
        ):
            grams = [b.fetch(b.gram(b.place(self.y), given, None, solver)) for b, _ in self.both]
            yield Found(what, difference(*grams), bound)
        for what, solver, bound in (
            ("rotate", TIGHT, CLOSE),
            ("rotate, TF32", ROUGH, TF32),
        ):
            backend = self.both[0][0]
            items, users = backend.place(self.y), backend.place(self.x)
            values = backend.rotate(items, users, backend.place(self.gram), solver)
            scores = backend.fetch(users) @ backend.fetch(items).T
            yield Found(f"{what}: scores", difference(scores, self.x @ self.y.T), bound)
            spectrum = difference(backend.fetch(values), self.spectrum)
            yield Found(f"{what}: eigenvalues", spectrum, bound)

    def solves(self) -> Iterator[Found]:
        """Row solvers, by G and in its eigenbasis."""
        exact = self._solved(*self.both[1], Exact())
        for what, solver, bound in (
            ("exact", Exact(), CLOSE),
            ("spectral CG (1e-06)", TIGHT, SOLVED),
        ):
            found = self._solved(*self.both[0], solver)
            yield Found(f"solve_rows, {what}", difference(found, exact), bound)
        for what, solver, bound in (
            ("solve_rows, CG, 4 steps", CG(4, 1e-6), CG_STEPS),
            ("solve_rows, spectral CG, 3 steps", SpectralCG(1e-6, 3), SOLVED),
        ):
            if solver.name == "spectral-cg" and self.x.shape[1] >= LARGE:
                continue
            both = [self._solved(*each, solver) for each in self.both]
            yield Found(what, difference(*both), bound)
        spectrum, basis = self.spectrum, self.basis
        items, users = self.y @ basis, self.x @ basis
        (backend, rows), (_, twin_rows) = self.both
        fixed = backend.fix_rotated(backend.place(items), spectrum, ROUGH)
        start = backend.place(users)
        backend.solve_rows(rows, fixed, start, ROUGH)
        found = backend.fetch(start)
        away = np.linalg.norm(found - exact @ basis) / np.linalg.norm(exact)
        yield Found("solve_rows, spectral CG (0.001), bfloat16", float(away), BFLOAT16)
        ours = backend.losses(rows.matrix, rows.row_weight, start, fixed)
        side = TWIN.fix_rotated(items, spectrum, ROUGH)
        twin = TWIN.losses(twin_rows.matrix, rows.row_weight, np.float64(found), side)
        yield Found("losses, bfloat16", difference(backend.fetch(ours), twin), BFLOAT16)

    def _solved(self, backend: Any, rows: Any, solver: Any) -> Any:
        factors = backend.place(self.x)
        backend.solve_rows(rows, self._fixed(backend), factors, solver)
        return backend.fetch(factors)

    def _fixed(self, backend: Any) -> Any:
        return backend.fix(backend.place(self.y), backend.place(self.gram))

    def losses_and_gradients(self) -> Iterator[Found]:
        """Losses of the users, and gradient steps."""
        pair_weight, ridge, step = self.rows.row_weight, self.rows.ridge, Gradient(-1.0, SGD())
        losses, moved = [], []
        for backend, rows in self.both:
            fixed, factors = self._fixed(backend), backend.place(self.x)
            found = backend.losses(rows.matrix, pair_weight, factors, fixed, ridge)
            losses.append(backend.fetch(found))
            new, _, _ = backend.descend(rows, fixed, factors, None, step, 1)
            moved.append(backend.fetch(new))
        yield Found("losses", difference(*losses), CLOSE)
        yield Found("descend", difference(*moved), CLOSE)

    def blocks(self, size: int) -> Iterator[Found]:
        """Scores of the pairs, losses from them, and an update of the first block."""
        found: list[list[Any]] = []
        for backend, rows in self.both:
            users, items = backend.place(self.x), backend.place(self.y)
            scores = backend.scores(rows.matrix, users, items)
            before = np.array(backend.fetch(scores))
            gram = backend.place(self.gram)
            losses = backend.scored_losses(rows.matrix, self.rows.row_weight, scores, users, gram)
            block = slice(0, size)
            backend.update_block(rows, block, items, gram[:, block], users, scores)
            ours = (losses, users, scores)
            found.append([before, *(np.array(backend.fetch(each)) for each in ours)])
        names = ("scores", "scored_losses", "update_block: factors", "update_block: scores")
        for what, ours, twin in zip(names, *found, strict=True):
            yield Found(what, difference(ours, twin), SOLVED if "update" in what else CLOSE)


def sums(backend: Any, rng: np.random.Generator) -> Iterator[Found]:
    """The passes of the quantile step, which are in float64."""
    values, counts = 0.5 * rng.beta(4, 3, 5000), rng.integers(1, 4, 5000).astype(float)
    xi = float(np.quantile(values, 0.6))
    for name, kernel in KERNELS.items():
        smoothing, found = Smoothing(0.3, kernel, 0.15), []
        for each in (backend.loss_sums, TWIN.loss_sums):
            own = each.vector(values), each.vector(counts)
            numbers = [*each.totals(*own), *each.sums(*own, smoothing, xi), *each.tail(*own, 0.3)]
            found.append(np.array(numbers))
        relative = float(np.max(np.abs(found[0] / found[1] - 1)))
        yield Found(f"loss_sums, {name}", relative, 1e-10)


def searches(backend: Any, d: int, rng: np.random.Generator) -> Iterator[Found]:
    """Top-k and ranks, on small integers: full of ties, and exact in float32."""
    items, queries = (rng.integers(-2, 3, (count, d)).astype(np.float32) for count in (COLUMNS, 50))
    seen, targets = (matrix_of(rng.integers(0, most, 50), COLUMNS, rng) for most in (200, 20))
    ours, twin = (each.index(items) for each in (backend, TWIN))
    ids, scores = zip(*(each.search(queries, TOP, seen) for each in (ours, twin)), strict=True)
    yield Found("search: share of other ids", float(np.mean(ids[0] != ids[1])), 0.0)
    yield Found("search: scores", difference(*scores), 0.0)
    items, queries = (rng.normal(size=side.shape).astype(np.float32) for side in (items, queries))
    best = [each.index(items).search(queries, TOP, seen)[1] for each in (backend, TWIN)]
    yield Found("search, real numbers: scores", difference(*best), CLOSE)
    ranks = [each.ranks(queries, targets, seen) for each in (ours, twin)]
    yield Found("ranks: share of other ranks", float(np.mean(ranks[0] != ranks[1])), 0.0)


def _trainings(
    widths: list[int],
) -> Iterator[tuple[str, int, Size, dict[str, Any]]]:
    """Yield models with d, the size of their data, and options."""
    small, exact, tight = (300, 120, 4000), {"solver": "exact"}, {"tolerance": 1e-6}
    for model in ("IALS", "ERMMF", "SAFER2"):
        yield model, 16, small, exact
        yield model, 16, small, tight
        yield model, 16, small, DEFAULT
    yield "SAFER2CG", 16, small, {}
    yield "SAFER2PP", 16, small, {"block_size": 6}
    yield "IALSPP", 16, small, {"block_size": 6}
    yield "CVaRMF", 16, small, {}
    for d in widths:
        if d >= LARGE:
            yield "SAFER2", d, (20, 16, 120), {**tight, "iterations": 1}


def training(
    name: str, factors: int, size: Size, given: dict[str, Any], device: str
) -> Iterator[Found]:
    """Train on both backends from the same start; compare the objectives and all scores."""
    matrix = long_tailed(*size)
    usual = {"factors": factors, "iterations": 4, "random_state": 0, **given}
    ours = MODELS[name](backend="torch", device=device, **usual)
    if factors >= LARGE:
        usual = {**usual, "solver": "exact"}
    twin = MODELS[name](backend="numpy", **usual)
    for model in (ours, twin):
        model.fit(matrix, show_progress=False)
    objectives = [[record.objective for record in each.history] for each in (ours, twin)]
    what = ", ".join([f"`{name}`", *(f"{key} {value}" for key, value in given.items())])
    of_objective, of_scores = ROUGHLY_TRAINED if given == DEFAULT else TRAINED
    yield Found(f"{what}: objective", difference(*objectives), of_objective)
    scores = [each.user_factors @ each.item_factors.T for each in (ours, twin)]
    yield Found(f"{what}: scores", difference(*scores), of_scores)


def difference(found: Any, expected: Any) -> float:
    """The largest difference over the largest value: max |a - b| / max |b|.

    >>> difference([1.0, 2.0], [1.0, 4.0])
    0.5
    """
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    return float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))


def section(results: dict[str, Any], options: Options) -> list[str]:
    """Write the largest error of each verb by d, and those of the trainings."""
    found = results["found"]
    widths = list(dict.fromkeys(each["factors"] for each in found))
    rows, trainings = [], []
    for what in dict.fromkeys(each["what"] for each in found):
        own = {each["factors"]: each for each in found if each["what"] == what}
        bound = next(iter(own.values()))["bound"]
        if what.startswith("`"):
            for d, each in own.items():
                trainings.append([what, str(d), _error(each), f"{bound:.0e}"])
        else:
            cells = [_error(own[d]) if d in own else "-" for d in widths]
            rows.append([what, *cells, f"{bound:.0e}" if bound else "0"])
    verdict = "**Some are beyond their bounds.**" if results["failure"] else "All are within."
    return [
        f"Every verb of `{results['device']}` against the backend `numpy` in float64, on rows of "
        f"{min(LENGTHS)} to {max(LENGTHS):,} pairs with confidences: the largest difference over "
        f"the largest value, by d, and its bound. {verdict} The tests under `tests/agreement` run "
        "on the GPU as well, where there is one.",
        report.table(["", *(f"d = {d:,}" for d in widths), "bound"], rows),
        "Whole trainings of a few epochs from the same start, fold-in included: the objectives of "
        "all epochs, and the scores of all pairs.",
        report.table(["", "d", "difference", "bound"], trainings),
    ]


def _error(each: dict[str, Any]) -> str:
    text = f"{each['error']:.1e}"
    return text if each["error"] <= each["bound"] else f"**{text}**"
