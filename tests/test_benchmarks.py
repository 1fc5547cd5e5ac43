"""Pages are made of stored rows, benchmarks run at a small size, and their yardsticks hold."""

import json
import shutil
from pkgutil import resolve_name

import numpy as np
import pytest

from benchmarks import floors
from benchmarks.__main__ import ABOUT, NAMES
from benchmarks.floors import Limits, Work, epoch_work
from benchmarks.matrices import long_tailed
from benchmarks.peers import Safecf, flat, objective, paper
from benchmarks.sampled import check
from reproduction.command import load, main
from reproduction.experiment import RESULTS
from safecf.als.solvers import CG, Exact, SpectralCG, Subspace
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.interactions import Interactions

MATRIX = long_tailed(300, 120, 4000)
INTERACTIONS = Interactions.from_csr(MATRIX)
STORED = {("gpu", "agreement")}  # the tests of agreement measure it


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_what_its_template_makes_of_the_rows(name, tmp_path):
    shutil.copy(RESULTS / f"{name}.json", tmp_path)
    assert main(NAMES, ABOUT, [name, "--render", "--output", str(tmp_path)]) == 0
    assert (tmp_path / f"{name}.md").read_text() == (RESULTS / f"{name}.md").read_text()
    drawn = {file.name for file in tmp_path.glob("*.svg")}
    assert drawn == {f"{name}{suffix}.svg" for suffix in load(NAMES, name).figures}


@pytest.mark.parametrize("name", NAMES)
def test_every_part_can_be_planned(name):
    experiment = load(NAMES, name)
    cases = list(experiment.cases(experiment.options(device="cuda")))
    planned = {(name, case.part) for case in cases}
    assert planned == {(name, part) for part in experiment.parts or [""]} - STORED
    for case in cases:
        assert callable(resolve_name(f"benchmarks.{case.settings['measure']}"))


def run(name, tmp_path, *parts, scale="0.0005"):
    """Run parts at a small size; return their tables."""
    place = ["--output", str(tmp_path), "--cells", str(tmp_path / "cells"), "--quiet"]
    chosen = [word for part in parts for word in ("--part", part)]
    assert main(NAMES, ABOUT, [name, *chosen, "--scale", scale, "--threads", "1", *place]) == 0
    page = (tmp_path / f"{name}-part.md").read_text()
    assert "A smaller run" in page
    assert "nan" not in page
    stored = json.loads((tmp_path / f"{name}-part.json").read_text())["parts"]
    return {part: content["tables"] for part, content in stored.items()}


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch):
    for name in ("GEMM", "COPY", "GATHERED"):
        monkeypatch.setattr(floors, name, 2**8 if name == "GEMM" else 2**16)


def test_the_cpu_benchmark_runs_small(tmp_path):
    found = run("cpu", tmp_path, "ml-20m", "topk", "threads")
    rivals = [row for row in found["ml-20m"]["rivals"] if row["name"].startswith("safecf")]
    assert len(rivals) == 5
    assert all(min(row["floor"]["total"], row["seconds"]["median"]) > 0 for row in rivals)
    assert all(row["error_users"] < 0.02 for row in rivals if "subspace" not in row["name"])
    assert len(found["topk"]["single"]) == 4
    assert {row["factors"] for row in found["threads"]["cases"]} == {16, 48}


def test_the_gpu_benchmark_runs_small_on_a_cpu(tmp_path):
    pytest.importorskip("torch")
    found = run("gpu", tmp_path, "msd", "run")
    assert [row["name"] for row in found["msd"]["rivals"]] == [
        f"safecf {model}, spectral CG (0.001)" for model in ("SAFER2", "IALS")
    ]
    assert all(row.get("difference", 0) < 1e-3 for row in found["run"]["objectives"])


def test_the_evaluated_objective_is_that_of_training():
    model = flat(INTERACTIONS, 16, solver="exact")
    rival = Safecf(model, INTERACTIONS, CpuBackend(1))
    rival.epoch()
    value = objective(model, MATRIX, *rival.factors()) / np.count_nonzero(np.diff(MATRIX.indptr))
    assert value == pytest.approx(rival.records[-1].objective, rel=1e-5)


@pytest.mark.parametrize("solver", [Exact(), SpectralCG(1e-4), CG(40, 1e-5)])
def test_sampled_solves_agree_with_the_half_steps_of_safer2(solver):
    rival = Safecf(paper("ml-20m", 16), INTERACTIONS, CpuBackend(1), solver)
    rival.epoch()
    for side in check(rival, sample=40, solver=None if isinstance(solver, Exact) else solver):
        assert side.error < 1e-3
        assert side.steps is None if isinstance(solver, Exact) else 1 <= side.steps <= 40


def test_counted_work_is_that_of_the_cheaper_form():
    lengths, d = np.array([2, 100]), 8
    exact = epoch_work(lengths, lengths, d, Exact(), (1, 1))
    assert exact.passes[0] == pytest.approx(4 * 102 * d + 32 + 8 / 3 + 100 * d**2 + d**3 / 3)
    blocks = epoch_work(lengths, lengths, d, Subspace(8), (1, 1))
    assert blocks.passes[0] - exact.passes[0] == pytest.approx(2 * lengths.sum() * d)
    found = Work(10.0, (4.0, 1.0), (1.0, 6.0), 2).seconds(Limits(1, 2.0, 1.0), (1.0, 3.0))
    assert found == {"products": 5.0, "users": 2.0, "items": 2.0, "total": 9.0}
