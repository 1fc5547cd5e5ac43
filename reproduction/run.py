"""Run cases: finished ones are not repeated, and a failure does not stop the others."""

import hashlib
import multiprocessing
import os
import threading
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import threadpoolctl
from rich.progress import TextColumn, TimeElapsedColumn, TimeRemainingColumn

from reproduction import data
from reproduction.experiment import Case, Result, Settings, canonical
from reproduction.store import Store, cores
from safecf.free_memory import available_bytes
from safecf.progress import progress_bar

GIVE_UP_AFTER = 3  # failures for the same reason without any success
SHOWN = 5  # reasons of failures that are listed
COLUMNS = (
    TextColumn("{task.completed:.0f}/{task.total:.0f} cases"),
    TextColumn("{task.fields[failed]}", style="red"),
    TimeElapsedColumn(),
    TimeRemainingColumn(),
)
_state: dict[str, Any] = {"threads": 0, "folder": None}  # of the process that runs cases


def threads() -> int:
    """Return how many threads the function of a case may use; 0 means all cores."""
    return int(_state["threads"])


def study(settings: Settings) -> Path | None:
    """Return the file of a search's finished trials; None outside of a run."""
    if _state["folder"] is None:
        return None
    _state["folder"].mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(canonical(settings).encode()).hexdigest()
    return Path(_state["folder"], f"{name}.sqlite")


@dataclass
class Run:
    """Results by the index of the case, and failed cases with reasons."""

    results: dict[int, Result] = field(default_factory=dict)
    failures: list[tuple[Case, str]] = field(default_factory=list)

    def report(self) -> list[str]:
        """Return a line for each reason of failures, with one of its cases."""
        counts = Counter(reason for _, reason in self.failures)
        examples = {reason: case for case, reason in reversed(self.failures)}
        return [
            f"failed: {reason}, in {count} of the cases, such as {examples[reason]}"
            for reason, count in counts.most_common(SHOWN)
        ]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C was pressed; the message is how many cases are finished."""


def run_cases(
    cases: Sequence[Case],
    store: Store,
    title: str = "cases",
    jobs: int | None = None,
    show_progress: bool = False,
) -> Run:
    """Run the cases that the store does not have, and return the results of all.

    Timed cases, and all with jobs=0, run one after another in this process. Ctrl-C ends the workers
    and raises `Interrupted`; finished cases are kept. If all cases fail for the same reason, the
    rest is skipped.
    """
    run = Run()
    alike: dict[str, list[int]] = {}  # cases that differ in label or part only
    for number, case in enumerate(cases):
        known = None if store.again else store.get(case)
        if known is None:
            alike.setdefault(case.key, []).append(number)
        else:
            run.results[number] = known
    waiting = [cases[numbers[0]] for numbers in alike.values()]
    if not waiting:
        return run
    count = 0 if store.alone else choose_jobs(waiting, jobs)
    setup = (cores() // count if count else 0, dict(data.LOCATIONS), store.folder)
    bar = progress_bar(title, len(run.results), len(cases), *COLUMNS, show=show_progress, failed="")
    with bar as draw:
        try:
            for done, problem in _finished(waiting, store, count, setup):
                for each in alike[done.key] if done else ():
                    result = None if problem else store.get(cases[each])
                    if result is None:
                        reason = problem or "its result could not be read back"
                        run.failures.append((cases[each], reason))
                    else:
                        run.results[each] = result
                reasons = {reason for _, reason in run.failures}
                if not run.results and len(run.failures) >= GIVE_UP_AFTER and len(reasons) == 1:
                    break
                failed = f"{len(run.failures)} failed" if run.failures else ""
                draw(len(run.results), failed=failed)
        except KeyboardInterrupt:
            raise Interrupted(f"{len(run.results)} of {len(cases)}") from None
    return run


def choose_jobs(cases: Sequence[Case], jobs: int | None = None) -> int:
    """Return how many cases run at a time: by default as cores and memory allow."""
    if jobs is not None:
        return jobs
    needed, memory = max(data.estimate_bytes(case.settings) for case in cases), available_bytes()
    fitting = len(cases) if memory is None else int(0.8 * memory // needed)
    return max(1, min(cores(), fitting, len(cases)))


def _execute(case: Case, store: Store) -> str:
    """Run a case and store its result; return the error or an empty text."""
    try:
        limit = None if store.alone else 1
        with warnings.catch_warnings(record=True) as caught, threadpoolctl.threadpool_limits(limit):
            warnings.simplefilter("always")
            record = case.run(case.settings)
        store.put(case, {**record, "warnings": sorted({str(each.message) for each in caught})})
    except Exception as problem:
        where = traceback.extract_tb(problem.__traceback__)[-1]
        place = f"{os.path.basename(where.filename)}, line {where.lineno}"
        return f"{type(problem).__name__}: {problem} ({place})"
    return ""


def _finished(
    waiting: Sequence[Case], store: Store, jobs: int, setup: tuple[int, dict[str, str], Path]
) -> Iterator[tuple[Case | None, str]]:
    """Run cases; yield each, and the reason if it failed, or None while a second passes.

    If a worker process dies, only its case fails.
    """
    if not jobs:
        _configure(*setup)
        for case in waiting:
            yield case, _execute(case, store)
        return
    from pebble import ProcessExpired, ProcessPool  # noqa: PLC0415 - not where it is not needed

    context = multiprocessing.get_context("spawn")
    pool = ProcessPool(jobs, initializer=_worker, initargs=setup, context=context)
    try:
        futures: dict[Future[str], Case] = {
            pool.submit(_execute, None, case, store): case for case in waiting
        }
        pending = set(futures)
        while pending:
            done, pending = wait(pending, 1, FIRST_COMPLETED)
            for each in done:
                try:
                    yield futures[each], each.result()
                except ProcessExpired as death:
                    yield futures[each], _death(death.exitcode or 0, jobs)
            yield None, ""
    finally:
        pool.stop()  # type: ignore[no-untyped-call]
        pool.join()


def _death(code: int, jobs: int) -> str:
    """Return how a process ended, and a remedy."""
    if code >= 0:
        return f"its process ended with code {code}; try --jobs 0 to see why"
    remedy = "try --jobs 1" if jobs > 1 else "it needs a machine with more"
    return f"its process was ended by signal {-code}; if memory is short, {remedy}"


def _configure(threads: int, locations: dict[str, str], folder: Path) -> None:
    _state.update(threads=threads, folder=folder)
    data.LOCATIONS.clear()
    data.LOCATIONS.update(locations)


def _worker(*setup: Any) -> None:
    """Prepare a worker, which ends when its parent ends, even by kill -9."""
    _configure(*setup)
    parent: Any = multiprocessing.parent_process()

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
