"""Time to quality: how soon each solver and peer has minimised the same iALS objective."""

import math
from typing import Any

import threadpoolctl

from benchmarks.clock import timed
from benchmarks.harness import Found, Row, Size, progress
from benchmarks.matrices import long_tailed, setting_of
from benchmarks.peers import Rival, Safecf, flat, objective, peers
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.interactions import Interactions

SHAPE = (10_000, 4_000, 400_000)  # users, items, interactions
SOLVERS = ({"solver": "exact"}, {"solver": "cg", "tolerance": 1e-4}, {}, {"block_size": 64})
FACTORS, MOST, LONGEST = 64, 150, 400
WITHIN = 1e-3  # the gap that is asked for; rivals go on until it is half of that
STRIDE, STILL = 20, 1e-5  # converged once so many epochs change so little


def measure(size: Size) -> Found:
    """Let all rivals run in turn, one epoch each, and evaluate what they reach off the clock."""
    matrix, d = long_tailed(*size.shape(*SHAPE)), size.factors(FACTORS)
    interactions, cpu = Interactions.from_csr(matrix), CpuBackend(size.threads)
    model, tight = flat(interactions, d), flat(interactions, d, tolerance=1e-5)
    with threadpoolctl.threadpool_limits(1, "blas"):
        lowest, longest = _converged(model, matrix, Safecf(tight, interactions, cpu))
        models = [flat(interactions, d, **solver) for solver in SOLVERS]
        rivals: list[Rival] = [Safecf(each, interactions, cpu) for each in models]
        rivals += peers(model, interactions, size.threads, ("CHOLESKY", "CG", "IALSPP"))
        curves: dict[str, list[Row]] = {rival.name: [] for rival in rivals}
        taken = dict.fromkeys(curves, 0.0)
        for epoch in range(1, MOST + 1):
            for rival in list(rivals):
                taken[rival.name] += timed(rival.epoch)
                gap = objective(model, matrix, *rival.factors()) / lowest - 1
                point = {"name": rival.name, "epoch": epoch, "seconds": taken[rival.name]}
                curves[rival.name].append(point | {"gap": gap})
                if gap <= WITHIN / 2:
                    rivals.remove(rival)
                    progress(str(point))
    setting = setting_of(matrix, factors=d, threads=size.threads, within=WITHIN)
    setting |= {"b": model.unobserved_weight, "ridge": model.regularization}
    setting |= {"reference": longest, "stride": STRIDE, "still": STILL, "longest": LONGEST}
    yield "setting", setting
    for curve in curves.values():
        yield "rivals", _reached(curve)
        yield "curves", [point for point in curve if point["gap"] > 0]


def _reached(curve: list[Row]) -> Row:
    """Return when a rival was close enough, if it was, and its seconds per epoch."""
    last = curve[-1]
    row = {"name": last["name"], "ran": last["epoch"], "epoch": last["seconds"] / last["epoch"]}
    reached = next((point for point in curve if point["gap"] <= WITHIN), None)
    return row | ({"seconds": reached["seconds"], "epochs": reached["epoch"]} if reached else {})


def _converged(model: Any, matrix: Any, rival: Rival) -> tuple[float, int]:
    """Return where the objective ends, and after how many epochs of a tight spectral CG."""
    value = math.inf
    for epoch in range(STRIDE, LONGEST + 1, STRIDE):
        for _ in range(STRIDE):
            rival.epoch()
        before, value = value, objective(model, matrix, *rival.factors())
        progress(f"reference, epoch {epoch}: objective {value:.2f}")
        if before - value < STILL * value:
            break
    return value, epoch
