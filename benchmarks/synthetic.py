"""How long synthetic data takes, and how much memory."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import report
from benchmarks.memory import _status
from safecf.data.synthetic import SHAPES, synthetic


def measure(name: str, seed: int) -> tuple[float, float, int, int]:
    """Return seconds of wall and of CPU time, bytes of the matrix and the peak's rise."""
    synthetic(200, 100, 2000)  # loads code
    before = _status("VmRSS:")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    begin, begin_cpu = time.perf_counter(), time.process_time()
    matrix = synthetic(name, seed=seed).matrix
    seconds, cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
    size = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    return seconds, cpu, size, _status("VmHWM:") - before


def main(
    seed: Annotated[int, typer.Option(help="Seed of the data.")] = 0,
) -> None:
    """Draw every named shape, each in a process of its own."""
    rows = []
    for name, shape in SHAPES.items():
        code = f"import benchmarks.synthetic as s; print(*s.measure({name!r}, {seed}))"
        root = Path(__file__).resolve().parents[1]
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True, cwd=root
        )
        seconds, cpu, size, peak = (float(value) for value in done.stdout.split())
        sizes = [name, f"{shape.users:,} x {shape.items:,}", f"{shape.interactions:,}"]
        found = [f"{seconds:.1f}", f"{cpu:.1f}", f"{size / 2**20:.0f}", f"{peak / 2**20:.0f}"]
        rows.append(sizes + found)
        print(rows[-1], flush=True)
    header = ["shape", "matrix", "interactions", "seconds", "CPU seconds"]
    page = report.write(
        "synthetic",
        "Synthetic data",
        "Time of `safecf.data.synthetic.synthetic` on one core, and how far the resident size "
        "rises, the matrix included.",
        report.table([*header, "matrix, MiB", "peak, MiB"], rows),
    )
    print(page.read_text())
