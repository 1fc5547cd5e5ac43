"""One epoch of SAFER2 beside one epoch of implicit's conjugate gradients, on the same matrix."""

import statistics
import time
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import threadpoolctl
import typer

from benchmarks import report
from benchmarks.matrices import SHAPES, long_tailed
from safecf.als.kernels import KERNELS
from safecf.als.loop import Training
from safecf.als.loss import Normalised, Ridge
from safecf.als.quantile import Population
from safecf.als.risk import SmoothedCVaR
from safecf.als.rows import Problem
from safecf.als.solvers import Exact, SpectralCG
from safecf.als.sweeps import State
from safecf.backends import CpuBackend
from safecf.data.interactions import Interactions

# the paper's settings for this shape
UNOBSERVED, REGULARIZATION, BANDWIDTH, TAIL = 0.002, 0.002, 0.18, 0.3
IALS_UNOBSERVED = 0.1


class Ours:
    """SAFER2 with the default solver: losses, xi, weights, both half-steps."""

    name = "safecf SAFER2, spectral CG"

    def __init__(self, matrix: Any, factors: int, threads: int, tolerance: float) -> None:
        risk = SmoothedCVaR(TAIL, KERNELS["gaussian"], BANDWIDTH)
        interactions = Interactions.from_csr(matrix)
        problem = Problem(interactions, Normalised(UNOBSERVED), Ridge(REGULARIZATION), TAIL)
        solver, backend = SpectralCG(tolerance), CpuBackend(threads)
        self.training = Training(problem, risk, solver, backend, seed=0)
        self.state: State = self.training.start(factors, 0.1)
        self.steps = self.training.epochs(self.state, 10**6)
        self.seconds: list[dict[str, float]] = []

    def epoch(self) -> None:
        """Go on by one epoch."""
        self.seconds.append(next(self.steps).seconds)

    def errors(self) -> tuple[float, float]:
        """Relative errors of one more half-step of each side against exact solves."""
        problem, backend, state = self.training.problem, self.training.backend, self.state
        solver = self.training.solver
        gram = UNOBSERVED * backend.gram(state.items)
        items = backend.prepare(state.items, gram)
        losses = backend.losses(problem.interactions.users, problem.pair_weight, state.users, items)
        population = Population(losses)
        xi = self.training.risk.quantile(population, state.xi or 0.0, None)
        weights = self.training.risk.weights(population, xi)

        def both(rows: Any, fixed: Any, gram: Any, start: Any) -> tuple[Any, Any]:
            exact, inexact = start.copy(), start.copy()
            backend.solve_rows(rows, backend.prepare(fixed, gram), exact, Exact())
            rough = backend.prepare(fixed, gram, rough=solver.rough)
            backend.solve_rows(rows, rough, inexact, solver)
            return exact, inexact

        exact_users, users = both(problem.user_rows(weights), state.items, gram, state.users)
        gram = UNOBSERVED * backend.gram(users, weights)
        exact_items, new_items = both(problem.item_rows(weights), users, gram, state.items)
        return relative(users, exact_users), relative(new_items, exact_items)


class Implicit:
    """implicit's AlternatingLeastSquares with its default solver, 3 steps of CG."""

    name = "implicit 0.7.3 ALS, CG (3 steps)"

    def __init__(self, matrix: Any, factors: int, threads: int) -> None:
        from implicit.cpu import _als  # noqa: PLC0415 - only in the benchmarks' environment
        from implicit.cpu.als import AlternatingLeastSquares  # noqa: PLC0415

        self.solvers, self.threads = _als, threads
        rng = np.random.default_rng(0)
        self.model = AlternatingLeastSquares(factors=factors, num_threads=threads, random_state=0)
        self.regularization = self.model.regularization
        # confidence 1 + 1/b against 1: the balance of observed and unobserved pairs of iALS
        self.users = (matrix * (1 + 1 / IALS_UNOBSERVED)).astype(np.float32).tocsr()
        self.items = self.users.T.tocsr()
        self.x = (rng.random((matrix.shape[0], factors), dtype=np.float32) * 0.01).copy()
        self.y = (rng.random((matrix.shape[1], factors), dtype=np.float32) * 0.01).copy()

    def _half(self, matrix: Any, x: Any, y: Any) -> None:
        self.solvers.least_squares_cg(
            matrix, x, y, self.regularization, num_threads=self.threads, cg_steps=3
        )

    def epoch(self) -> None:
        """Go on by one epoch: both half-steps, nothing else."""
        self._half(self.users, self.x, self.y)
        self._half(self.items, self.y, self.x)

    def errors(self) -> tuple[float, float]:
        """Relative errors of one more half-step of each side against exact solves."""
        found = []
        for matrix, x, y in ((self.users, self.x, self.y), (self.items, self.y, self.x)):
            exact, inexact = x.copy(), x.copy()
            self._half(matrix, inexact, y)
            self.solvers.least_squares(
                matrix, exact, y, self.regularization, num_threads=self.threads
            )
            found.append(relative(inexact, exact))
            x[:] = inexact
        return found[0], found[1]


def relative(x: Any, exact: Any) -> float:
    """|x - exact| / |exact|, over all rows together."""
    return float(np.linalg.norm(x - exact) / np.linalg.norm(exact))


def timed(step: Callable[[], None]) -> float:
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def main(
    shape: Annotated[str, typer.Option(help=f"One of {', '.join(SHAPES)}.")] = "ml-20m",
    factors: Annotated[int, typer.Option(help="d.")] = 256,
    threads: Annotated[int, typer.Option(help="Threads of both.")] = 2,
    tolerance: Annotated[float, typer.Option(help="Of spectral CG.")] = 1e-3,
    warm_up: Annotated[int, typer.Option(help="Epochs before the clock starts.")] = 3,
    repeats: Annotated[int, typer.Option(help="Timed epochs of each, alternating.")] = 5,
) -> None:
    """Time alternating epochs, and measure both solvers' errors against exact solves."""
    matrix = long_tailed(*SHAPES[shape])
    with threadpoolctl.threadpool_limits(1, "blas"):
        rivals = [Ours(matrix, factors, threads, tolerance), Implicit(matrix, factors, threads)]
        for rival in rivals:
            for _ in range(warm_up):
                rival.epoch()
        seconds: dict[str, list[float]] = {rival.name: [] for rival in rivals}
        for _ in range(repeats):
            for rival in rivals:
                seconds[rival.name].append(timed(rival.epoch))
                print(f"{rival.name}: {seconds[rival.name][-1]:.2f} s", flush=True)
        rows = []
        for rival in rivals:
            users, items = rival.errors()
            times = seconds[rival.name]
            median, spread = statistics.median(times), f"{min(times):.2f} to {max(times):.2f}"
            rows.append([rival.name, f"{median:.2f}", spread, f"{users:.1e}", f"{items:.1e}"])
    ours, theirs = (statistics.median(times) for times in seconds.values())
    ratios = [b / a for a, b in zip(*seconds.values(), strict=True)]
    steps = rivals[0].seconds[-repeats:]
    parts = {step: statistics.median(record[step] for record in steps) for step in steps[0]}
    page = report.write(
        f"epoch-{shape}-{factors}",
        f"One epoch at d = {factors}, {shape} shape",
        f"{matrix.shape[0]:,} users x {matrix.shape[1]:,} items, {matrix.nnz:,} interactions, "
        f"{threads} threads, tolerance {tolerance:g}, {repeats} alternating repeats after "
        f"{warm_up} epochs. An epoch of safecf is losses, xi, weights and both half-steps; one of "
        "implicit is both half-steps. The errors are |x - exact| / |exact| after one more "
        "half-step, each against its own exact solver from the same starting point.",
        report.table(["", "seconds, median", "spread", "error of users", "error of items"], rows),
        f"implicit takes {theirs / ours:.2f} times as long (pairs: {min(ratios):.2f} to "
        f"{max(ratios):.2f}). Seconds of safecf by step: "
        + ", ".join(f"{step} {value:.2f}" for step, value in parts.items())
        + ".",
    )
    print(page.read_text())
