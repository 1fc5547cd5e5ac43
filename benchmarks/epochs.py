"""Epochs of safecf and its peers on the CPU, and on a device, with the floor below them."""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from typing import Any

import threadpoolctl

from benchmarks.clock import in_turn, spread, timed
from benchmarks.floors import Limits, epoch_floor
from benchmarks.harness import Row, Size, Tables, progress
from benchmarks.matrices import SHAPES, long_tailed, setting_of
from benchmarks.memory import expected_bytes, fits
from benchmarks.peers import SAFER2 as SETTINGS
from benchmarks.peers import Flat, Rival, Safecf, ials, peers, safer2
from benchmarks.sampled import check
from safecf.als.rows import Problem
from safecf.als.solvers import CG, Exact, Solver, SpectralCG, Subspace
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.interactions import Interactions
from safecf.models import SAFER2

Floor = Callable[[Interactions, Solver, tuple[float, float] | None], dict[str, Any]]

# by shape: d, solvers of SAFER2 beside spectral CG, and those of irspack on the CPU
CASES: dict[str, tuple[int, list[Solver], tuple[str, ...]]] = {
    "ml-20m": (256, [Exact(), CG(), Subspace(64)], ("CG", "IALSPP")),
    "msd": (512, [], ()),
}
WARM_UP = 2  # epochs on the CPU before the clock starts
BEFORE, SYNCHRONISED = 3, 3  # on a device; and epochs that wait after every step
FEW = 3  # epochs of what is slow
GOALS = {"ml-20m": 0.015, "msd": 0.08, "fit": 4.0}  # seconds on a GPU, per epoch or for all
FIT_EPOCHS, FIT_EPOCHS_ON_CPU = 50, 4


def beside_peers(size: Size, shape: str) -> Tables:
    """Time epochs of all rivals in turn on the CPU."""
    limits = Limits.measure(size.threads)
    factors, others, solvers = CASES[shape]
    matrix, d = long_tailed(*size.shape(*SHAPES[shape])), size.factors(factors)
    setting = setting_of(matrix, factors=d, repeats=size.repeats, warm_up=WARM_UP, **asdict(limits))
    need = expected_bytes(*matrix.shape, matrix.nnz, d, size.threads)
    need *= len(others) + len(solvers) + 3
    if not fits(need):
        return {"setting": [setting | {"needs": need}], "rivals": []}
    interactions, cpu = Interactions.from_csr(matrix), CpuBackend(size.threads)
    flat = Flat.like_ials(matrix)
    problem = flat.problem(interactions)
    rivals: list[Rival] = [
        safer2(shape, interactions, solver, d, cpu) for solver in (SpectralCG(), *others)
    ]
    rivals.append(ials(problem, SpectralCG(), d, cpu))
    rivals += peers(flat, problem, d, size.threads, solvers)

    def floor(interactions: Interactions, solver: Solver, steps: Any) -> dict[str, Any]:
        return epoch_floor(interactions, d, solver, limits, steps)

    rows = []
    with threadpoolctl.threadpool_limits(1, "blas"):
        for rival in rivals:
            for _ in range(WARM_UP):
                rival.epoch()
        seconds = in_turn({each.name: each.epoch for each in rivals}, size.repeats, before=0)
        base = [times for name, times in seconds.items() if name.startswith("implicit")]
        while rivals:
            rival = rivals.pop(0)  # its memory goes with it
            progress(f"{rival.name}: errors and floor")
            times = seconds[rival.name]
            row: Row = {"name": rival.name, "seconds": spread(times)}
            if base:
                row["ratio"] = statistics.median(times) / statistics.median(base[0])
            row |= _inside(rival, row["seconds"]["median"], size.repeats, floor)
            if "floor" in row:
                row["speed"] = row["floor"].pop("flops") / row["seconds"]["median"] / limits.gemm
            rows.append(row)
    return {"setting": [setting], "rivals": rows}


def _inside(rival: Rival, median: float, last: int, floor: Floor) -> Row:
    """Return the seconds by step of the last epochs, the errors of another one, and the floor."""
    found: Row = {}
    solver = rival.solver if isinstance(rival, Safecf) else None
    iterative = solver if isinstance(solver, CG | SpectralCG) else None
    if isinstance(rival, Safecf):
        found["steps"] = steps = rival.seconds_by_step(last)
        found["share"] = (steps["losses"] + steps["quantile"]) / median
    sides = check(rival, solver=iterative) if rival.alternates else []
    if sides:
        found["error_users"], found["error_items"] = (side.error for side in sides)
    if isinstance(rival, Safecf):
        counted = (sides[0].steps, sides[1].steps) if iterative else None
        found["floor"] = floor(rival.problem.interactions, rival.solver, counted)
        found["over"] = median / found["floor"]["total"]
        if counted:
            found["cg_users"], found["cg_items"] = counted
        else:
            found["floor"].pop("least", None)
    return found


def on_device(size: Size, shape: str) -> Tables:
    """Time epochs of SAFER2 and IALS on a device, one rival after the other, and the CPU's."""
    from benchmarks import devices  # noqa: PLC0415 - needs PyTorch

    matrix, d = long_tailed(*size.shape(*SHAPES[shape])), size.factors(CASES[shape][0])
    interactions = Interactions.from_csr(matrix)
    limits, eigh = devices.DeviceLimits.measure(size), devices.eigh_seconds(d, size)

    def floor(interactions: Interactions, solver: Solver, steps: Any) -> dict[str, Any]:
        return devices.device_floor(interactions, d, solver, limits, eigh, steps)

    backend = devices.backend_of(size)
    make = partial(safer2, shape, interactions, factors=d, backend=backend)
    flat = partial(ials, Flat.like_ials(matrix).problem(interactions), SpectralCG(), d, backend)
    rows = [
        _on_device(each, BEFORE, size.repeats, floor, size.device)
        for each in (partial(make, solver=SpectralCG()), flat)
    ]
    for solver in CASES[shape][1]:
        rows.append(_on_device(partial(make, solver=solver), 1, FEW, floor, size.device))
    cpu = safer2(shape, interactions, SpectralCG(), d, CpuBackend(size.threads))
    cpu.epoch()
    beside = {"name": f"{cpu.name}, CPU, {size.threads} threads"}
    beside["seconds"] = spread([timed(cpu.epoch) for _ in range(FEW)])
    setting = setting_of(matrix, factors=d, eigh=eigh, goal=GOALS[shape], **asdict(limits))
    return {"setting": [setting], "rivals": rows, "cpu": [beside]}


def _on_device(
    make: Callable[[], Safecf], before: int, repeats: int, floor: Floor, device: str
) -> Row:
    """Time one rival: its start, its epochs, then others that wait after every step."""
    from benchmarks import devices  # noqa: PLC0415

    devices.forget(device)
    wait, made = devices.waiter(device), list[Safecf]()
    start = timed(lambda: made.append(make()), wait)
    rival = made.pop()
    problem = rival.training.problem
    placing = timed(lambda: (problem.users, problem.items), wait)
    first = timed(rival.epoch, wait)
    for _ in range(before - 1):
        rival.epoch()
    wait()
    marks = [time.perf_counter()]
    for _ in range(repeats):
        rival.epoch()
        marks.append(time.perf_counter())
    wait()
    mean = (time.perf_counter() - marks[0]) / repeats
    seconds = spread([later - earlier for earlier, later in pairwise(marks)])
    progress(f"{rival.name}: {1e3 * seconds['median']:.1f} ms, first {first:.2f} s")
    rival.backend.wait = wait
    for _ in range(SYNCHRONISED):
        rival.epoch()
    rival.backend.wait = None
    row = {"name": rival.name, "seconds": seconds, "mean": mean, "first": first, "start": start}
    row |= {"placing": placing, "memory": devices.peak(device)}
    row |= _inside(rival, seconds["median"], SYNCHRONISED, floor)
    if rival.alternates:
        row["above"] = _above(row)
    return row


def _above(row: Row) -> dict[str, float]:
    """Return by how many seconds every step is above its floor, and the epochs above the steps."""
    floor, steps = row["floor"], row["steps"]
    least = {**floor, "rotate": floor["products"] + floor["eigh"]}
    above = {step: seconds - least.get(step, 0.0) for step, seconds in steps.items()}
    return above | {"beyond": row["seconds"]["median"] - sum(steps.values())}


def fit_on_device(size: Size) -> Tables:
    """Time a whole fit on a device, then go through the first epochs on the CPU."""
    from benchmarks import devices  # noqa: PLC0415

    matrix, d = long_tailed(*size.shape(*SHAPES["msd"])), size.factors(512)
    wait, held = devices.waiter(size.device), list[Interactions]()
    devices.backend_of(size).zeros(1, 1)  # starts CUDA
    devices.forget(size.device)
    reading = timed(lambda: held.append(Interactions.from_csr(matrix)), wait)
    where: dict[str, Any] = {"backend": "torch", "device": size.device, "random_state": 0}
    model = SAFER2(d, iterations=FIT_EPOCHS, **where, **SETTINGS["msd"])
    fit = timed(lambda: model.fit(held[0], show_progress=False), wait)
    memory = devices.peak(size.device)
    epochs = [sum(record.seconds.values()) for record in model.history]
    loss, ridge, risk, solver = model.parts()
    problem = Problem(held[0], loss, ridge, risk.tail)
    cpu = Safecf("CPU", problem, risk, solver, d, CpuBackend(size.threads))
    objectives = []
    for at, record in enumerate(model.history, start=1):
        row: Row = {"epoch": at, "device": record.objective}
        if at <= FIT_EPOCHS_ON_CPU:
            cpu.epoch()
            row["cpu"] = cpu.records[-1].objective
            row["difference"] = abs(row["device"] / row["cpu"] - 1)
        if at <= FIT_EPOCHS_ON_CPU or at == FIT_EPOCHS:
            objectives.append(row)
    seconds = {
        "`Interactions.from_csr`: check and transpose": reading,
        "`fit`": fit,
        "of it the first epoch": epochs[0],
        f"of it the other {len(epochs) - 1} epochs": sum(epochs[1:]),
        "of it the rest: start, fold-in of all users, copies": fit - sum(epochs),
    }
    setting = setting_of(matrix, factors=d, epochs=FIT_EPOCHS, seconds=sum(epochs), memory=memory)
    setting |= {"goal": GOALS["fit"]}
    times = [{"name": name, "seconds": value} for name, value in seconds.items()]
    return {"setting": [setting], "times": times, "objectives": objectives}
