"""A whole fit on a GPU: 50 epochs of the MSD shape, and the objective beside the CPU's."""

from typing import Any

from benchmarks import report
from benchmarks.devices import backend_of, forget, peak, timed, waiter
from benchmarks.matrices import SHAPES, long_tailed
from benchmarks.peers import SAFER2 as SETTINGS
from benchmarks.peers import Safecf
from benchmarks.records import Options, progress
from benchmarks.report import short
from safecf.als.rows import Problem
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.interactions import Interactions
from safecf.models import SAFER2

SHAPE, FACTORS, EPOCHS, GOAL = "msd", 512, 50, 4.0
CPU_EPOCHS = 4


def measure(options: Options) -> dict[str, Any]:
    """Fit, then go through the first epochs on the CPU from the same start."""
    matrix, d = long_tailed(*options.shape(*SHAPES[SHAPE])), options.factors(FACTORS)
    wait = waiter(options.device)
    backend_of(options).zeros(1, 1)  # starts CUDA
    forget(options.device)
    held: list[Interactions] = []
    reading = timed(lambda: held.append(Interactions.from_csr(matrix)), wait)
    interactions = held[0]
    where = {"backend": "torch", "device": options.device, "random_state": 0}
    model = SAFER2(d, iterations=EPOCHS, **where, **SETTINGS[SHAPE])
    fit = timed(lambda: model.fit(interactions, show_progress=False), wait)
    epochs = [sum(record.seconds.values()) for record in model.history]
    objectives = [record.objective for record in model.history]
    progress(f"fit: {fit:.2f} s, epochs {sum(epochs):.2f} s, objective {objectives[-1]:.6g}")
    cpu = _on_cpu(model, interactions, options.threads) if options.threads else []
    return {
        "size": [*matrix.shape, matrix.nnz],
        "factors": d,
        "reading": reading,
        "fit": fit,
        "epochs": epochs,
        "memory": peak(options.device),
        "objectives": objectives,
        "cpu": cpu,
    }


def _on_cpu(model: SAFER2, interactions: Interactions, threads: int) -> list[float]:
    """Return the objective of the first epochs of the same training by the CPU backend."""
    loss, ridge, risk, solver = model.parts()
    problem = Problem(interactions, loss, ridge, risk.tail)
    rival = Safecf("CPU", problem, risk, solver, model.factors, CpuBackend(threads))
    for _ in range(CPU_EPOCHS):
        rival.epoch()
    return [record.objective for record in rival.records]


def section(results: dict[str, Any], options: Options) -> list[str]:
    """Write where the time goes, and both objectives."""
    users, items, nnz = results["size"]
    epochs, fit, memory = results["epochs"], results["fit"], results["memory"]
    parts = {
        "`Interactions.from_csr`: check and transpose": results["reading"],
        "`fit`": fit,
        "of it the first epoch": epochs[0],
        f"of it the other {len(epochs) - 1} epochs": sum(epochs[1:]),
        "of it the rest: start, fold-in of all users, copies": fit - sum(epochs),
    }
    ours, cpu = results["objectives"], results["cpu"]
    rows = [
        [str(epoch), f"{own:.6f}", f"{other:.6f}", f"{abs(own / other - 1):.1e}"]
        for epoch, (own, other) in enumerate(zip(ours, cpu, strict=False), start=1)
    ]
    rows.append([str(len(ours)), f"{ours[-1]:.6f}", "-", "-"])
    size = "" if memory is None else f" The peak of GPU memory is {memory / 2**30:.2f} GiB."
    return [
        f"`SAFER2({results['factors']}, iterations={len(ours)}).fit` on the GPU, spectral CG "
        f"(0.001), {users:,} users x {items:,} items, {nnz:,} interactions. The goal is "
        f"{GOAL:g} seconds for the epochs: {report.met(sum(epochs), GOAL)}; the paper's "
        f"figure per epoch makes 47 minutes.{size}",
        report.table(["", "seconds"], [[name, short(value)] for name, value in parts.items()]),
        "The objective after an epoch, and that of the CPU backend from the same start:",
        report.table(["epoch", "GPU", "CPU", "relative difference"], rows),
    ]
