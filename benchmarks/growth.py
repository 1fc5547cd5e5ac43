"""How time and memory of training grow with d, with the interactions and with the threads."""

import os
import statistics
import tempfile
from dataclasses import asdict
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks import report
from benchmarks.apart import apart, cost
from benchmarks.floors import Limits, epoch_floor
from benchmarks.matrices import SHAPES, long_tailed
from benchmarks.memory import expected_bytes, fits, load, save, warm
from benchmarks.peers import SAFER2 as SETTINGS
from benchmarks.plots import Panel, draw
from benchmarks.records import Options, progress
from safecf.als.solvers import SpectralCG
from safecf.data.matrices.interactions import Interactions
from safecf.models import SAFER2

SHAPE, FACTORS = "ml-20m", 256
ALL_FACTORS = [64, 128, 256, 512, 1024, 2048, 4096]
SHARES = [1 / 16, 1 / 8, 1 / 4, 1 / 2]  # and all of them
LARGE = 1024  # from here on two epochs have to do


def train(
    folder: str, shape: tuple[int, int], factors: int, threads: int, epochs: int
) -> dict[str, Any]:
    """Train SAFER2; return the seconds of its epochs and by how far the peak of memory rose."""
    warm("SAFER2")
    matrix = load(folder, shape)
    options = {"iterations": epochs, "num_threads": threads, "random_state": 0}
    model = SAFER2(factors, **options, **SETTINGS["ml-20m"])
    found = cost(lambda: model.fit(matrix, show_progress=False))
    seconds = [sum(record.seconds.values()) for record in model.history]
    return {"seconds": seconds, "end": found.seconds - sum(seconds), "rise": found.rise}


def measure(options: Options) -> dict[str, Any]:
    """Train with each d, each share of the interactions and each number of threads."""
    whole = long_tailed(*options.shape(*SHAPES[SHAPE]))
    cores, middle = len(os.sched_getaffinity(0)), options.factors(FACTORS)
    counts = sorted({min(2**power, cores) for power in range(cores.bit_length() + 1)})
    limits = {threads: Limits.measure(threads) for threads in {*counts, options.threads}}
    chosen = limits[options.threads]
    wanted = sorted({options.factors(d) for d in ALL_FACTORS})
    usual = _case(whole, middle, chosen)
    by_factors = [usual if d == middle else _case(whole, d, chosen) for d in wanted]
    by_share = [_case(subsample(whole, share), middle, chosen) for share in SHARES] + [usual]
    by_threads = [
        usual if threads == options.threads else _case(whole, middle, limits[threads])
        for threads in counts
    ]
    return {
        "size": [*whole.shape, whole.nnz],
        "limits": [asdict(each) for each in limits.values()],
        "factors": by_factors,
        "interactions": by_share,
        "threads": by_threads,
    }


def subsample(matrix: scipy.sparse.csr_matrix, share: float) -> scipy.sparse.csr_matrix:
    """Keep a random share of the interactions, and all rows and columns."""
    part = matrix.copy()
    part.data = (np.random.default_rng(0).random(matrix.nnz) < share).astype(part.data.dtype)
    part.eliminate_zeros()
    return part


def _case(matrix: scipy.sparse.csr_matrix, factors: int, limits: Limits) -> dict[str, Any]:
    """Measure in a process of its own, unless the memory does not allow it."""
    threads = limits.threads
    formula = expected_bytes(*matrix.shape, matrix.nnz, factors, threads)
    case = {"factors": factors, "interactions": matrix.nnz, "threads": threads, "formula": formula}
    name = f"d = {factors}, {matrix.nnz:,} interactions, {threads} threads"
    if not fits(formula + 2 * matrix.data.nbytes):
        progress(f"{name}: left out, {formula / 2**30:.0f} GiB are not free")
        return case
    epochs = 2 if factors >= LARGE else 4
    with tempfile.TemporaryDirectory() as folder:
        save(folder, matrix)
        found = apart("benchmarks.growth", "train", folder, matrix.shape, factors, threads, epochs)
    floor = epoch_floor(Interactions.from_csr(matrix), factors, SpectralCG(), limits)
    progress(f"{name}: {seconds_of(found):.2f} s, floor {floor['seconds']['total']:.2f} s")
    return case | found | {"floor": floor}


def seconds_of(case: dict[str, Any]) -> float:
    """Return the median of the epochs after the first."""
    return statistics.median(case["seconds"][1:] or case["seconds"])


def section(results: dict[str, Any], options: Options) -> list[str]:
    """Draw the curves and write them out."""
    curves = {
        "factors": "factors d",
        "interactions": "interactions, millions",
        "threads": "threads",
    }
    done = {axis: [case for case in results[axis] if "seconds" in case] for axis in curves}
    panels, memory = [], []
    for axis, label in curves.items():
        cases = done[axis]
        unit = 1e6 if axis == "interactions" else 1
        x = [case[axis] / unit for case in cases]
        pairs = {
            "safecf SAFER2": (x, [seconds_of(case) for case in cases]),
            "floor, one step of CG": (x, [case["floor"]["seconds"]["total"] for case in cases]),
        }
        panels.append(Panel(label, "seconds per epoch", pairs, ticks=x))
        if axis != "threads":
            sizes = {"measured": "rise", "formula": "formula"}
            lines = {
                name: (x, [case[key] / 2**20 for case in cases]) for name, key in sizes.items()
            }
            memory.append(Panel(label, "peak of training, MiB", lines, ticks=x))
    users, items, nnz = results["size"]
    header = ["d", "interactions", "threads", "seconds per epoch", "floor", "measured / floor"]
    header += ["seconds around the epochs"]
    rows = [_row(case) for axis in curves for case in results[axis]]
    rows = [row for place, row in enumerate(rows) if row not in rows[:place]]
    plot = draw(options.pages, "cpu-growth", panels)
    memory_plot = draw(options.pages, "cpu-memory", memory)
    return [
        f"SAFER2 with spectral CG on {users:,} users x {items:,} items with {nnz:,} interactions "
        f"or a random part of them, d = {options.factors(FACTORS)} unless told otherwise. Every "
        f"case has a process of its own; medians of the epochs after the first, of which there is "
        f"only one from d = {LARGE} on. The floor is that of one step of CG per row, at the "
        "limits measured with as many threads. Around the epochs, the matrix is transposed and, at "
        "the end, all users are folded in exactly. The peak is how far the resident size rises "
        "above that of the caller's matrix, the formula that "
        "of [memory.md](../memory.md).",
        f"![Seconds per epoch against d, interactions and threads, with the floor]({plot})",
        f"![Peak of memory against d and interactions, with the formula]({memory_plot})",
        report.table([*header, "peak, MiB", "formula, MiB"], rows),
    ]


def _row(case: dict[str, Any]) -> list[str]:
    name = [str(case["factors"]), f"{case['interactions']:,}", str(case["threads"])]
    formula = f"{case['formula'] / 2**20:,.0f}"
    if "seconds" not in case:
        return [*name, "not enough memory", "-", "-", "-", "-", formula]
    seconds, floor = seconds_of(case), case["floor"]["seconds"]["total"]
    times = [report.short(seconds), report.short(floor), f"{seconds / floor:.2f}"]
    times.append(report.short(case["end"]))
    return [*name, *times, f"{case['rise'] / 2**20:,.0f}", formula]
