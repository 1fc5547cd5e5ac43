"""Running cells in this process and in workers: repeated runs, failures and interrupts."""

import os
import signal
import subprocess
import sys
import time

import pytest

from reproduction import runner, worker
from reproduction.base import Cell
from reproduction.runner import Durations, Interrupted, choose_jobs, run_cells
from reproduction.store import Store
from tests.reproduction import tasks


def cells_of(run, numbers, **more):
    return [Cell(run, {"number": number, **more}) for number in numbers]


def quietly(cells, folder, **options):
    return run_cells(cells, Store(folder), show_progress=False, **{"jobs": 0, **options})


def test_finished_cells_are_not_repeated(tmp_path):
    log = str(tmp_path / "log")
    first = quietly(cells_of(tasks.double, [1, 2], log=log), tmp_path / "cells")
    again = quietly(cells_of(tasks.double, [0, 1, 2, 3], log=log), tmp_path / "cells")
    assert [first.results[n].record["twice"] for n in range(2)] == [2, 4]
    assert [again.results[n].record["twice"] for n in range(4)] == [0, 2, 4, 6]
    assert (tmp_path / "log").read_text().split() == ["1", "2", "0", "3"]


def test_a_failing_cell_does_not_stop_the_others(tmp_path):
    run = quietly(cells_of(tasks.fail_on_two, [1, 2, 3]), tmp_path)
    assert sorted(run.results) == [0, 2]
    [(cell, reason)] = run.failures
    assert cell.settings == {"number": 2}
    assert "ValueError: two is too many (tasks.py, line" in reason
    assert '{"number":2}' in str(cell)


def test_if_all_fail_for_the_same_reason_the_rest_is_skipped(tmp_path):
    log = str(tmp_path / "log")
    run = quietly(cells_of(tasks.fail, range(10), log=log), tmp_path / "cells")
    assert len(run.failures) == runner.GIVE_UP_AFTER
    assert run.skipped == 10 - runner.GIVE_UP_AFTER
    quietly(cells_of(tasks.double, [1], log=log), tmp_path / "cells")
    cells = cells_of(tasks.fail, range(10), log=log) + cells_of(tasks.double, [1], log=log)
    run = quietly(cells, tmp_path / "cells")  # one has succeeded before
    assert (len(run.failures), run.skipped) == (10, 0)


def test_an_interrupt_keeps_what_is_finished(tmp_path):
    cells = cells_of(tasks.interrupt_on_two, [0, 1, 2, 3])
    with pytest.raises(Interrupted, match="2 of 4"):
        quietly(cells, tmp_path)
    store = Store(tmp_path)
    assert [store.get(cell) is not None for cell in cells] == [True, True, False, False]


def test_a_worker_that_dies_takes_only_its_cell_with_it(tmp_path):
    run = quietly(cells_of(tasks.die_on_two, [1, 2, 3, 4]), tmp_path, jobs=2)
    assert [run.results[n].record["twice"] for n in sorted(run.results)] == [2, 6, 8]
    [(cell, reason)] = run.failures
    assert cell.settings["number"] == 2
    assert f"signal {signal.SIGKILL}" in reason
    assert "--jobs 1" in reason


def test_a_worker_that_died_while_idle_is_replaced(tmp_path):
    setup = worker.Setup(Store(tmp_path), 1)
    cell = Cell(tasks.double, {"number": 1})
    setup.store.get(cell)
    pool = runner.Pool(setup, 1)
    try:
        [(process, _)] = pool.idle
        process.kill()
        process.join()
        pool.start(0, cell)
        finished = []
        wait_for(lambda: finished.extend(pool.finished()) or finished)
    finally:
        pool.close()
    [(number, _, problem)] = finished
    assert (number, problem) == (0, "")
    assert setup.store.get(cell).record["twice"] == 2


def test_one_job_is_not_advised_to_try_one_job(tmp_path):
    run = quietly(cells_of(tasks.die_on_two, [2]), tmp_path, jobs=1)
    [(_, reason)] = run.failures
    assert f"signal {signal.SIGKILL}" in reason
    assert "--jobs" not in reason


@pytest.mark.parametrize("jobs", [0, 1])
def test_a_worker_with_other_code_stores_nothing(tmp_path, jobs):
    store, cells = Store(tmp_path), cells_of(tasks.double, [1, 2])
    store.versions[tasks.double] = "what it was"  # when the run began
    run = run_cells(cells, store, jobs=jobs, show_progress=False)
    assert not run.results
    assert {reason for _, reason in run.failures} == {worker.CHANGED}
    assert not list(tmp_path.iterdir())


def test_a_killed_run_leaves_its_cells_and_no_workers(tmp_path):
    code = (
        "from tests.reproduction.test_runner import *\n"
        "if __name__ == '__main__':\n"
        f"    cells = cells_of(tasks.slow_from_two_on, [0, 1, 2, 3])\n"
        f"    quietly(cells, {str(tmp_path)!r}, jobs=2)\n"
    )
    script = tmp_path / "killed.py"
    script.write_text(code)
    there = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    run = subprocess.Popen([sys.executable, str(script)], env=there, start_new_session=True)
    try:
        wait_for(lambda: len(list(tmp_path.glob("*.json"))) == 2)
        run.kill()
        run.wait()
        wait_for(lambda: not members(run.pid))
    finally:
        if members(run.pid):
            os.killpg(run.pid, signal.SIGKILL)
    cells = cells_of(tasks.slow_from_two_on, [0, 1])
    found = quietly(cells, tmp_path)
    assert [found.results[n].record["twice"] for n in range(2)] == [0, 2]


def wait_for(condition):
    """Wait up to a minute, which a busy machine may need."""
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail("the condition was not met within a minute")


def members(group):
    """Return the processes of a group that are alive."""
    shown = subprocess.run(
        ["ps", "-e", "-o", "pgid=,pid=,stat="], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in shown.stdout.splitlines()]
    return [pid for pgid, pid, state in rows if int(pgid) == group and state[0] != "Z"]


def test_jobs_fit_into_memory(monkeypatch):
    cells = [Cell(tasks.double, {"data": "msd", "options": {"factors": 512}})] * 8
    monkeypatch.setattr(runner, "cores", lambda: 4)
    for free, expected in ((2**50, 4), (20 * 2**30, 2), (2**20, 1), (None, 4)):
        monkeypatch.setattr(runner, "available_bytes", lambda free=free: free)
        assert choose_jobs(cells, alone=False) == expected
    assert choose_jobs(cells, alone=True) == 1
    assert choose_jobs(cells, alone=True, jobs=2) == 1
    assert choose_jobs(cells, alone=True, jobs=0) == 0
    assert choose_jobs(cells, alone=False, jobs=7) == 7
    assert choose_jobs(cells[:2], alone=False) == 2


def test_time_left_is_estimated_by_kind():
    durations, (one, *_) = Durations(), cells_of(tasks.double, [1])
    slow, fast = (Cell(tasks.double, {"model": name, "seed": 0}) for name in ("slow", "fast"))
    assert durations.left([one], 1) == ""
    durations.add(slow, 100.0)
    durations.add(fast, 10.0)
    later = [Cell(tasks.double, {"model": "slow", "seed": seed}) for seed in (1, 2)]
    assert durations.left(later, 1) == "about 0:03:20 left"
    assert durations.left(later, 2) == "about 0:01:40 left"
    assert durations.left([one], 2) == "about 0:00:55 left"


def test_time_left_uses_the_closest_kind():
    def cell(factors, ridge=1.0, model="SAFER2"):
        options = {"factors": factors, "iterations": 5, "regularization": ridge}
        return Cell(tasks.double, {"model": model, "options": options})

    durations = Durations()
    for factors, seconds in ((32, 10.0), (1024, 90.0)):
        durations.add(cell(factors), seconds)
    assert durations.left([cell(1024, ridge=2.0)], 1) == "about 0:01:30 left"
    assert durations.left([cell(64)], 1) == "about 0:00:50 left"
    durations.add(cell(32, model="IALS"), 200.0)
    assert durations.left([cell(64)], 1) == "about 0:00:50 left"
    assert durations.left([cell(64, model="EASE")], 1) == "about 0:01:40 left"
