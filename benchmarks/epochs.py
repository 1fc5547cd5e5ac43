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
from benchmarks.floors import ONE, Limits, epoch_floor
from benchmarks.harness import Found, Row, Size
from benchmarks.matrices import SHAPES, long_tailed, setting_of
from benchmarks.peers import SETTINGS, Rival, Safecf, flat, paper, peers
from benchmarks.sampled import check
from safecf.als.solvers import CG, SpectralCG
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.interactions import Interactions
from safecf.models import SAFER2

Floor = Callable[..., Row]  # of a solver and the steps of CG

WARM_UP = 2  # epochs on the CPU before the clock starts
BEFORE, SYNCHRONISED = 3, 3  # on a device; and epochs that wait after every step
FEW = 3  # epochs of what is slow
FIT_EPOCHS, FIT_EPOCHS_ON_CPU = 50, 4


def beside_peers(
    size: Size, shape: str, factors: int, solvers: list[Row], of_irspack: list[str]
) -> Found:
    """Time epochs of all rivals in turn on the CPU; `solvers` are those of SAFER2."""
    limits = Limits.measure(size.threads)
    matrix, d = long_tailed(*size.shape(*SHAPES[shape])), size.factors(factors)
    yield "setting", setting_of(matrix, factors=d, repeats=size.repeats, warm_up=WARM_UP)
    yield "setting", asdict(limits)
    interactions, cpu = Interactions.from_csr(matrix), CpuBackend(size.threads)
    plain, floor = flat(interactions, d), partial(epoch_floor, interactions, d, limits)
    models = [*(paper(shape, d, **solver) for solver in solvers), plain]
    rivals: list[Rival] = [Safecf(model, interactions, cpu) for model in models]
    rivals += peers(plain, interactions, size.threads, of_irspack)
    with threadpoolctl.threadpool_limits(1, "blas"):
        for rival in rivals:
            for _ in range(WARM_UP):
                rival.epoch()
        seconds = in_turn({each.name: each.epoch for each in rivals}, size.repeats, before=0)
        base = [times for name, times in seconds.items() if name.startswith("implicit")]
        while rivals:
            rival = rivals.pop(0)  # its memory goes with it
            row: Row = {"name": rival.name, "seconds": spread(seconds[rival.name])}
            median = row["seconds"]["median"]
            if base:
                row["ratio"] = median / statistics.median(base[0])
            row |= _inside(rival, median, size.repeats, floor)
            if "floor" in row:
                row["speed"] = row["floor"].pop("flops") / median / limits.gemm
            yield "rivals", row


def _inside(rival: Rival, median: float, last: int, floor: Floor) -> Row:
    """Return the seconds by step of the last epochs, the errors of another one, and the floor."""
    found: Row = {}
    solver = rival.solver if isinstance(rival, Safecf) else None
    iterative = solver if isinstance(solver, CG | SpectralCG) else None
    if isinstance(rival, Safecf):
        found["steps"] = steps = rival.seconds_by_step(last)
        found["share"] = (steps["losses"] + steps["quantile"]) / median
    counted = ONE
    if rival.alternates:
        users, items = check(rival, solver=iterative)
        found |= {"error_users": users.error, "error_items": items.error}
        if iterative:
            counted = users.steps, items.steps
            found |= {"cg_users": users.steps, "cg_items": items.steps}
    if solver:
        found["floor"] = floor(solver, counted)
        found["over"] = median / found["floor"]["total"]
        if not iterative:
            found["floor"].pop("least", None)
    return found


def on_device(size: Size, shape: str, factors: int, goal: float, slower: list[Row]) -> Found:
    """Time epochs of SAFER2 and IALS on a device, one rival after the other, and the CPU's.

    `slower` are further solvers of SAFER2.
    """
    from benchmarks import devices  # noqa: PLC0415 - needs PyTorch

    matrix, d = long_tailed(*size.shape(*SHAPES[shape])), size.factors(factors)
    interactions = Interactions.from_csr(matrix)
    limits, eigh = devices.DeviceLimits.measure(size), devices.eigh_seconds(d, size)
    yield "setting", setting_of(matrix, factors=d, eigh=eigh, goal=goal, **asdict(limits))
    floor = partial(devices.device_floor, interactions, d, limits, eigh)
    backend = devices.backend_of(size)
    rivals = [(model, BEFORE, size.repeats) for model in (paper(shape, d), flat(interactions, d))]
    rivals += [(paper(shape, d, **solver), 1, FEW) for solver in slower]
    for model, before, repeats in rivals:
        make = partial(Safecf, model, interactions, backend)
        yield "rivals", _on_device(make, before, repeats, floor, size.device)
    cpu = Safecf(paper(shape, d), interactions, CpuBackend(size.threads))
    cpu.epoch()
    seconds = spread([timed(cpu.epoch) for _ in range(FEW)])
    yield "cpu", {"name": f"{cpu.name}, CPU, {size.threads} threads", "seconds": seconds}


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
    rival.backend.wait = wait
    for _ in range(SYNCHRONISED):
        rival.epoch()
    row = {"name": rival.name, "seconds": seconds, "mean": mean, "first": first, "start": start}
    row |= {"placing": placing, "memory": devices.peak(device)}
    row |= _inside(rival, seconds["median"], SYNCHRONISED, floor)
    if rival.alternates:  # by how many seconds steps are above their floor, and epochs above steps
        steps, least = row["steps"], row["floor"]
        least = {**least, "rotate": least["products"] + least["eigh"]}
        row["above"] = {step: taken - least.get(step, 0.0) for step, taken in steps.items()}
        row["above"]["beyond"] = seconds["median"] - sum(steps.values())
    return row


def fit_on_device(size: Size, goal: float) -> Found:
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
    yield "setting", setting_of(matrix, factors=d, epochs=FIT_EPOCHS, goal=goal)
    epochs = [sum(record.seconds.values()) for record in model.history]
    yield "setting", {"seconds": sum(epochs), "memory": devices.peak(size.device)}
    seconds = {
        "`Interactions.from_csr`: check and transpose": reading,
        "`fit`": fit,
        "of it the first epoch": epochs[0],
        f"of it the other {len(epochs) - 1} epochs": sum(epochs[1:]),
        "of it the rest: start, fold-in of all users, copies": fit - sum(epochs),
    }
    yield "times", [{"name": name, "seconds": value} for name, value in seconds.items()]
    cpu = Safecf(model, held[0], CpuBackend(size.threads))
    for record in model.history[:FIT_EPOCHS_ON_CPU]:
        cpu.epoch()
        row: Row = {"epoch": record.epoch, "device": record.objective}
        row["cpu"] = cpu.records[-1].objective
        yield "objectives", row | {"difference": abs(row["device"] / row["cpu"] - 1)}
    yield "objectives", {"epoch": FIT_EPOCHS, "device": model.history[-1].objective}
