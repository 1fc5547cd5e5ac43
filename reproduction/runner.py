"""Run cells in parallel: finished ones are not repeated, and a failure does not stop the others."""

import multiprocessing
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Any

from rich.progress import TextColumn, TimeElapsedColumn

from reproduction import data, worker
from reproduction.base import Cell, Result
from reproduction.page import cores
from reproduction.store import Store
from safecf.free_memory import available_bytes
from safecf.progress import progress_bar

POLL_SECONDS = 1.0
GIVE_UP_AFTER = 3  # failures for the same reason without any success

COLUMNS = (
    TextColumn("{task.completed:.0f}/{task.total:.0f} cells"),
    TextColumn("{task.fields[failed]}", style="red"),
    TimeElapsedColumn(),
    TextColumn("{task.fields[left]}"),
)


@dataclass
class Run:
    """Results by the index of the cell, failed cells with reasons, and how many were skipped."""

    results: dict[int, Result] = field(default_factory=dict)
    failures: list[tuple[Cell, str]] = field(default_factory=list)
    skipped: int = 0

    @property
    def is_hopeless(self) -> bool:
        """Whether several cells failed for the same reason and none succeeded."""
        reasons = {reason for _, reason in self.failures}
        return not self.results and len(self.failures) >= GIVE_UP_AFTER and len(reasons) == 1


class Interrupted(KeyboardInterrupt):
    """Ctrl-C was pressed; the message is how many cells are finished."""


def choose_jobs(cells: Sequence[Cell], alone: bool, jobs: int | None = None) -> int:
    """Return how many cells run at a time: by default as cores and memory allow.

    If they run `alone`, it is 1, or 0 if that was asked for.
    """
    if alone:
        return 1 if jobs is None else min(jobs, 1)
    if jobs is not None:
        return jobs
    if not cells:
        return 1
    needed = max(data.estimate_bytes(cell.settings) for cell in cells)
    memory = available_bytes()
    fitting = len(cells) if memory is None else int(0.8 * memory // needed)
    return max(1, min(cores(), fitting, len(cells)))


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    *,
    title: str = "cells",
    suffix: str = "",
    jobs: int | None = None,
    alone: bool = False,
    locations: dict[str, str] | None = None,
    show_progress: bool = True,
) -> Run:
    """Run the cells that the store does not have, and return the results of all.

    With jobs=0 they run one after another in this process. Ctrl-C ends the workers and raises
    `Interrupted`; finished cells are kept. If all cells fail for the same reason, the rest is
    skipped. `suffix` is shown after the time left.
    """
    run = Run()
    durations = Durations()
    waiting: deque[int] = deque()
    for number, cell in enumerate(cells):
        known = store.get(cell)
        if known is None:
            waiting.append(number)
        else:
            run.results[number] = known
            durations.add(cell, known.seconds)
    if not waiting:
        return run
    count = choose_jobs([cells[number] for number in waiting], alone, jobs)
    setup = worker.Setup(store, cores() // max(count, 1) or 1, dict(locations or {}))
    pool: Pool | InProcess = Pool(setup, min(count, len(waiting))) if count else InProcess(setup)
    with progress_bar(
        title, len(run.results), len(cells), *COLUMNS, show=show_progress, failed="", left=""
    ) as draw:
        try:
            while waiting or pool.busy:
                while waiting and pool.free:
                    number = waiting.popleft()
                    pool.start(number, cells[number])
                for number, seconds, problem in pool.finished():
                    cell = cells[number]
                    result = None if problem else store.get(cell)
                    if result is None:
                        reason = problem or "its result could not be read back"
                        run.failures.append((cell, reason))
                    else:
                        run.results[number] = result
                        durations.add(cell, seconds)
                if run.is_hopeless:
                    run.skipped = len(waiting) + len(pool.busy)
                    break
                left = durations.left([cells[n] for n in (*waiting, *pool.busy)], max(count, 1))
                left += suffix if left else ""
                failed = f"{len(run.failures)} failed" if run.failures else ""
                draw(len(run.results), failed=failed, left=left)
        except KeyboardInterrupt:
            raise Interrupted(f"{len(run.results)} of {len(cells)}") from None
        finally:
            pool.close()
    return run


class Durations:
    """Seconds of finished cells by `Cell.kinds`, and an estimate for the others."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)

    def add(self, cell: Cell, seconds: float) -> None:
        """Add a finished cell."""
        for kind in cell.kinds:
            self.seconds[kind].append(seconds)

    def left(self, cells: Sequence[Cell], jobs: int) -> str:
        """Write the estimated time for these, `jobs` at a time; empty while none has finished."""
        means = {kind: sum(each) / len(each) for kind, each in self.seconds.items()}
        if not means or not cells:
            return ""
        nearest = (next(means[kind] for kind in cell.kinds if kind in means) for cell in cells)
        total = int(sum(nearest) / min(jobs, len(cells)))
        return f"about {total // 3600}:{total // 60 % 60:02}:{total % 60:02} left"


# The index of a cell, its seconds, and the reason if it failed.
Finished = list[tuple[int, float, str]]


class InProcess:
    """Runs cells one after another in this process; the same methods as `Pool`."""

    def __init__(self, setup: worker.Setup) -> None:
        worker.configure(setup)
        self.store = setup.store
        self.busy: dict[int, Cell] = {}

    @property
    def free(self) -> bool:
        """Whether a cell can be started."""
        return not self.busy

    def start(self, number: int, cell: Cell) -> None:
        """Take a cell."""
        self.busy[number] = cell

    def finished(self) -> Finished:
        """Run the cell that was taken."""
        ((number, cell),) = self.busy.items()
        done = (number, *worker.run(cell, self.store))
        self.busy.clear()
        return [done]

    def close(self) -> None:
        """Do nothing."""


class Pool:
    """Runs cells in worker processes; if one dies, only its cell fails."""

    def __init__(self, setup: worker.Setup, jobs: int) -> None:
        self.setup, self.jobs = setup, jobs
        self.context = multiprocessing.get_context("spawn")
        self.idle = [self._worker() for _ in range(jobs)]
        self.busy: dict[int, tuple[Any, Any]] = {}
        self.started: dict[int, float] = {}

    @property
    def free(self) -> bool:
        """Whether a cell can be started."""
        return bool(self.idle)

    def start(self, number: int, cell: Cell) -> None:
        """Send a cell to a worker; replace one that died while idle."""
        process, pipe = self.idle.pop()
        try:
            pipe.send(cell)
        except OSError:
            pipe.close()
            process.join()
            process, pipe = self._worker()
            pipe.send(cell)
        self.busy[number] = process, pipe
        self.started[number] = time.perf_counter()

    def finished(self) -> Finished:
        """Return the finished cells; wait up to `POLL_SECONDS` for the first."""
        numbers = {pipe: number for number, (_, pipe) in self.busy.items()}
        found: Finished = []
        for ready in wait(list(numbers), POLL_SECONDS):
            number = numbers[ready]
            process, pipe = self.busy.pop(number)
            try:
                found.append((number, *pipe.recv()))
                self.idle.append((process, pipe))
            except (EOFError, OSError):
                process.join()
                seconds = time.perf_counter() - self.started[number]
                found.append((number, seconds, self._death(process)))
                self.idle.append(self._worker())
        return found

    def close(self) -> None:
        """End all workers, busy or not."""
        for process, pipe in (*self.idle, *self.busy.values()):
            pipe.close()
            process.terminate()
        for process, _ in (*self.idle, *self.busy.values()):
            process.join()

    def _worker(self) -> tuple[Any, Any]:
        here, there = self.context.Pipe()
        process = self.context.Process(target=worker.serve, args=(there, self.setup), daemon=True)
        process.start()
        there.close()
        return process, here

    def _death(self, process: Any) -> str:
        """Return how a process ended, and a remedy."""
        code = process.exitcode
        if code is None or code >= 0:
            return f"its process ended with code {code}; try --jobs 0 to see why"
        remedy = "try --jobs 1" if self.jobs > 1 else "it needs a machine with more"
        return f"its process was ended by signal {-code}; if memory is short, {remedy}"
