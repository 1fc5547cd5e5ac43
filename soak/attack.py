"""`attack`: a promise and the function that tries to break it; `try_cases` runs it in processes."""

import math
import multiprocessing
import resource
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

Case = Callable[[np.random.Generator], str]

SECONDS = 60.0  # for one case
GRACE = 5.0  # seconds after these until its process is killed
MEMORY = 8 << 30  # bytes of address space that a process may ask for beyond what it has
KEPT_FAILURES = 20


@dataclass(frozen=True)
class Attack:
    """A promise, the function that tries one case, and the number of cases of a whole run."""

    promise: str
    cases: int
    case: Case
    seconds: float = SECONDS
    memory: int | None = MEMORY

    @property
    def name(self) -> str:
        """Name of the function, with hyphens."""
        return self.case.__name__.replace("_", "-")

    def outcome(self, number: int, seed: int = 0) -> str:
        """Try the case of this number; raise if it breaks the promise."""
        with _time_limit(self.seconds):
            return self.case(np.random.default_rng([seed, number]))


def attack(
    promise: str, *, cases: int, seconds: float = SECONDS, memory: int | None = MEMORY
) -> Callable[[Case], Attack]:
    """Make an attack of a function that tries one case."""
    return lambda case: Attack(promise, cases, case, seconds, memory)


@dataclass
class Result:
    """How many cases ended in each outcome, and the cases that broke the promise."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: dict[int, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def cases(self) -> int:
        """Number of cases that were tried."""
        return sum(self.outcomes.values()) + len(self.failures)

    def add(self, number: int, outcome: str, *, failed: bool) -> None:
        """Count a case."""
        if failed:
            self.failures[number] = outcome
        else:
            self.outcomes[outcome] += 1


def try_cases(
    attack: Attack,
    numbers: Iterable[int],
    seed: int = 0,
    jobs: int = 1,
    progress: Callable[[Result], Any] = lambda result: None,
) -> Result:
    """Try the cases of these numbers, in `jobs` processes.

    A process that dies fails its case, and another one takes up the next. One that hangs in native
    code is killed. It ends early after KEPT_FAILURES failures.
    """
    begin = time.perf_counter()
    result, waiting = Result(), iter(numbers)
    working: dict[Connection, _Worker] = {}
    for _ in range(jobs):
        _hand_out(working, _Worker(attack, seed), waiting)
    while working and len(result.failures) < KEPT_FAILURES:
        for pipe in wait(list(working), timeout=1):
            worker = working.pop(pipe)  # type: ignore[call-overload]
            number = worker.number
            try:
                failed, outcome = worker.pipe.recv()
            except EOFError:
                worker.process.join()
                failed, outcome = True, f"the process died with {worker.process.exitcode}"
                worker = _Worker(attack, seed)
            result.add(number, outcome, failed=failed)
            result.seconds = time.perf_counter() - begin
            progress(result)
            _hand_out(working, worker, waiting)
        for worker in working.values():
            if time.monotonic() > worker.deadline:
                worker.process.kill()
    for worker in working.values():
        worker.end()
    return result


class _Worker:
    """A process that tries the cases it is given."""

    def __init__(self, attack: Attack, seed: int) -> None:
        self.pipe, there = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        self.process = context.Process(target=_work, args=(attack, seed, there, self.pipe))
        self.process.start()
        there.close()
        self.seconds = attack.seconds
        self.number = -1
        self.deadline = math.inf

    def end(self) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join()


def _hand_out(working: dict[Connection, _Worker], worker: _Worker, waiting: Iterator[int]) -> None:
    number = next(waiting, None)
    if number is None:
        worker.end()
        return
    worker.number = number
    worker.deadline = time.monotonic() + worker.seconds + GRACE
    worker.pipe.send(number)
    working[worker.pipe] = worker


def _work(attack: Attack, seed: int, pipe: Connection, other_end: Connection) -> None:
    other_end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if attack.memory is not None:
        limit = _address_space() + attack.memory
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    while True:
        try:
            number = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((False, attack.outcome(number, seed)))
        except Exception:
            pipe.send((True, traceback.format_exc()))


def _address_space() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after so many seconds; native code first has to return."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"the case takes longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
