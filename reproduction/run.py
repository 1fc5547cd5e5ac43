"""Run cases: finished ones are not repeated, and a failure does not stop the others."""

import multiprocessing
import os
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass, field

import threadpoolctl

from reproduction import data
from reproduction.experiment import Case, Result
from reproduction.store import Store, cores
from safecf.progress import epoch_bar

SHOWN = 5  # reasons of failures that are listed
_state = {"threads": 0}  # of the process that runs cases


def threads() -> int:
    """Return how many threads the function of a case may use; 0 means all cores."""
    return _state["threads"]


@dataclass
class Run:
    """Results by the index of the case, and failed cases with reasons."""

    results: dict[int, Result] = field(default_factory=dict)
    failures: list[tuple[Case, str]] = field(default_factory=list)

    def report(self) -> list[str]:
        """Return a line for each reason of failures, with one of its cases."""
        examples = {reason: case for case, reason in reversed(self.failures)}
        lines = [f"failed: {reason}, such as {case.key}" for reason, case in examples.items()]
        return lines[:SHOWN]


def run_cases(
    cases: Sequence[Case],
    store: Store,
    title: str = "cases",
    jobs: int | None = None,
    show_progress: bool = False,
) -> Run:
    """Run the cases that the store does not have, and return the results of all.

    By default as many run at a time as there are cores. Timed cases, and all with jobs=0, run one
    after another in this process. Ctrl-C ends the workers, and its message says how many cases
    are finished.
    """
    missing = [case for case in cases if store.again or store.get(case) is None]
    waiting = {case.key: case for case in missing}  # cases may differ in label or part only
    known, reasons = len(cases) - len(missing), dict[str, str]()
    count = min(cores(), len(waiting)) if jobs is None else jobs
    with epoch_bar(title, known, len(cases), show=show_progress) as draw:
        try:
            for case, reason in _finished(waiting, store, 0 if store.alone else count):
                known += not reason
                reasons |= {case.key: reason} if reason else {}
                draw(known, numbers=f"{len(reasons)} failed" if reasons else "")
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"{known} of {len(cases)}") from None
    run = Run()
    for number, case in enumerate(cases):
        result = None if case.key in reasons else store.get(case)
        if result is None:
            reason = reasons.get(case.key, "its result could not be read back")
            run.failures.append((case, reason))
        else:
            run.results[number] = result
    return run


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


def _finished(waiting: Mapping[str, Case], store: Store, jobs: int) -> Iterator[tuple[Case, str]]:
    """Run cases; yield each, and why it failed. If a worker process dies, only its case fails."""
    setup = (cores() // jobs if jobs else 0, dict(data.LOCATIONS))
    if not jobs or not waiting:
        _configure(*setup)
        for case in waiting.values():
            yield case, _execute(case, store)
        return
    from pebble import ProcessExpired, ProcessPool  # noqa: PLC0415 - not where it is not needed

    context = multiprocessing.get_context("spawn")
    pool = ProcessPool(jobs, initializer=_configure, initargs=setup, context=context)
    try:
        futures: dict[Future[str], Case] = {
            pool.submit(_execute, None, case, store): case for case in waiting.values()
        }
        for each in as_completed(futures):
            try:
                yield futures[each], each.result()
            except ProcessExpired as death:
                code = death.exitcode or 0
                how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
                remedy = "try --jobs 1 if memory is short, or --jobs 0 to see why"
                yield futures[each], f"its process {how}; {remedy}"
    finally:
        pool.stop()  # type: ignore[no-untyped-call]
        pool.join()


def _configure(threads: int, locations: Mapping[str, str]) -> None:
    _state["threads"] = threads
    data.LOCATIONS.update(locations)
