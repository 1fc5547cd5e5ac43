"""How an epoch scales with the threads, by step and beside the floor."""

import os
import statistics
from dataclasses import asdict
from importlib.util import find_spec
from typing import Any, NamedTuple

import threadpoolctl

from benchmarks import report
from benchmarks.epochs import STEPS, timed
from benchmarks.floors import Limits, bags, epoch_floor, takes
from benchmarks.matrices import SHAPES, long_tailed
from benchmarks.memory import expected_bytes, fits
from benchmarks.peers import Flat, Implicit, safer2
from benchmarks.plots import Panel, draw
from benchmarks.records import Options, progress
from benchmarks.report import short
from safecf.als.solvers import SpectralCG
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.interactions import Interactions


class Case(NamedTuple):
    """A shape, d, the numbers of threads, the epochs that are timed after the first two, a goal.

    The goal is in seconds per epoch with the most threads.
    """

    shape: str
    factors: int
    threads: tuple[int, ...]
    epochs: int
    goal: float


CASES = (
    Case("ml-20m", 256, (1, 2, 4, 8, 16), 3, 0.2),
    Case("msd", 512, (4, 16), 3, 1.2),
    Case("msd", 2048, (16,), 1, 7.0),
)
BEFORE = 2  # epochs before the clock starts
WITH_IMPLICIT = {("ml-20m", 256), ("msd", 512)}  # shape and d


def measure(options: Options) -> dict[str, Any]:
    """Time epochs of SAFER2 with every number of threads, and of implicit with the most."""
    cores = len(os.sched_getaffinity(0))
    counts = sorted({min(count, cores) for case in CASES for count in case.threads})
    limits = {threads: Limits.measure(threads) for threads in counts}
    data = {}
    for shape in dict.fromkeys(case.shape for case in CASES):
        matrix = long_tailed(*options.shape(*SHAPES[shape]))
        data[shape] = matrix, Interactions.from_csr(matrix)
    found, peers = [], []
    for case in CASES:
        matrix, interactions = data[case.shape]
        d, threads = options.factors(case.factors), 1
        for threads in sorted({min(count, cores) for count in case.threads}):
            found.append(_case(case, interactions, d, limits[threads]))
        if (case.shape, case.factors) in WITH_IMPLICIT and find_spec("implicit") is not None:
            peers.append(_implicit(case, matrix, interactions, d, threads))
    return {"cases": found, "implicit": peers}


def _case(case: Case, interactions: Interactions, d: int, limits: Limits) -> dict[str, Any]:
    """Time one number of threads, unless the memory does not allow it."""
    users, items, nnz = (interactions.num_users, interactions.num_items, interactions.nnz)
    found = {"shape": case.shape, "size": [users, items, nnz], "factors": d}
    found |= {"threads": limits.threads, "limits": asdict(limits)}
    need = expected_bytes(users, items, nnz, d, limits.threads)
    if not fits(need):
        progress(f"{case.shape}, d = {d}: left out, {need / 2**30:.0f} GiB are not free")
        return found | {"needs": need}
    rival = safer2(case.shape, interactions, SpectralCG(), d, CpuBackend(limits.threads))
    for _ in range(BEFORE):
        rival.epoch()
    seconds = [timed(rival.epoch) for _ in range(case.epochs)]
    parts = {
        step: statistics.median(each.seconds.get(step, 0.0) for each in rival.records[BEFORE:])
        for step in STEPS
    }
    del rival
    floor = epoch_floor(
        interactions, d, SpectralCG(), limits, by=bags if find_spec("torch") else takes
    )
    name = f"{case.shape}, d = {d}, {limits.threads} threads"
    progress(f"{name}: {min(seconds):.3f} s, floor {floor['seconds']['total']:.3f} s")
    return found | {"seconds": seconds, "parts": parts, "floor": floor}


def _implicit(
    case: Case, matrix: Any, interactions: Interactions, d: int, threads: int
) -> dict[str, Any]:
    """Time epochs of implicit."""
    flat = Flat.like_ials(matrix)
    rival = Implicit(flat, flat.problem(interactions), d, threads)
    with threadpoolctl.threadpool_limits(1, "blas"):  # what it advises
        rival.epoch()
        seconds = [timed(rival.epoch) for _ in range(case.epochs)]
    progress(f"{case.shape}, d = {d}, {rival.name}, {threads} threads: {min(seconds):.3f} s")
    return {
        "name": rival.name,
        "shape": case.shape,
        "factors": d,
        "threads": threads,
        "seconds": seconds,
    }


def section(results: dict[str, Any], options: Options) -> list[str]:
    """Draw seconds against threads, and write them by step."""
    cases = [case for case in results["cases"] if "seconds" in case]
    panels, figure = _panels(cases), []
    if panels:
        plot = draw(options.pages, "cpu-threads", panels)
        figure = [f"![Seconds per epoch against threads, with floor and ideal scaling]({plot})"]
    header = ["shape", "d", "threads", "seconds, median", "speed-up", "floor", "measured / floor"]
    rows = [_row(case, cases) for case in cases]
    rows += [
        [case["shape"], str(case["factors"]), str(case["threads"]), "not enough memory"]
        + ["-"] * (len(header) + len(STEPS) - 4)
        for case in results["cases"]
        if "seconds" not in case
    ]
    return [
        "SAFER2 with spectral CG (0.001), the training parts of both shapes; medians of up to "
        f"{max(case.epochs for case in CASES)} epochs after the first {BEFORE}, in seconds. The "
        "speed-up is that over the fewest threads of the same case. The floor is that of one step "
        "of CG per row, at the limits measured with as many threads: gathers by PyTorch's "
        "`embedding_bag`, if it is there, as the threads of `take` wait for each other. On CPUs "
        "with AMX, our products are faster than the float32 GEMM that the floor counts them by, "
        "and popular rows come from a cache. The steps are those of an epoch, as "
        "above.",
        *figure,
        report.table([*header, *STEPS], rows),
        _goals(cases),
        _beside(results["implicit"], cases),
    ]


def _panels(cases: list[dict[str, Any]]) -> list[Panel]:
    panels = []
    for shape, d in dict.fromkeys((case["shape"], case["factors"]) for case in cases):
        own = [case for case in cases if (case["shape"], case["factors"]) == (shape, d)]
        if len(own) == 1:
            continue
        x = [case["threads"] for case in own]
        seconds = [statistics.median(case["seconds"]) for case in own]
        curves = {
            "safecf SAFER2": (x, seconds),
            "floor, one step of CG": (x, [case["floor"]["seconds"]["total"] for case in own]),
            "ideal": (x, [seconds[0] * x[0] / count for count in x]),
        }
        panels.append(Panel(f"threads ({shape}, d = {d})", "seconds per epoch", curves, ticks=x))
    return panels


def _row(case: dict[str, Any], cases: list[dict[str, Any]]) -> list[str]:
    name = case["shape"], case["factors"]
    first = next(each for each in cases if (each["shape"], each["factors"]) == name)
    seconds, floor = statistics.median(case["seconds"]), case["floor"]["seconds"]["total"]
    speed_up = statistics.median(first["seconds"]) / seconds
    times = [short(seconds), f"{speed_up:.1f}", short(floor), f"{seconds / floor:.2f}"]
    steps = [short(case["parts"][step]) for step in STEPS]
    return [case["shape"], str(case["factors"]), str(case["threads"]), *times, *steps]


def _goals(cases: list[dict[str, Any]]) -> str:
    """Say of every goal whether it is met, as far as it was measured."""
    texts = []
    for wanted in CASES:
        key, goal = (wanted.shape, wanted.factors, max(wanted.threads)), short(wanted.goal)
        own = [c for c in cases if (c["shape"], c["factors"], c["threads"]) == key]
        result = "not measured"
        if own:
            result = report.met(statistics.median(own[0]["seconds"]), wanted.goal)
        texts.append(f"{goal} s ({key[0]}, d = {key[1]}, {key[2]} threads), {result}")
    return f"Goals per epoch: {'; '.join(texts)}."


def _beside(peers: list[dict[str, Any]], cases: list[dict[str, Any]]) -> str:
    if not peers:
        return "implicit: not measured, as it was not installed."
    texts = []
    for each in peers:
        key = each["shape"], each["factors"], each["threads"]
        ours = [c for c in cases if (c["shape"], c["factors"], c["threads"]) == key]
        seconds = statistics.median(each["seconds"])
        ratio = seconds / statistics.median(ours[0]["seconds"]) if ours else None
        texts.append(
            f"{short(seconds)} s ({each['shape']}, d = {each['factors']}"
            + (f", {ratio:.1f} times ours)" if ratio else ")")
        )
    return f"{peers[0]['name']}, {peers[0]['threads']} threads, per epoch: {'; '.join(texts)}."
