"""Seconds per epoch of SAFER2 by solver and number of factors: exact, spectral CG, subspace."""

import statistics
from typing import Annotated, Any

import threadpoolctl
import typer

from benchmarks import report
from benchmarks.matrices import long_tailed
from safecf.als.kernels import KERNELS
from safecf.als.loop import Training
from safecf.als.loss import Loss, Ridge
from safecf.als.risk import SmoothedCVaR
from safecf.als.rows import Problem
from safecf.als.solvers import Exact, Solver, SpectralCG, Subspace
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.interactions import Interactions

# the paper's settings for ML-20M, an eighth of whose shape this is
SHAPE = (15_000, 5_000, 1_040_000)
UNOBSERVED, REGULARIZATION, BANDWIDTH, TAIL = 0.002, 0.002, 0.18, 0.3

SOLVERS: dict[str, Solver] = {
    "exact": Exact(),
    "spectral CG, 1e-3": SpectralCG(1e-3),
    "subspace, blocks of 32": Subspace(32),
    "subspace, blocks of 64": Subspace(64),
    "subspace, blocks of 128": Subspace(128),
}


def run(problem: Problem, solver: Solver, factors: int, threads: int, epochs: int) -> list[Any]:
    """Return the records of the first epochs."""
    risk = SmoothedCVaR(TAIL, KERNELS["gaussian"], BANDWIDTH)
    training = Training(problem, risk, solver, CpuBackend(threads), seed=0)
    return list(training.epochs(training.start(factors, 0.1), epochs))


def draw(factors: list[int], seconds: dict[str, list[float]]) -> Any:
    """Draw the seconds by the number of factors."""
    from reproduction.figures import line_style, panels  # noqa: PLC0415 - needs matplotlib

    figure, (axes,) = panels(1, height=2.6)
    for place, (name, times) in enumerate(seconds.items()):
        axes.plot(factors, times, label=name, **line_style(place)._asdict())
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(factors, [str(d) for d in factors])
    axes.set_xlabel("factors d")
    axes.set_ylabel("seconds per epoch")
    axes.legend()
    return figure


def main(
    factors: Annotated[list[int] | None, typer.Option(help="d; may be repeated.")] = None,
    threads: Annotated[int, typer.Option(help="Threads.")] = 2,
    epochs: Annotated[int, typer.Option(help="Epochs of each; the first is not timed.")] = 4,
) -> None:
    """Time the epochs of every solver, and compare what they have reached at the end."""
    chosen = factors or [64, 256, 1024, 2048]
    interactions = Interactions.from_csr(long_tailed(*SHAPE))
    problem = Problem(interactions, Loss(UNOBSERVED), Ridge(REGULARIZATION), TAIL)
    seconds: dict[str, list[float]] = {name: [] for name in SOLVERS}
    objective: dict[str, list[float]] = {name: [] for name in SOLVERS}
    with threadpoolctl.threadpool_limits(1, "blas"):
        for d in chosen:
            for name, solver in SOLVERS.items():
                records = run(problem, solver, d, threads, epochs)
                times = [sum(record.seconds.values()) for record in records[1:]]
                seconds[name].append(statistics.median(times))
                objective[name].append(records[-1].objective)
                print(f"d = {d}, {name}: {seconds[name][-1]:.3f} s", flush=True)
    rows = [
        [name, *(f"{t:.3f} ({o:.4f})" for t, o in zip(seconds[name], objective[name], strict=True))]
        for name in SOLVERS
    ]
    page = report.write(
        "solvers",
        "Solvers of SAFER2",
        f"{SHAPE[0]:,} users x {SHAPE[1]:,} items, {interactions.users.nnz:,} interactions, "
        f"{threads} threads. Seconds per epoch (losses, xi, weights, users and items), median of "
        f"epochs 2 to {epochs}; in parentheses the objective after {epochs} epochs from the same "
        "start, where lower is better.",
        report.table(["", *(f"d = {d}" for d in chosen)], rows),
        figure=lambda: draw(chosen, seconds),
        caption="Seconds per epoch by solver and number of factors",
    )
    print(page.read_text())
