"""Run cells side by side: what is finished is not repeated, what fails does not stop the others."""

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

SECONDS_BETWEEN_LOOKS = 1.0
IN_VAIN = 3  # failures for one reason, and no success, after which the others are not tried

COLUMNS = (
    TextColumn("{task.completed:.0f}/{task.total:.0f} cells"),
    TextColumn("{task.fields[failed]}", style="red"),
    TimeElapsedColumn(),
    TextColumn("{task.fields[left]}"),
)


@dataclass
class Run:
    """How it went: the results that there are, and the cells that failed, with the reasons."""

    results: dict[int, Result] = field(default_factory=dict)
    failures: list[tuple[Cell, str]] = field(default_factory=list)
    untried: int = 0

    @property
    def is_in_vain(self) -> bool:
        """Whether nothing succeeds, all for the same reason."""
        reasons = {reason for _, reason in self.failures}
        return not self.results and len(self.failures) >= IN_VAIN and len(reasons) == 1


class Interrupted(KeyboardInterrupt):
    """Ctrl-C was pressed; says how many cells are kept."""


def choose_jobs(cells: Sequence[Cell], alone: bool, jobs: int | None = None) -> int:
    """Return how many cells run at a time: as many as there are cores, and memory for.

    What runs `alone` does so, even if more jobs are asked for.
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
    what: str = "",
    jobs: int | None = None,
    alone: bool = False,
    locations: dict[str, str] | None = None,
    show_progress: bool = True,
) -> Run:
    """Run the cells that the store does not have, and return the results of all.

    With jobs=0 they run one after another in this process. Ctrl-C ends the workers and raises
    `Interrupted`; what was finished by then is kept. When all that is tried fails for one reason,
    the rest is left. `what` is said after the time left: of what it is.
    """
    run = Run()
    pace = Pace()
    waiting: deque[int] = deque()
    for number, cell in enumerate(cells):
        known = store.get(cell)
        if known is None:
            waiting.append(number)
        else:
            run.results[number] = known
            pace.saw(cell, known.seconds)
    if not waiting:
        return run
    count = choose_jobs([cells[number] for number in waiting], alone, jobs)
    setup = worker.Setup(store, cores() // max(count, 1) or 1, dict(locations or {}))
    pool: Pool | Here = Pool(setup, min(count, len(waiting))) if count else Here(setup)
    with progress_bar(
        title, len(run.results), len(cells), *COLUMNS, show=show_progress, failed="", left=""
    ) as draw:
        try:
            while waiting or pool.busy:
                while waiting and pool.free:
                    number = waiting.popleft()
                    pool.start(number, cells[number])
                for number, seconds, problem in pool.ended():
                    cell = cells[number]
                    result = None if problem else store.get(cell)
                    if result is None:
                        reason = problem or "its result could not be read back"
                        run.failures.append((cell, reason))
                    else:
                        run.results[number] = result
                        pace.saw(cell, seconds)
                if run.is_in_vain:
                    run.untried = len(waiting) + len(pool.busy)
                    break
                left = pace.left([cells[n] for n in (*waiting, *pool.busy)], max(count, 1))
                left += what if left else ""
                failed = f"{len(run.failures)} failed" if run.failures else ""
                draw(len(run.results), failed=failed, left=left)
        except KeyboardInterrupt:
            raise Interrupted(f"{len(run.results)} of {len(cells)}") from None
        finally:
            pool.close()
    return run


class Pace:
    """How long cells take, by what they have in common, and so how long the rest will."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)

    def saw(self, cell: Cell, seconds: float) -> None:
        """Remember how long a cell took."""
        for kind in cell.kinds:
            self.seconds[kind].append(seconds)

    def left(self, cells: Sequence[Cell], jobs: int) -> str:
        """Say how long these will take, `jobs` at a time; nothing while no cell has ended."""
        means = {kind: sum(each) / len(each) for kind, each in self.seconds.items()}
        if not means or not cells:
            return ""
        nearest = (next(means[kind] for kind in cell.kinds if kind in means) for cell in cells)
        total = int(sum(nearest) / min(jobs, len(cells)))
        return f"about {total // 3600}:{total // 60 % 60:02}:{total % 60:02} left"


Ended = list[tuple[int, float, str]]


class Here:
    """Cells one after another, in this process."""

    def __init__(self, setup: worker.Setup) -> None:
        worker.begin(setup)
        self.store = setup.store
        self.busy: dict[int, Cell] = {}

    @property
    def free(self) -> bool:
        """Whether a cell can be started."""
        return not self.busy

    def start(self, number: int, cell: Cell) -> None:
        """Take a cell."""
        self.busy[number] = cell

    def ended(self) -> Ended:
        """Run the cell that was taken."""
        ((number, cell),) = self.busy.items()
        ended = (number, *worker.run(cell, self.store))
        self.busy.clear()
        return [ended]

    def close(self) -> None:
        """Nothing is left to end."""


class Pool:
    """Cells in processes of their own; one that dies takes only its own cell with it."""

    def __init__(self, setup: worker.Setup, jobs: int) -> None:
        self.setup, self.jobs = setup, jobs
        self.context = multiprocessing.get_context("spawn")
        self.idle = [self._worker() for _ in range(jobs)]
        self.busy: dict[int, tuple[Any, Any]] = {}
        self.began: dict[int, float] = {}

    @property
    def free(self) -> bool:
        """Whether a cell can be started."""
        return bool(self.idle)

    def start(self, number: int, cell: Cell) -> None:
        """Give a cell to a worker, or to a new one if that has died while it was idle."""
        process, pipe = self.idle.pop()
        try:
            pipe.send(cell)
        except OSError:
            pipe.close()
            process.join()
            process, pipe = self._worker()
            pipe.send(cell)
        self.busy[number] = process, pipe
        self.began[number] = time.perf_counter()

    def ended(self) -> Ended:
        """Return the cells that have ended, after a moment if there are none."""
        numbers = {pipe: number for number, (_, pipe) in self.busy.items()}
        found: Ended = []
        for ready in wait(list(numbers), SECONDS_BETWEEN_LOOKS):
            number = numbers[ready]
            process, pipe = self.busy.pop(number)
            try:
                found.append((number, *pipe.recv()))
                self.idle.append((process, pipe))
            except (EOFError, OSError):
                process.join()
                seconds = time.perf_counter() - self.began[number]
                found.append((number, seconds, self._died(process)))
                self.idle.append(self._worker())
        return found

    def close(self) -> None:
        """End all workers, whatever they do."""
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

    def _died(self, process: Any) -> str:
        """Say how a process ended, and what to try."""
        code = process.exitcode
        if code is None or code >= 0:
            return f"its process ended with code {code}; try --jobs 0 to see why"
        remedy = "try --jobs 1" if self.jobs > 1 else "it needs a machine with more"
        return f"its process was ended by signal {-code}; if memory is short, {remedy}"
