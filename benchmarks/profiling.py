"""Where the time of an epoch goes: by step, by Python function and by native function.

The steps are the `seconds` of the epoch's record. The functions of Python are cProfile's, which
slows Python down, so that its epochs are other ones. The native functions are sampled by perf, if
it is there; without the names of functions in the core (see `make profile`) they are addresses.
"""

import cProfile
import os
import pstats
import shutil
import signal
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import threadpoolctl
import typer

from benchmarks.floors import Limits, epoch_floor
from benchmarks.matrices import SHAPES, long_tailed
from benchmarks.peers import Safecf, safer2
from benchmarks.records import Options, progress
from benchmarks.report import short
from safecf.als.solvers import CG, Exact, Solver, SpectralCG, Subspace
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.interactions import Interactions

WIDTH = 40  # characters of a whole bar
SAMPLES = 997  # per second and thread
LONGEST = 90  # characters of a function's name
# What the floor calls the parts of an epoch.
FLOORS = {"rotate": "products", "users": "users", "items": "items"}
Row = tuple[str, float, str]
# As named models choose them, at their default tolerance.
CHOICES: dict[str, Solver] = {
    "spectral-cg": SpectralCG(),
    "exact": Exact(),
    "cg": CG(),
    "subspace": Subspace(64),
}


def main(
    shape: Annotated[str, typer.Option(help="ml-20m or msd.")] = "ml-20m",
    scale: Annotated[float, typer.Option(help="Share of the users and interactions.")] = 0.25,
    factors: int = 256,
    solver: Annotated[str, typer.Option(help=", ".join(CHOICES))] = "spectral-cg",
    threads: int = 2,
    epochs: int = 3,
    rows: Annotated[int, typer.Option(help="Functions to show.")] = 15,
) -> None:
    """Profile epochs of SAFER2 on the CPU, with the paper's settings for a shape of data."""
    if shape not in SHAPES or solver not in CHOICES:
        raise SystemExit(f"shapes are {', '.join(SHAPES)}, solvers {', '.join(CHOICES)}")
    interactions = Interactions.from_csr(
        long_tailed(*Options(scale, threads, epochs).shape(*SHAPES[shape]))
    )
    rival = safer2(shape, interactions, CHOICES[solver], factors, CpuBackend(threads))
    progress(f"{interactions}, d = {factors}, {rival.name}, {threads} threads")
    with threadpoolctl.threadpool_limits(1, "blas"):
        rival.epoch()  # it allocates, and starts the threads
        steps = by_step(rival, epochs)
        functions = by_python(rival.epoch, epochs)
        native = by_native(rival.epoch, epochs)
    floor = epoch_floor(interactions, factors, rival.solver, Limits.measure(threads))["least"]
    print(chart("Seconds of an epoch by step", with_floors(steps, floor), rows))
    print(chart("Seconds of an epoch by function, as Python sees it", functions, rows))
    if native:
        print(chart("CPU time by native function, in per cent", native, rows))
    else:
        print("Native functions: none were sampled; install perf, and see perf_event_paranoid.")


def by_step(rival: Safecf, epochs: int) -> dict[str, float]:
    """Return the medians of the steps' seconds, the longest first."""
    for _ in range(epochs):
        rival.epoch()
    records = [record.seconds for record in rival.records[-epochs:]]
    found = {name: statistics.median(each[name] for each in records) for name in records[-1]}
    return dict(sorted(found.items(), key=lambda step: -step[1]))


def with_floors(steps: dict[str, float], floor: dict[str, float]) -> list[Row]:
    """Return rows that say how far each step is from its floor, where it has one."""
    rows = []
    for name, seconds in steps.items():
        least = floor.get(FLOORS.get(name, ""))
        rows.append((name, seconds, f"floor {short(least)}" if least else "no floor"))
    total = sum(steps.values())
    return [("all", total, f"floor {short(floor['total'])}"), *rows]


def by_python(epoch: Callable[[], Any], epochs: int) -> list[Row]:
    """Return functions by their own seconds per epoch, with their calls per epoch."""
    profile = cProfile.Profile()
    for _ in range(epochs):
        profile.runcall(epoch)
    rows = []
    for (file, line, name), (_, calls, own, *_) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        where = name if file == "~" else f"{Path(file).name}:{line} {name}"
        rows.append((where, own / epochs, f"{calls / epochs:g} calls"))
    return sorted(rows, key=lambda row: -row[1])


def by_native(epoch: Callable[[], Any], epochs: int) -> list[Row]:
    """Return the functions that perf has found at work, with their library; none without perf."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "perf.data"
        with sampled(data) as works:
            for _ in range(epochs if works else 0):
                epoch()
        if not data.exists():
            return []
        report = ["perf", "report", "--stdio", "--no-children", "--sort", "dso,symbol"]
        text = subprocess.run(
            [*report, "--field-separator", "\t", "--input", data],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
    return parse(text)


@contextmanager
def sampled(data: Path) -> Iterator[bool]:
    """Have perf sample this process; False where there is no perf, or it may not."""
    if shutil.which("perf") is None:
        yield False
        return
    command = ["perf", "record", "-e", "cpu-clock", "-F", str(SAMPLES), "-o", str(data)]
    perf = subprocess.Popen(
        [*command, "-p", str(os.getpid())], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield not ended(perf)
    finally:
        perf.send_signal(signal.SIGINT)
        perf.wait()


def ended(process: subprocess.Popen[bytes], seconds: float = 0.5) -> bool:
    """Tell whether a process ends at once, as perf does where it may not sample."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def parse(report: str) -> list[Row]:
    r"""Read the lines of `perf report`: share, library and function.

    >>> parse(" 12.50%\t_core.so\t[.] safecf::solve<int>(long)")
    [('safecf::solve<int>(long)', 12.5, '_core.so')]
    """
    rows = []
    for line in report.splitlines():
        share, *fields = (field.strip() for field in line.split("\t"))
        if share.endswith("%") and len(fields) > 1:
            library, symbol = fields[:2]
            name = symbol.partition("] ")[2].strip().replace("(anonymous namespace)::", "")
            rows.append((name, float(share[:-1]), library))
    return rows


def chart(title: str, rows: list[Row], count: int) -> str:
    """Draw rows as bars, the largest as wide as `WIDTH`; those without a bar are left out."""
    shown = [row for row in rows[:count] if row[1] > 0]
    largest = max((value for _, value, _ in shown), default=1.0)
    lines = [f"\n{title}"]
    for name, value, note in shown:
        bar = "█" * max(1, round(WIDTH * value / largest))
        lines.append(f"{short(value):>8}  {bar:<{WIDTH}}  {name[:LONGEST]}  ({note})")
    return "\n".join(lines)
