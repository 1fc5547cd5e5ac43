"""The rivals of the benchmarks: safecf, implicit and irspack, driven epoch by epoch."""

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from benchmarks.harness import progress
from safecf.als.capabilities import HalfSteps, RowReport
from safecf.als.kernels import KERNELS
from safecf.als.loop import Epoch, Training
from safecf.als.loss import Loss, Ridge, Vector
from safecf.als.risk import Mean, Risk, SmoothedCVaR
from safecf.als.rows import Problem, Rows
from safecf.als.solvers import CG, Exact, RowSolver, Solver, SpectralCG, Subspace
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.interactions import Interactions

Floats = NDArray[np.float32]
Pair = tuple[Floats, Floats]

# the paper's settings
SAFER2 = {
    "ml-20m": {"unobserved_weight": 0.002, "regularization": 0.002, "bandwidth": 0.18, "tail": 0.3},
    "msd": {"unobserved_weight": 0.0004, "regularization": 0.0012, "bandwidth": 0.1, "tail": 0.3},
}
IALS_UNOBSERVED, IALS_REGULARIZATION = 0.1, 0.003
INIT_STD = 0.1
STEPS = ("users", "items", "rotate", "losses", "quantile")  # of an epoch of safecf
BATCH = 2**16


@dataclass(frozen=True)
class Flat:
    """1/2 sum_S (1 - x_u.y_i)^2 + b/2 sum_ui (x_u.y_i)^2 + lambda/2 (|X|^2 + |Y|^2).

    The iALS objective with the same ridge for every row: the one that all of the peers know.
    """

    unobserved: float
    regularization: float

    @classmethod
    def like_ials(cls, matrix: scipy.sparse.csr_matrix) -> "Flat":
        """Return a ridge as strong as the frequency ridge of iALS is on average.

        lambda_flat = lambda sqrt( mean_u(|V_u| + b |V|) mean_i(|U_i| + b |U|) ): only the product
        of both sides' ridges matters, since X may be scaled against Y.
        """
        (users, items), b = matrix.shape, IALS_UNOBSERVED
        ridges = (matrix.nnz / users + b * items) * (matrix.nnz / items + b * users)
        return cls(b, IALS_REGULARIZATION * math.sqrt(ridges))

    def problem(self, interactions: Interactions) -> Problem:
        """Return the objective as safecf's problem: the plain loss, a ridge with exponent 0."""
        loss, ridge = Loss(self.unobserved, 0.0), Ridge(self.regularization, 0.0)
        return Problem(interactions, loss, ridge, 1.0)

    def value(self, matrix: scipy.sparse.csr_matrix, users: Floats, items: Floats) -> float:
        """The objective in float64, by numpy alone; sum_ui (x_u.y_i)^2 = tr(X'X Y'Y)."""
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        x, y = users.astype(np.float64), items.astype(np.float64)
        observed = 0.0
        for first in range(0, matrix.nnz, BATCH):
            batch = slice(first, first + BATCH)
            scores = np.einsum("nd,nd->n", x[rows[batch]], y[matrix.indices[batch]])
            observed += float(np.sum((1 - scores) ** 2))
        everywhere = float(np.sum((x.T @ x) * (y.T @ y)))
        ridge = float(np.sum(x * x) + np.sum(y * y))
        return (observed + self.unobserved * everywhere + self.regularization * ridge) / 2


class HalfStep(NamedTuple):
    """The factors of the side that was given, and those of the other one before and after."""

    fixed: Floats
    before: Floats
    after: Floats


class Rival:
    """Something that trains, one epoch at a time, and solves the rows of `problem`."""

    name: str
    problem: Problem
    alternates = True  # whether a half-step solves all rows of a side given the other side

    def epoch(self) -> None:
        """Train one epoch: all users, then all items."""
        raise NotImplementedError

    def factors(self) -> Pair:
        """Return copies of X and Y on the scale of `problem`."""
        raise NotImplementedError

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


class Watched:
    """A backend whose half-steps can be kept, and whose verbs can wait for the device.

    Half-steps are kept while `seen` is a list, since epochs rotate the factors as well.
    """

    def __init__(self, backend: HalfSteps) -> None:
        self.backend = backend
        self.wait: Callable[[], object] | None = None
        self.seen: list[HalfStep] | None = None
        self.state: Any = None

    def __getattr__(self, name: str) -> Any:
        """Return what the backend has; a verb ends with `wait`, if there is one."""
        found, wait = getattr(self.backend, name), self.wait
        if wait is None or not callable(found):
            return found

        def waiting(*arguments: Any, **options: Any) -> Any:
            result = found(*arguments, **options)
            wait()
            return result

        return waiting

    def solve_rows(self, rows: Rows, fixed: Any, factors: Any, solver: RowSolver) -> RowReport:
        """Solve, and keep what was there before and after."""
        before = None if self.seen is None else self.on_host(factors)
        solved = self.__getattr__("solve_rows")(rows, fixed, factors, solver)
        if self.seen is not None:
            given = self.state.items if factors is self.state.users else self.state.users
            self.seen.append(HalfStep(self.on_host(given), before, self.on_host(factors)))
        return solved

    def on_host(self, factors: Any) -> Floats:
        """Return a copy as a NumPy array."""
        return np.array(self.backend.fetch(factors))


class Safecf(Rival):
    """One epoch of `Training`: losses, xi, weights, both half-steps."""

    def __init__(
        self, name: str, problem: Problem, risk: Risk, solver: Solver, factors: int, backend: Any
    ) -> None:
        self.name, self.problem, self.solver = name, problem, solver
        self.alternates = solver.name != "subspace"
        self.backend = Watched(backend)
        self.training = Training(problem.place(self.backend), risk, solver, self.backend, seed=0)
        self.state = self.training.start(factors, INIT_STD)
        self.steps = self.training.epochs(self.state, 10**6)
        self.records: list[Epoch] = []

    def epoch(self) -> None:
        self.records.append(next(self.steps))

    def half_steps(self) -> list[HalfStep]:
        self.backend.seen, self.backend.state = [], self.state
        self.epoch()
        seen, self.backend.seen = self.backend.seen, None
        return seen

    def factors(self) -> Pair:
        return self.backend.on_host(self.state.users), self.backend.on_host(self.state.items)

    def weights(self) -> Vector:
        return self.backend.on_host(self.state.weights)

    def seconds_by_step(self, last: int) -> dict[str, float]:
        """Return the median seconds of each step of the last epochs."""
        last_ones = [each.seconds for each in self.records[-last:]]
        return {
            step: statistics.median(each.get(step, 0.0) for each in last_ones) for step in STEPS
        }


def safer2(
    shape: str, interactions: Interactions, solver: Solver, factors: int, backend: HalfSteps
) -> Safecf:
    """SAFER2 with the paper's settings for a shape."""
    b, ridge, bandwidth, tail = SAFER2[shape].values()
    risk = SmoothedCVaR(tail, KERNELS["gaussian"], bandwidth)
    problem = Problem(interactions, Loss(b), Ridge(ridge), tail)
    return Safecf(f"safecf SAFER2, {described(solver)}", problem, risk, solver, factors, backend)


def ials(problem: Problem, solver: Solver, factors: int, backend: HalfSteps) -> Safecf:
    """IALS: all users have the same weight."""
    return Safecf(f"safecf IALS, {described(solver)}", problem, Mean(), solver, factors, backend)


def described(solver: Solver) -> str:
    """Name a solver with the option that matters."""
    match solver:
        case SpectralCG():
            return f"spectral CG ({solver.tolerance:g})"
        case CG():
            return f"CG (at most {solver.max_iterations} steps)"
        case Subspace():
            return f"subspace (blocks of {solver.block_size})"
    return solver.name


def start(problem: Problem, factors: int) -> Pair:
    """Return the factors that every rival starts from."""
    state = Training(problem, Mean(), Exact(), CpuBackend(1), seed=0).start(factors, INIT_STD)
    return state.users, state.items


class Implicit(Rival):
    """implicit's AlternatingLeastSquares with its default solver, on the scale of `Flat`.

    implicit minimises sum_S C (1 - s)^2 + sum_notS s^2 + L (|X|^2 + |Y|^2). With C = 1 + 1/b and
    t = C / (C - 1) = 1 + b, completing the square of the observed pairs gives

        (1/b) sum_S (t - s)^2 + sum_ui s^2 + L (|X|^2 + |Y|^2) + constant ,

    which in terms of X / sqrt(t) and Y / sqrt(t) is 2 t^2/b times `Flat` with lambda = b L / t.
    """

    def __init__(self, flat: Flat, problem: Problem, factors: int, threads: int, steps: int = 3):
        from implicit.cpu import _als  # noqa: PLC0415 - only in the benchmarks' environment

        self.name, self.problem = f"implicit ALS, CG ({steps} steps)", problem
        self.solver, self.threads, self.steps = _als.least_squares_cg, threads, steps
        stretch = 1 + flat.unobserved
        self.scale = np.float32(math.sqrt(stretch))
        self.ridge = flat.regularization * stretch / flat.unobserved
        confidence = np.float32(1 + 1 / flat.unobserved)
        sides = problem.interactions.users, problem.interactions.items
        self.matrices = [side.to_scipy().copy() for side in sides]  # it takes no read-only arrays
        for matrix in self.matrices:
            matrix.data = matrix.data * confidence
            matrix.indptr = matrix.indptr.astype(np.int32)
        self.x, self.y = (side * self.scale for side in start(problem, factors))

    def epoch(self) -> None:
        for matrix, x, y in zip(self.matrices, (self.x, self.y), (self.y, self.x), strict=True):
            self.solver(matrix, x, y, self.ridge, num_threads=self.threads, cg_steps=self.steps)

    def factors(self) -> Pair:
        return self.x / self.scale, self.y / self.scale


class Irspack(Rival):
    """irspack's trainer of iALS; its "IALSPP" loss with nu = 0 is `Flat`, term by term."""

    def __init__(
        self, flat: Flat, problem: Problem, factors: int, threads: int, solver: str, block: int = 64
    ) -> None:
        from irspack.recommenders import _ials_core as core  # noqa: PLC0415 - as above

        how = {"CG": "CG (3 steps)", "IALSPP": f"iALS++ (blocks of {block})", "CHOLESKY": "exact"}
        self.name, self.problem = f"irspack IALS, {how[solver]}", problem
        model = core.IALSModelConfigBuilder().set_K(factors).set_init_stdev(INIT_STD)
        model = model.set_alpha0(flat.unobserved).set_reg(flat.regularization).set_nu(0.0)
        model = model.set_loss_type(core.LossType.IALSPP).set_random_seed(0)
        options = core.IALSSolverConfigBuilder().set_n_threads(threads).set_max_cg_steps(3)
        options = options.set_solver_type(getattr(core.SolverType, solver))
        options = options.set_ialspp_subspace_dimension(block).set_ialspp_iteration(1)
        self.options = options.build()
        matrix = problem.interactions.users.to_scipy().copy()  # it takes no read-only arrays
        self.trainer: Any = core.IALSTrainer(model.build(), matrix)
        self.trainer.user, self.trainer.item = start(problem, factors)

    def epoch(self) -> None:
        self.trainer.step(self.options)

    def factors(self) -> Pair:
        return self.trainer.user.copy(), self.trainer.item.copy()


def peers(
    flat: Flat, problem: Problem, factors: int, threads: int, solvers: tuple[str, ...]
) -> list[Rival]:
    """Return implicit, and irspack with these solvers, as far as they are installed."""
    found: list[Rival] = []
    if installed("implicit"):
        found.append(Implicit(flat, problem, factors, threads))
    if solvers and installed("irspack"):
        found += [Irspack(flat, problem, factors, threads, solver) for solver in solvers]
    return found


def installed(package: str) -> bool:
    """Tell whether a package can be imported, and print a message if not."""
    if find_spec(package) is None:
        progress(f"{package} is left out: it is not installed")
        return False
    return True
