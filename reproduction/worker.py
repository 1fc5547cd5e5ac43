"""What runs cells: this process, or one of its own that is asked through a pipe."""

import os
import signal
import threading
import time
import traceback
import warnings
from dataclasses import dataclass, field
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from typing import Any

import threadpoolctl

from reproduction import data
from reproduction.base import Cell
from reproduction.store import Store
from reproduction.version import code_version

CHANGED = "the code has changed since this run began; start the command again"


@dataclass(frozen=True)
class Setup:
    """What a worker has to know: where the data lie, where results go, and its share of cores."""

    store: Store
    threads: int = 0
    locations: dict[str, str] = field(default_factory=dict)


_state: dict[str, int] = {"threads": 0}


def threads() -> int:
    """Return how many threads the function of a cell may use; 0 means all cores."""
    return _state["threads"]


def begin(setup: Setup) -> None:
    """Make this process ready for cells."""
    _state["threads"] = setup.threads
    data.LOCATIONS.clear()
    data.LOCATIONS.update(setup.locations)


def run(cell: Cell, store: Store) -> tuple[float, str]:
    """Run a cell and keep its result; return its seconds, and what went wrong, if anything."""
    start = time.perf_counter()
    try:
        if code_version(cell.run) != store.version(cell):
            return 0.0, CHANGED
        with warnings.catch_warnings(record=True) as said, threadpoolctl.threadpool_limits(1):
            warnings.simplefilter("always")
            record = cell.run(cell.settings)
        seconds = time.perf_counter() - start
        store.put(
            cell, {**record, "warnings": sorted({str(each.message) for each in said})}, seconds
        )
    except Exception as problem:
        where = traceback.extract_tb(problem.__traceback__)[-1]
        place = f"{os.path.basename(where.filename)}, line {where.lineno}"
        return time.perf_counter() - start, f"{type(problem).__name__}: {problem} ({place})"
    return seconds, ""


def serve(pipe: Connection, setup: Setup) -> None:
    """Answer cells with what `run` returns, until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears Ctrl-C, and ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    begin(setup)
    try:
        while True:
            cell: Any = pipe.recv()
            pipe.send(run(cell, setup.store))
    except (EOFError, OSError):
        pass


def _end_with_parent() -> None:
    """End this process when the one that started it does, however that was killed."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
