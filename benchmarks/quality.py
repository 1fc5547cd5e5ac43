"""Time to quality: how soon each solver and peer has minimised the same iALS objective."""

import math
from typing import Any

import threadpoolctl

from benchmarks.clock import timed
from benchmarks.harness import Row, Size, Tables, progress
from benchmarks.matrices import long_tailed, setting_of
from benchmarks.peers import Flat, Rival, ials, peers
from safecf.als.rows import Problem
from safecf.als.solvers import CG, Exact, SpectralCG, Subspace
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.interactions import Interactions

SHAPE = (10_000, 4_000, 400_000)  # users, items, interactions
REFERENCE = SpectralCG(tolerance=1e-5)
FACTORS, MOST, LONGEST = 64, 150, 400
WITHIN = 1e-3  # the gap that is asked for; rivals go on until it is half of that
STRIDE, STILL = 20, 1e-5  # converged once so many epochs change so little


def measure(size: Size) -> Tables:
    """Let all rivals run in turn, one epoch each, and evaluate what they reach off the clock."""
    matrix, d = long_tailed(*size.shape(*SHAPE)), size.factors(FACTORS)
    flat = Flat.like_ials(matrix)
    problem, cpu = flat.problem(Interactions.from_csr(matrix)), CpuBackend(size.threads)
    with threadpoolctl.threadpool_limits(1, "blas"):
        lowest, longest = _converged(flat, matrix, problem, d, size.threads)
        solvers = (Exact(), CG(), SpectralCG(), Subspace(64))
        rivals: list[Rival] = [ials(problem, solver, d, cpu) for solver in solvers]
        rivals += peers(flat, problem, d, size.threads, ("CHOLESKY", "CG", "IALSPP"))
        gap = flat.value(matrix, *rivals[0].factors()) / lowest - 1
        curves: dict[str, list[Row]] = {
            rival.name: [{"name": rival.name, "epoch": 0, "seconds": 0.0, "gap": gap}]
            for rival in rivals
        }
        for epoch in range(1, MOST + 1):
            for rival in list(rivals):
                seconds = curves[rival.name][-1]["seconds"] + timed(rival.epoch)
                gap = flat.value(matrix, *rival.factors()) / lowest - 1
                point = {"name": rival.name, "epoch": epoch, "seconds": seconds, "gap": gap}
                curves[rival.name].append(point)
                if gap <= WITHIN / 2:
                    rivals.remove(rival)
                    progress(f"{rival.name}: {seconds:.2f} s, {epoch} epochs")
    setting = setting_of(matrix, factors=d, threads=size.threads, within=WITHIN)
    setting |= {"b": flat.unobserved, "ridge": flat.regularization}
    setting |= {"reference": longest, "stride": STRIDE, "still": STILL, "longest": LONGEST}
    points = [point for curve in curves.values() for point in curve[1:]]
    return {
        "setting": [setting],
        "rivals": [_reached(curve) for curve in curves.values()],
        "curves": [point for point in points if point["gap"] > 0],
    }


def _reached(curve: list[Row]) -> Row:
    """Return when a rival was close enough, if it was, and its seconds per epoch."""
    last = curve[-1]
    row = {"name": last["name"], "ran": last["epoch"], "epoch": last["seconds"] / last["epoch"]}
    reached = next((point for point in curve if point["gap"] <= WITHIN), None)
    return row | ({"seconds": reached["seconds"], "epochs": reached["epoch"]} if reached else {})


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
