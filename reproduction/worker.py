"""Run single cells, in this process or in a worker process."""

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
    """What a worker needs: the store, its number of threads, and the files of the data sets."""

    store: Store
    threads: int = 0
    locations: dict[str, str] = field(default_factory=dict)


_state: dict[str, int] = {"threads": 0}


def threads() -> int:
    """Return how many threads the function of a cell may use; 0 means all cores."""
    return _state["threads"]


def configure(setup: Setup) -> None:
    """Set the number of threads and the files of the data sets in this process."""
    _state["threads"] = setup.threads
    data.LOCATIONS.clear()
    data.LOCATIONS.update(setup.locations)


def run(cell: Cell, store: Store) -> tuple[float, str]:
    """Run a cell and store its result; return its seconds, and the error or an empty text."""
    start = time.perf_counter()
    try:
        if code_version(cell.run) != store.version(cell):
            return 0.0, CHANGED
        with warnings.catch_warnings(record=True) as caught, threadpoolctl.threadpool_limits(1):
            warnings.simplefilter("always")
            record = cell.run(cell.settings)
        seconds = time.perf_counter() - start
        messages = sorted({str(each.message) for each in caught})
        store.put(cell, {**record, "warnings": messages}, seconds)
    except Exception as problem:
        where = traceback.extract_tb(problem.__traceback__)[-1]
        place = f"{os.path.basename(where.filename)}, line {where.lineno}"
        return time.perf_counter() - start, f"{type(problem).__name__}: {problem} ({place})"
    return seconds, ""


def serve(pipe: Connection, setup: Setup) -> None:
    """Receive cells and send back what `run` returns, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    configure(setup)
    try:
        while True:
            cell: Any = pipe.recv()
            pipe.send(run(cell, setup.store))
    except (EOFError, OSError):
        pass


def _end_with_parent() -> None:
    """End this process when its parent ends, even by kill -9."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
