"""Epochs on a GPU: milliseconds, errors, memory, and the distance to the floor by part."""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from benchmarks import report
from benchmarks.devices import (
    DeviceLimits,
    backend_of,
    device_floor,
    eigh_seconds,
    forget,
    peak,
    timed,
    waiter,
)
from benchmarks.epochs import STEPS
from benchmarks.matrices import SHAPES, long_tailed
from benchmarks.peers import Flat, Safecf, ials, safer2
from benchmarks.records import Options, progress
from benchmarks.report import short
from benchmarks.sampled import check
from safecf.als.solvers import CG, Exact, Solver, SpectralCG, Subspace
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.interactions import Interactions

BEFORE, SYNCHRONISED = 3, 3  # epochs before the clock starts, and those that wait after every step
FEW = 3  # epochs of what is slow


class Case(NamedTuple):
    """A shape, d, other solvers than spectral CG, and the goal in seconds per epoch."""

    shape: str
    factors: int
    others: tuple[Solver, ...]
    goal: float


CASES = {
    "ml-20m": Case("ml-20m", 256, (Exact(), CG(), Subspace(64)), 0.015),
    "msd": Case("msd", 512, (), 0.08),
}
# what others report, on other machines
IMPLICIT = (
    "implicit's GPU code was not run here. Its authors report 0.79 seconds per iteration of CG at "
    "256 factors on MovieLens-20M, ratings of 4 and more, on a GTX 1080 Ti (benchmarks/README.md "
    "of implicit)."
)
REPORTED = {
    "ml-20m": "Not measured here: the paper reports 3.45 seconds per epoch of SAFER2 on 96 cores. "
    + IMPLICIT,
    "msd": "Not measured here: the paper reports 57.0 seconds per epoch of SAFER2 on 96 cores.",
}
ABOUT = (
    "SAFER2 has the paper's settings for data of this shape, IALS one ridge for all rows. Epochs "
    "are timed by the wall clock from record to record, everything included; `mean` is the whole "
    "time by the number of epochs. The errors are |x - exact| / |exact| of one more half-step of a "
    "sample of rows against float64 solves. Memory is the peak of what PyTorch has allocated.",
    "The floor is the time that the work counted in `benchmarks/floors.py` takes at the GPU's own "
    "limits, measured in the same process by PyTorch: products at the speed of a GEMM, in TF32 "
    "for spectral CG (0.001) and in float32 for the others; the two eigendecompositions as "
    "`torch.linalg.eigh` does them in float64; each half-step by its flops or by one gather of its "
    "rows at the speed of a copy, read and written, in bfloat16 for spectral CG (0.001), whichever "
    "takes longer. Gathers of popular rows may come from a cache and be faster than that.",
)


def measure(options: Options, shape: str) -> dict[str, Any]:
    """Time epochs of SAFER2 and IALS on one shape, and the CPU backend's beside them."""
    case = CASES[shape]
    matrix, d = long_tailed(*options.shape(*SHAPES[shape])), options.factors(case.factors)
    interactions = Interactions.from_csr(matrix)
    limits = DeviceLimits.measure(options)
    eigh = eigh_seconds(d, options)
    rivals = []
    for make, before, repeats in _rivals(case, matrix, interactions, d, options):
        rivals.append(_rival(make, before, repeats, limits, eigh, options))
    beside = []
    if options.threads:
        cpu = safer2(shape, interactions, SpectralCG(), d, CpuBackend(options.threads))
        cpu.epoch()
        seconds = [timed(cpu.epoch, lambda: None) for _ in range(FEW)]
        progress(f"{shape}, CPU, {options.threads} threads: {min(seconds):.3f} s")
        beside.append({"name": cpu.name, "threads": options.threads, "seconds": seconds})
    return {
        "shape": shape,
        "size": [*matrix.shape, matrix.nnz],
        "factors": d,
        "limits": asdict(limits),
        "eigh": eigh,
        "rivals": rivals,
        "cpu": beside,
    }


def _rivals(
    case: Case, matrix: Any, interactions: Interactions, d: int, options: Options
) -> Iterator[tuple[Callable[[], Safecf], int, int]]:
    """Yield what makes each rival, its epochs before the clock starts, and those that are timed."""
    backend = backend_of(options)
    make = partial(safer2, case.shape, interactions, factors=d, backend=backend)
    yield partial(make, solver=SpectralCG()), BEFORE, options.repeats
    problem = Flat.like_ials(matrix).problem(interactions)
    yield partial(ials, problem, SpectralCG(), d, backend), BEFORE, options.repeats
    for solver in case.others:
        yield partial(make, solver=solver), 1, FEW


def _rival(
    make: Callable[[], Safecf],
    before: int,
    repeats: int,
    limits: DeviceLimits,
    eigh: float,
    options: Options,
) -> dict[str, Any]:
    """Time one rival: its start, its epochs, then others that wait after every step."""
    forget(options.device)
    wait = waiter(options.device)
    rivals: list[Safecf] = []
    start = timed(lambda: rivals.append(make()), wait)
    rival = rivals.pop()
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
    seconds = [later - earlier for earlier, later in pairwise(marks)]
    progress(f"{rival.name}: {1e3 * statistics.median(seconds):.1f} ms, first {first:.2f} s")
    rival.backend.wait = wait
    for _ in range(SYNCHRONISED):
        rival.epoch()
    rival.backend.wait = None
    found = {
        "name": rival.name,
        "seconds": seconds,
        "mean": mean,
        "first": first,
        "start": start,
        "placing": placing,
        "memory": peak(options.device),
        "parts": _parts(rival),
    }
    solver = rival.solver
    iterative = solver if isinstance(solver, CG | SpectralCG) else None
    errors = check(rival, solver=iterative) if rival.alternates else []
    steps = (errors[0].steps, errors[1].steps) if iterative else None
    d = rival.state.items.shape[1]
    floor = device_floor(rival.problem.interactions, d, solver, limits, eigh, steps)
    return found | {"errors": [side.error for side in errors], "floor": floor}


def _parts(rival: Safecf) -> dict[str, float]:
    """Return the median seconds by step of the last epochs, which have waited after each."""
    last = rival.records[-SYNCHRONISED:]
    return {step: statistics.median(each.seconds.get(step, 0.0) for each in last) for step in STEPS}


def section(results: dict[str, Any], options: Options) -> list[str]:
    """Write the epochs, what they consist of, and their floors, in milliseconds."""
    case, limits = CASES[results["shape"]], results["limits"]
    users, items, nnz = results["size"]
    header = ["", "ms, median", "spread", "mean", "first epoch", "start", "placing", "memory, GiB"]
    rows, parts, floors, rest = [], [], [], []
    for each in results["rivals"]:
        rows.append(_row(each))
        parts.append([each["name"], *(ms(each["parts"][step]) for step in STEPS)])
        floors.append(_floor(each))
        if each["errors"]:
            rest.append(_rest(each))
    for cpu in results["cpu"]:
        seconds, name = cpu["seconds"], f"{cpu['name']}, CPU, {cpu['threads']} threads"
        spread = f"{ms(min(seconds))} to {ms(max(seconds))}"
        rows.append([name, ms(statistics.median(seconds)), spread, *["-"] * 7])
    return [
        f"{users:,} users x {items:,} items, {nnz:,} interactions, d = {results['factors']}: GEMM "
        f"{limits['float32'] / 1e12:.3g} TFLOP/s in float32, {limits['tf32'] / 1e12:.3g} in TF32, "
        f"copy {limits['copy'] / 1e12:.3g} TB/s read and written, `eigh` {ms(results['eigh'])} ms. "
        f"The goal is {ms(case.goal)} ms per epoch of SAFER2, median: "
        f"{report.met(statistics.median(results['rivals'][0]['seconds']), case.goal)}. "
        "Milliseconds of epochs after the first "
        f"{BEFORE}, or after the first one for the slower solvers; the first one compiles, unless "
        "Triton has done so before. To start is to draw and place factors, to place is to copy "
        "the interactions.",
        report.table([*header, "error of users", "error of items"], rows),
        REPORTED[results["shape"]],
        f"Milliseconds by step, medians of {SYNCHRONISED} other epochs that wait for the device "
        "after every step; `rotate` is Gramians, eigenvectors, rotations and rounding for both "
        "half-steps:",
        report.table(["", *STEPS], parts),
        "Their floors in milliseconds, by part; the steps of CG are those that the sampled rows of "
        "users and items need, weighted by length.",
        report.table(
            ["", "CG steps", "products", "eigh", "users", "items", "floor", "measured / floor"],
            floors,
        ),
        "Where the rest goes, in milliseconds above the floor: the steps of the second table less "
        "their floors, products and `eigh` for `rotate`, nothing for losses and quantile; and what "
        "the epochs of the first table took beyond the sum of the steps, negative where waiting "
        "after every step cost more.",
        report.table(["", *STEPS, "beyond the steps"], rest),
    ]


def ms(seconds: float) -> str:
    """Write seconds as milliseconds.

    >>> ms(0.0152)
    '15.2'
    """
    return short(1e3 * seconds)


def _row(each: dict[str, Any]) -> list[str]:
    seconds, memory = each["seconds"], each["memory"]
    times = [ms(each[key]) for key in ("mean", "first", "start", "placing")]
    return [
        each["name"],
        ms(statistics.median(seconds)),
        f"{ms(min(seconds))} to {ms(max(seconds))}",
        *times,
        "-" if memory is None else f"{memory / 2**30:.2f}",
        *([f"{error:.1e}" for error in each["errors"]] or ["-", "-"]),
    ]


def _floor(each: dict[str, Any]) -> list[str]:
    seconds, steps = each["floor"]["seconds"], each["floor"]["steps"]
    counts = " / ".join(f"{count:.1f}" for count in steps) if steps else "-"
    cells = [ms(seconds[part]) for part in ("products", "eigh", "users", "items", "total")]
    ratio = statistics.median(each["seconds"]) / seconds["total"]
    return [each["name"], counts, *cells, f"{ratio:.2f}"]


def _rest(each: dict[str, Any]) -> list[str]:
    """Write by how much every step is above its floor."""
    floor, parts = each["floor"]["seconds"], each["parts"]
    least = {**floor, "rotate": floor["products"] + floor["eigh"]}
    above = [parts[step] - least.get(step, 0.0) for step in STEPS]
    above.append(statistics.median(each["seconds"]) - sum(parts.values()))
    return [each["name"], *(f"{1e3 * seconds:.1f}" for seconds in above)]
