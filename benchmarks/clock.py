"""What calls take: seconds in turn with others, or time and memory in a process of their own."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import threadpoolctl

from benchmarks.harness import progress
from reproduction.experiment import ROOT, Row

Step = Callable[[], Any]


def timed(step: Step, wait: Step | None = None) -> float:
    """Return the seconds of a call, up to the end of what `wait` waits for."""
    if wait:
        wait()
    begin = time.perf_counter()
    step()
    if wait:
        wait()
    return time.perf_counter() - begin


def in_turn(
    steps: Mapping[str, Step], repeats: int, blas: int | Mapping[str, int] = 1, before: int = 1
) -> dict[str, list[float]]:
    """Call all steps again and again, one after the other, and return their seconds.

    The first rounds, which load code and memory, do not count. `blas` is the number of threads of
    the BLAS, for all steps or by name (1 for the others, which have threads of their own).
    """
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for repeat in range(before + repeats):
        for name, step in steps.items():
            threads = blas if isinstance(blas, int) else blas.get(name, 1)
            with threadpoolctl.threadpool_limits(threads, "blas"):
                taken = timed(step)
            if repeat >= before:
                seconds[name].append(taken)
                progress(f"{name}: {taken:.3f} s")
    return seconds


def spread(values: list[float]) -> dict[str, float]:
    """Return the median and both ends."""
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def compared(seconds: Mapping[str, list[float]], **bases: str) -> list[Row]:
    """Return a row per step: its seconds, and its ratios to each base, by the pairs of a round."""
    rows = []
    for name, times in seconds.items():
        row: Row = {"name": name, "seconds": spread(times)}
        for key, base in bases.items():
            row[key] = spread([a / b for a, b in zip(times, seconds[base], strict=True)])
        rows.append(row)
    return rows


def cost(call: Step) -> Row:
    """Return seconds of wall and CPU time of a call, and by how many bytes the peak of memory rose.

    The peak counts from the resident size before.
    """
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    begin, begin_cpu = time.perf_counter(), time.process_time()
    kept = call()
    seconds, cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
    rise = status("VmHWM") - before
    del kept
    return {"seconds": seconds, "cpu": cpu, "rise": rise}


def status(key: str, process: int | str = "self") -> int:
    """Return a size of a process in bytes, such as VmRSS, or VmHWM for its peak."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(key)), 0)


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of a module in a process of its own; return the result as JSON has it.

    There, no memory that was freed before is used again.
    """
    module, name = function.__module__, function.__name__
    code = f"import json, {module} as m; print(json.dumps(m.{name}(*{arguments!r})))"
    printed = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT)
    return json.loads(printed.splitlines()[-1])
