"""Time to quality: how soon each solver and peer has minimised the same iALS objective."""

import math
from typing import Any

import threadpoolctl

from benchmarks import report
from benchmarks.epochs import timed
from benchmarks.matrices import long_tailed
from benchmarks.peers import Flat, Implicit, Irspack, Rival, described, ials
from benchmarks.plots import Panel, draw
from benchmarks.records import Options, progress
from safecf.als.rows import Problem
from safecf.als.solvers import CG, Exact, SpectralCG, Subspace
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.interactions import Interactions

SHAPE = (10_000, 4_000, 400_000)  # users, items, interactions
REFERENCE = SpectralCG(tolerance=1e-5)
FACTORS, MOST, LONGEST = 64, 150, 400
WITHIN = 1e-3  # the gap that is asked for; rivals go on until it is half of that
STRIDE, STILL = 20, 1e-5  # converged once so many epochs change so little


def measure(options: Options) -> dict[str, Any]:
    """Let all rivals run in turn, one epoch each, and evaluate what they reach off the clock."""
    matrix, d = long_tailed(*options.shape(*SHAPE)), options.factors(FACTORS)
    flat = Flat.like_ials(matrix)
    problem = flat.problem(Interactions.from_csr(matrix))
    with threadpoolctl.threadpool_limits(1, "blas"):
        lowest, longest = _converged(flat, matrix, problem, d, options.threads)
        rivals = _rivals(flat, problem, d, options.threads)
        begin = flat.value(matrix, *rivals[0].factors())
        seconds: dict[str, list[float]] = {rival.name: [0.0] for rival in rivals}
        values: dict[str, list[float]] = {rival.name: [begin] for rival in rivals}
        for epoch in range(MOST):
            for rival in list(rivals):
                taken = timed(rival.epoch)
                seconds[rival.name].append(seconds[rival.name][-1] + taken)
                values[rival.name].append(flat.value(matrix, *rival.factors()))
                if values[rival.name][-1] <= (1 + WITHIN / 2) * lowest:
                    rivals.remove(rival)
                    progress(f"{rival.name}: {seconds[rival.name][-1]:.2f} s, {epoch + 1} epochs")
    return {
        "size": [*matrix.shape, matrix.nnz],
        "factors": d,
        "threads": options.threads,
        "objective": {"unobserved": flat.unobserved, "regularization": flat.regularization},
        "reference": {"value": lowest, "epochs": longest},
        "seconds": seconds,
        "values": values,
    }


def _converged(
    flat: Flat, matrix: Any, problem: Problem, d: int, threads: int
) -> tuple[float, int]:
    """Return where the objective ends, and after how many epochs of a tight spectral CG."""
    rival, value = ials(problem, REFERENCE, d, CpuBackend(threads)), math.inf
    for epoch in range(STRIDE, LONGEST + 1, STRIDE):
        for _ in range(STRIDE):
            rival.epoch()
        before, value = value, flat.value(matrix, *rival.factors())
        progress(f"reference, epoch {epoch}: objective {value:.2f}")
        if before - value < STILL * value:
            break
    return value, epoch


def _rivals(flat: Flat, problem: Problem, d: int, threads: int) -> list[Rival]:
    """Return everybody who minimises it."""
    solvers = (Exact(), CG(), SpectralCG(), Subspace(64))
    rivals: list[Rival] = [ials(problem, solver, d, CpuBackend(threads)) for solver in solvers]
    rivals.append(Implicit(flat, problem, d, threads))
    rivals += [Irspack(flat, problem, d, threads, how) for how in ("CHOLESKY", "CG", "IALSPP")]
    return rivals


def section(results: dict[str, Any], options: Options) -> list[str]:
    """Draw the gaps by time, and write when they were small enough."""
    seconds, values, reference = results["seconds"], results["values"], results["reference"]
    lowest = reference["value"]
    gaps = {name: [value / lowest - 1 for value in each] for name, each in values.items()}
    rows, curves = [], {}
    for name, gap in gaps.items():
        reached = next((epoch for epoch, size in enumerate(gap) if size <= WITHIN), None)
        when = ["not reached", f"over {len(gap) - 1}"]
        if reached is not None:
            when = [report.short(seconds[name][reached]), str(reached)]
        per_epoch = seconds[name][-1] / (len(gap) - 1)
        rows.append([name, *when, report.short(per_epoch)])
        seen = [place for place, size in enumerate(gap) if place > 0 and size > 0]
        curves[name] = ([seconds[name][at] for at in seen], [gap[at] for at in seen])
    panel = Panel("seconds", "gap to the converged objective, relative", curves, target=WITHIN)
    plot = draw(options.pages, "cpu-quality", [panel])
    (users, items, nnz), flat = results["size"], results["objective"]
    return [
        f"{users:,} users x {items:,} items, {nnz:,} interactions, d = {results['factors']}, "
        f"{results['threads']} threads. Everybody minimises 1/2 sum over the interactions of "
        f"(1 - x.y)² + b/2 sum over all pairs of (x.y)² + λ/2 (|X|² + |Y|²) with "
        f"b = {flat['unobserved']:g} and λ = {flat['regularization']:.3g}, from the same start: "
        "iALS without its frequency ridge, which implicit does not have. For irspack this is its "
        "objective with nu = 0. For implicit it is that with confidence 1 + 1/b and regularization "
        "λ (1 + b) / b, in terms of factors divided by √(1 + b); `benchmarks/peers.py` derives it.",
        "Epochs run in turn, one of each, until everybody is within half of the target; the "
        "objective is computed in float64 by numpy, off the clock. The converged value is what "
        f"{described(REFERENCE)} has reached after {reference['epochs']} epochs, when {STRIDE} of "
        f"them changed it by less than {STILL:g} or {LONGEST} were over. An epoch of safecf "
        "includes the losses, which training reports.",
        report.table(["", f"seconds to {WITHIN:.1%}", "epochs", "seconds per epoch"], rows),
        f"![Objective above its converged value by seconds]({plot})",
    ]
