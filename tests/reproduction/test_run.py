"""Cases: run once, in this process or in others; what failures, kills and damage do."""

import multiprocessing
import signal

import numpy as np
import pytest

from reproduction import run, store
from reproduction.run import run_cases
from reproduction.store import Store
from tests.reproduction import cases
from tests.reproduction.cases import LAST


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(run, "cores", lambda: 2)


@pytest.mark.parametrize("jobs", [0, 2])
def test_every_case_runs_once(tmp_path, jobs):
    """Also in a second run, and where cases differ in their label alone."""
    wanted = cases.cases(log=str(tmp_path / "log"))
    wanted += [case._replace(label="again") for case in wanted]
    for _ in range(2):
        found = run_cases(wanted, Store(tmp_path / "cells"), jobs=jobs)
        assert not found.failures
        assert [found.results[n].case for n in range(len(wanted))] == wanted
        assert [found.results[n].record["rows"][0]["twice"] for n in range(LAST)] == [0, 2, 4, 6, 8]
    assert sorted((tmp_path / "log").read_text().split()) == [str(n) for n in range(LAST)]


def test_a_record_is_read_back_with_its_origin(tmp_path):
    case = cases.cases()[3]
    result = run_cases([case], Store(tmp_path), jobs=0).results[0]
    np.testing.assert_allclose(result.record["scores"], np.linspace(0, 1, 7), rtol=1e-7)
    assert result.made["commit"] == store.commit()


@pytest.mark.parametrize("jobs", [0, 2])
def test_a_failure_leaves_the_others(tmp_path, jobs):
    found = run_cases(cases.cases(cases.fail_on_two), Store(tmp_path), jobs=jobs)
    ((case, reason),) = found.failures
    assert case.settings["number"] == 2
    assert "there are no data" in reason
    assert "cases.py" in reason
    assert sorted(found.results) == [0, 1, 3, 4]
    (line,) = found.report()
    assert reason in line


def test_a_killed_worker_fails_its_case_alone(tmp_path):
    found = run_cases(cases.cases(cases.die_on_two), Store(tmp_path), jobs=2)
    ((case, reason),) = found.failures
    assert case.settings["number"] == 2
    assert f"signal {signal.SIGKILL}" in reason
    assert sorted(found.results) == [0, 1, 3, 4]


def test_what_was_finished_before_ctrl_c_is_kept(tmp_path):
    log = tmp_path / "log"
    with pytest.raises(KeyboardInterrupt, match=f"2 of {LAST}"):
        run_cases(cases.cases(cases.interrupt_on_two, log=str(log)), Store(tmp_path / "c"), jobs=0)
    wanted = cases.cases(cases.interrupt_on_two, log=str(log))[:2]
    assert len(run_cases(wanted, Store(tmp_path / "c"), jobs=0).results) == 2
    assert log.read_text().split() == ["0", "1"]


def test_a_file_that_was_cut_off_runs_its_case_again(tmp_path):
    cell, log = tmp_path / "cells", tmp_path / "log"
    wanted = cases.cases(log=str(log))[3:4]
    run_cases(wanted, Store(cell), jobs=0)
    (file,) = cell.iterdir()
    whole = file.read_bytes()
    for at in range(0, len(whole), 17):
        file.write_bytes(whole[:at])
        assert Store(cell).get(wanted[0]) is None
    assert run_cases(wanted, Store(cell), jobs=0).results[0].record["rows"][0]["twice"] == 6
    assert len(log.read_text().split()) == 2


def test_other_settings_data_and_machines_are_other_cases(tmp_path, monkeypatch):
    one, two = (
        case._replace(settings={**case.settings, "data": "x"}) for case in cases.cases()[:2]
    )
    plain, timed = Store(tmp_path, {"x": "1"}), Store(tmp_path, {"x": "1"}, alone=True)
    found = {plain.path(one), plain.path(two), timed.path(one), Store(tmp_path).path(one)}
    monkeypatch.setattr(store, "made", lambda: {"machine": "another", "commit": "1234567"})
    found.add(timed.path(one))
    assert len(found) == 5
    assert plain.path(one._replace(label="other", part="other")) in found


def test_again_runs_finished_cases(tmp_path):
    wanted = cases.cases(log=str(tmp_path / "log"))
    for again in (False, True):
        run_cases(wanted, Store(tmp_path / "cells", again=again), jobs=0)
    assert len((tmp_path / "log").read_text().split()) == 2 * LAST


def test_timed_cases_stay_in_this_process(tmp_path):
    before = multiprocessing.active_children()
    found = run_cases(cases.cases(), Store(tmp_path, alone=True), jobs=4)
    assert len(found.results) == LAST
    assert multiprocessing.active_children() == before
