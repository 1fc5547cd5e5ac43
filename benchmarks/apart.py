"""Measuring in a process of its own, where no memory that was freed before is used again."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


class Cost(NamedTuple):
    """What a call took: seconds of wall and CPU time, and how far the peak of memory rose."""

    seconds: float
    cpu: float
    rise: int


def cost(call: Callable[[], Any]) -> Cost:
    """Call it, and return what it took; the peak counts from the resident size before."""
    before = _status("VmRSS:")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    begin, begin_cpu = time.perf_counter(), time.process_time()
    kept = call()
    seconds, cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
    rise = _status("VmHWM:") - before
    del kept
    return Cost(seconds, cpu, rise)


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def apart(module: str, function: str, *arguments: Any) -> Any:
    """Return `module.function(*arguments)`, as JSON has it, from a process of its own."""
    code = f"import json, {module} as m; print(json.dumps(m.{function}(*{arguments!r})))"
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True, cwd=root
    )
    return json.loads(done.stdout)
