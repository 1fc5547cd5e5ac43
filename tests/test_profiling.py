"""The profile of an epoch: steps, functions of Python, functions of the native core."""

import os

import pytest

from benchmarks import profiling
from benchmarks.matrices import long_tailed
from benchmarks.peers import safer2
from safecf.als.solvers import SpectralCG
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.interactions import Interactions


@pytest.fixture
def rival():
    interactions = Interactions.from_csr(long_tailed(300, 120, 4000))
    return safer2("ml-20m", interactions, SpectralCG(), 16, CpuBackend(1))


def test_steps_are_those_of_the_records_and_the_longest_is_first(rival):
    steps = profiling.by_step(rival, 3)
    assert set(steps) == set(rival.records[-1].seconds)
    assert list(steps.values()) == sorted(steps.values(), reverse=True)


def test_the_sum_of_the_steps_leads_and_steps_have_their_floors():
    floor = {"products": 0.25, "users": 1.0, "total": 1.25}
    rows = profiling.with_floors({"users": 2.0, "rotate": 1.0, "losses": 0.5}, floor)
    assert rows == [
        ("all", 3.5, "floor 1.25"),
        ("users", 2.0, "floor 1.00"),
        ("rotate", 1.0, "floor 0.250"),
        ("losses", 0.5, "no floor"),
    ]


def test_python_functions_have_their_calls_per_epoch(rival):
    rows = profiling.by_python(rival.epoch, 2)
    calls = {name.split()[-1]: note for name, _, note in rows if name.startswith("native.py")}
    assert calls["solve_rows"] == "2 calls"
    assert len(rival.records) == 2


def test_without_perf_nothing_is_sampled(rival, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert profiling.by_native(rival.epoch, 2) == []
    assert rival.records == []


def test_a_perf_that_may_not_sample_is_as_none(rival, monkeypatch, tmp_path):
    (tmp_path / "perf").write_text("#!/bin/sh\nexit 255\n")
    (tmp_path / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
    assert profiling.by_native(rival.epoch, 2) == []


def test_the_report_of_perf_is_read():
    report = (
        "# Overhead\tShared Object\tSymbol\n\n"
        "    21.60%\t_core.so        \t[.] (anonymous namespace)::tile<(safecf::Write)0>  \t-\n"
        "     0.33%\t[kernel.kallsyms]\t[k] finish_task_switch\n"
    )
    assert profiling.parse(report) == [
        ("tile<(safecf::Write)0>", 21.6, "_core.so"),
        ("finish_task_switch", 0.33, "[kernel.kallsyms]"),
    ]


def test_bars_are_in_proportion():
    drawn = profiling.chart("Title", [("a", 4.0, "x"), ("b", 1.0, "y"), ("c", 0.0, "z")], 3)
    title, first, second = drawn.strip().splitlines()
    assert title == "Title"
    assert first.count("█") == profiling.WIDTH == 4 * second.count("█")


def test_a_solver_that_there_is_not():
    with pytest.raises(SystemExit, match="solvers spectral-cg, exact, cg, subspace"):
        profiling.main(solver="newton")
