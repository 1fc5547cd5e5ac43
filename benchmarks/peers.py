"""The rivals of the benchmarks: safecf, implicit and irspack, driven epoch by epoch."""

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from benchmarks.harness import progress
from safecf.als.loop import Epoch, Training
from safecf.als.loss import Vector
from safecf.als.rows import Problem
from safecf.als.solvers import Solver
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.interactions import Interactions
from safecf.models import IALS, IALSPP, SAFER2, SAFER2PP
from safecf.models.als import ALSModel

Floats = NDArray[np.float32]
Pair = tuple[Floats, Floats]

# the paper's settings
SETTINGS = {
    "ml-20m": {"unobserved_weight": 0.002, "regularization": 0.002, "bandwidth": 0.18, "tail": 0.3},
    "msd": {"unobserved_weight": 0.0004, "regularization": 0.0012, "bandwidth": 0.1, "tail": 0.3},
}
IALS_UNOBSERVED, IALS_REGULARIZATION = 0.1, 0.003
STEPS = ("users", "items", "rotate", "losses", "quantile")  # of an epoch of safecf
BATCH = 2**16


def paper(shape: str, factors: int, **options: Any) -> ALSModel:
    """SAFER2 with the paper's settings for a shape; SAFER2++ if given a `block_size`."""
    kind = SAFER2PP if "block_size" in options else SAFER2
    return kind(factors, **SETTINGS[shape], ridge_in_risk=False, **options)


def flat(interactions: Interactions, factors: int, **options: Any) -> ALSModel:
    """1/2 sum_S (1 - x_u.y_i)^2 + b/2 sum_ui (x_u.y_i)^2 + lambda/2 (|X|^2 + |Y|^2).

    The iALS objective with the same ridge for every row: the one that all of the peers know. The
    ridge is as strong as the frequency ridge of iALS is on average,
    lambda_flat = lambda sqrt( mean_u(|V_u| + b |V|) mean_i(|U_i| + b |U|) ): only the product of
    both sides' ridges matters, since X may be scaled against Y. iALS++ if given a `block_size`.
    """
    users, items, b = interactions.num_users, interactions.num_items, IALS_UNOBSERVED
    ridges = (interactions.nnz / users + b * items) * (interactions.nnz / items + b * users)
    ridge = IALS_REGULARIZATION * math.sqrt(ridges)
    kind = IALSPP if "block_size" in options else IALS
    return kind(factors, unobserved_weight=b, regularization=ridge, ridge_exponent=0.0, **options)


def objective(model: Any, matrix: scipy.sparse.csr_matrix, users: Floats, items: Floats) -> float:
    """The objective of `flat` in float64, by numpy alone; sum_ui (x_u.y_i)^2 = tr(X'X Y'Y)."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    x, y = users.astype(np.float64), items.astype(np.float64)
    observed = 0.0
    for first in range(0, matrix.nnz, BATCH):
        batch = slice(first, first + BATCH)
        scores = np.einsum("nd,nd->n", x[rows[batch]], y[matrix.indices[batch]])
        observed += float(np.sum((1 - scores) ** 2))
    everywhere, ridge = float(np.sum((x.T @ x) * (y.T @ y))), float(np.sum(x * x) + np.sum(y * y))
    return (observed + model.unobserved_weight * everywhere + model.regularization * ridge) / 2


class HalfStep(NamedTuple):
    """The factors of the side that was given, and those of the other one before and after."""

    fixed: Floats
    before: Floats
    after: Floats


@dataclass
class Rival:
    """Something that trains, one epoch at a time, and solves the rows of `problem`.

    `epoch` trains all users, then all items; `factors` returns copies of X and Y on the scale of
    `problem`. `alternates`: a half-step solves all rows of a side given the other side.
    """

    name: str
    problem: Problem
    epoch: Callable[[], object]
    factors: Callable[[], Pair]
    alternates: bool = True

    def half_steps(self) -> list[HalfStep]:
        """Train one epoch, and return what it did for the users and for the items.

        Here, users are solved given the old items, and items given the new users.
        """
        old_users, old_items = self.factors()
        self.epoch()
        users, items = self.factors()
        return [HalfStep(old_items, old_users, users), HalfStep(users, old_items, items)]

    def weights(self) -> Vector:
        """w_u of the last epoch."""
        return np.ones(self.problem.interactions.num_users)


class Waiting:
    """A backend whose methods end with `wait`, which may wait for the device."""

    def __init__(self, backend: Any) -> None:
        self.backend, self.wait = backend, lambda: None

    def __getattr__(self, name: str) -> Any:
        """Return what the backend has."""
        found = getattr(self.backend, name)
        return partial(self._call, found) if callable(found) else found

    def _call(self, method: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        result = method(*arguments, **options)
        self.wait()
        return result


class Safecf(Rival):
    """One epoch of `Training`: losses, xi, weights, both half-steps."""

    def __init__(
        self, model: ALSModel, interactions: Interactions, backend: Any, solver: Any = None
    ) -> None:
        self.solver, self.backend = solver or model.make_solver(), Waiting(backend)
        self.name = f"safecf {type(model).__name__.removesuffix('PP')}, {described(self.solver)}"
        self.problem = problem_of(model, interactions)
        self.alternates = self.solver.name != "subspace"
        problem, risk = self.problem.place(self.backend), model.make_risk()
        self.training = Training(problem, risk, self.solver, self.backend, seed=0)
        self.state = self.training.start(model.factors, model.init_std)
        self.steps = self.training.epochs(self.state, 10**6)
        self.records: list[Epoch] = []

    def epoch(self) -> None:
        self.records.append(next(self.steps))

    def factors(self) -> Pair:
        return self.on_host(self.state.users), self.on_host(self.state.items)

    def half_steps(self) -> list[HalfStep]:
        """Watch the solves of an epoch, since it rotates the factors as well."""
        seen, state, solve = list[HalfStep](), self.state, self.backend.solve_rows

        def solve_rows(rows: Any, fixed: Any, factors: Any, solver: Any) -> Any:
            before = self.on_host(factors)
            report = solve(rows, fixed, factors, solver)
            given = state.items if factors is state.users else state.users
            seen.append(HalfStep(self.on_host(given), before, self.on_host(factors)))
            return report

        self.backend.solve_rows = solve_rows
        self.epoch()
        del self.backend.solve_rows
        return seen

    def weights(self) -> Vector:
        return self.on_host(self.state.weights)

    def on_host(self, values: Any) -> Any:
        """Return a copy as a NumPy array."""
        return np.array(self.backend.fetch(values))

    def seconds_by_step(self, last: int) -> dict[str, float]:
        """Return the median seconds of each step of the last epochs."""
        found = [each.seconds for each in self.records[-last:]]
        return {step: statistics.median(each.get(step, 0.0) for each in found) for step in STEPS}


def problem_of(model: ALSModel, interactions: Interactions) -> Problem:
    """Return what a model minimises."""
    loss, ridge, risk, _ = model.parts()
    return Problem(interactions, loss, ridge, risk.tail)


def described(solver: Solver) -> str:
    """Name a solver with the option that matters."""
    patterns = {
        "spectral-cg": "spectral CG ({tolerance:g})",
        "cg": "CG (at most {max_iterations} steps)",
        "subspace": "subspace (blocks of {block_size})",
    }
    return patterns.get(solver.name, solver.name).format(**vars(solver))


def start(model: ALSModel, interactions: Interactions) -> Pair:
    """Return the factors that every rival starts from."""
    return Safecf(model, interactions, CpuBackend(1)).factors()


def implicit(model: Any, interactions: Interactions, threads: int) -> Rival:
    """Return implicit's AlternatingLeastSquares with its default solver, on the scale of `flat`.

    implicit minimises sum_S C (1 - s)^2 + sum_notS s^2 + L (|X|^2 + |Y|^2). With C = 1 + 1/b and
    t = C / (C - 1) = 1 + b, completing the square of the observed pairs gives

        (1/b) sum_S (t - s)^2 + sum_ui s^2 + L (|X|^2 + |Y|^2) + constant ,

    which in terms of X / sqrt(t) and Y / sqrt(t) is 2 t^2/b times `flat` with lambda = b L / t.
    """
    from implicit.cpu._als import least_squares_cg  # noqa: PLC0415 - only in an environment of peers

    b = model.unobserved_weight
    scale, ridge = np.float32(math.sqrt(1 + b)), model.regularization * (1 + b) / b
    sides = interactions.users, interactions.items
    matrices = [side.to_scipy().copy() for side in sides]  # it takes no read-only arrays
    for matrix in matrices:
        matrix.data = matrix.data * np.float32(1 + 1 / b)
        matrix.indptr = matrix.indptr.astype(np.int32)
    x, y = (side * scale for side in start(model, interactions))

    def epoch() -> None:
        for matrix, own, other in zip(matrices, (x, y), (y, x), strict=True):
            least_squares_cg(matrix, own, other, ridge, num_threads=threads, cg_steps=3)

    problem = problem_of(model, interactions)
    return Rival("implicit ALS, CG (3 steps)", problem, epoch, lambda: (x / scale, y / scale))


def irspack(model: Any, interactions: Interactions, threads: int, solver: str) -> Rival:
    """Return irspack's trainer of iALS; its "IALSPP" loss with nu = 0 is `flat`, term by term."""
    from irspack.recommenders import _ials_core as core  # noqa: PLC0415 - as above

    config = core.IALSModelConfigBuilder().set_K(model.factors).set_init_stdev(model.init_std)
    config = config.set_alpha0(model.unobserved_weight).set_reg(model.regularization)
    config = config.set_nu(0.0).set_loss_type(core.LossType.IALSPP).set_random_seed(0)
    options = core.IALSSolverConfigBuilder().set_n_threads(threads).set_max_cg_steps(3)
    options = options.set_solver_type(getattr(core.SolverType, solver))
    options = options.set_ialspp_subspace_dimension(64).set_ialspp_iteration(1).build()
    matrix = interactions.users.to_scipy().copy()  # it takes no read-only arrays
    trainer: Any = core.IALSTrainer(config.build(), matrix)
    trainer.user, trainer.item = start(model, interactions)
    how = {"CG": "CG (3 steps)", "IALSPP": "iALS++ (blocks of 64)", "CHOLESKY": "exact"}
    return Rival(
        f"irspack IALS, {how[solver]}",
        problem_of(model, interactions),
        lambda: trainer.step(options),
        lambda: (trainer.user.copy(), trainer.item.copy()),
    )


def peers(
    model: ALSModel, interactions: Interactions, threads: int, solvers: Iterable[str]
) -> list[Rival]:
    """Return implicit, and irspack with these solvers, as far as they are installed."""
    found = [implicit(model, interactions, threads)] if installed("implicit") else []
    if solvers and installed("irspack"):
        found += [irspack(model, interactions, threads, solver) for solver in solvers]
    return found


def installed(package: str) -> bool:
    """Tell whether a package can be imported, and print a message if not."""
    found = find_spec(package) is not None
    if not found:
        progress(f"{package} is left out: it is not installed")
    return found
