"""The benchmarks of GPUs and of threads, each part, small and on the CPU."""

import json

import numpy as np
import pytest

from benchmarks import floors, precision, records, threads
from benchmarks.floors import epoch_work
from benchmarks.matrices import long_tailed
from benchmarks.parts import Part, Parts, sections
from benchmarks.peers import Watched
from benchmarks.records import Options
from safecf.als.solvers import Exact, SpectralCG, Subspace
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.interactions import Interactions
from safecf.data.splits.log import Log
from tests.long import LONG

TINY = Options(0.0005, threads=1, repeats=2)
MATRIX = long_tailed(300, 120, 4000)
RECOMMEND = "`model.recommend_all`"
INTERACTIONS = Interactions.from_csr(MATRIX)


def small_data(monkeypatch):
    """Give the parts on MovieLens-1M a small data set."""
    split = Log.of_matrix(MATRIX).strong_generalization(heldout=40, seed=0)
    monkeypatch.setattr(precision.datasets, "paper_split", lambda name: split)
    monkeypatch.setattr(precision, "SETS", {"iALS, d = 32": ("paper", "iALS")})


@pytest.fixture
def parts(monkeypatch):
    pytest.importorskip("torch")
    from benchmarks.gpu import gpu  # noqa: PLC0415 - needs PyTorch

    small_data(monkeypatch)
    return gpu().parts


@pytest.mark.parametrize(
    "name",
    ["ml-20m", "msd", "run", "topk", pytest.param("agreement", marks=LONG), "precision"],
)
def test_every_part_of_the_gpu_is_measured_and_written(parts, name):
    found = json.loads(json.dumps(parts[name].measure(TINY)))
    text = "\n\n".join(parts[name].section(found, TINY))
    assert "| --- |" in text
    assert "| nan" not in text
    assert not found.get("failure")


def test_epochs_have_times_errors_and_floors(parts):
    found = parts["ml-20m"].measure(TINY)
    names = [each["name"] for each in found["rivals"]]
    assert [name.split(", ")[1] for name in names] == [
        "spectral CG (0.001)",
        "spectral CG (0.001)",
        "exact",
        "CG (at most 5 steps)",
        "subspace (blocks of 64)",
    ]
    for each in found["rivals"]:
        assert each["floor"]["seconds"]["total"] > 0
        assert each["parts"]["users"] > 0
        assert all(error < 0.02 for error in each["errors"])
    assert len(found["rivals"][0]["seconds"]) == TINY.repeats
    assert len(found["cpu"]) == 1


@pytest.mark.parametrize(
    ("name", "change", "text"),
    [
        ("ml-20m", lambda found, by: found["rivals"][0].update(seconds=[0.015 * by]), "median: "),
        ("run", lambda found, by: found.update(epochs=[2 * by, 2 * by]), "for the epochs: "),
        (
            "topk",
            lambda found, by: found["seconds"].update({RECOMMEND: [5 * by]}),
            "`: ",
        ),
    ],
)
def test_a_page_says_whether_a_goal_is_met(parts, name, change, text):
    found = parts[name].measure(TINY)
    for by, result in ((1, "met"), (1.01, "not met")):
        change(found, by)
        about = parts[name].section(found, TINY)[0]
        assert f"{text}{result}" in about


def test_the_fit_has_the_objectives_of_the_cpu(parts):
    found = parts["run"].measure(TINY)
    np.testing.assert_allclose(found["objectives"][: len(found["cpu"])], found["cpu"], rtol=1e-3)
    assert sum(found["epochs"]) < found["fit"]


def test_an_error_beyond_its_bound_is_a_failure(monkeypatch):
    pytest.importorskip("torch")
    from benchmarks import agreement  # noqa: PLC0415 - needs PyTorch

    monkeypatch.setattr(agreement, "CLOSE", 0.0)
    monkeypatch.setattr(agreement, "_trainings", lambda widths: [])
    found = agreement.measure(TINY)
    assert found["failure"]
    text = "\n".join(agreement.section(found, TINY))
    assert "beyond their bounds" in text
    assert "| gram | **" in text


def test_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "KEPT", tmp_path)
    for size in ("GEMM", "COPY", "GATHERED"):
        monkeypatch.setattr(floors, size, 2**9 if size == "GEMM" else 2**20)
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda process: {0, 1})
    found = json.loads(json.dumps(threads.measure(TINY)))
    case = [(each["shape"], each["threads"]) for each in found["cases"]]
    assert case == [("ml-20m", 1), ("ml-20m", 2), ("msd", 2), ("msd", 2)]
    text = "\n\n".join(threads.section(found, TINY))
    assert "| ml-20m | 16 | 2 |" in text
    assert "Goals per epoch: 0.200 s (ml-20m, d = 256, 16 threads), not measured; 1.20 s" in text
    assert "](cpu-threads.svg)" in text
    assert (TINY.pages / "cpu-threads.svg").exists()
    found["cases"][1] |= {"factors": 256, "threads": 16, "seconds": [0.19, 0.2, 0.3]}
    found["cases"][3] |= {"factors": 2048, "threads": 16, "seconds": [7.1]}
    text = "\n\n".join(threads.section(found, TINY))
    assert "0.200 s (ml-20m, d = 256, 16 threads), met; 1.20 s" in text
    assert "7.00 s (msd, d = 2048, 16 threads), not met." in text


def test_a_verb_waits_for_the_device():
    waited, watched = [], Watched(CpuBackend(1))
    watched.zeros(2, 3)
    assert waited == []
    watched.wait = lambda: waited.append(1)
    assert watched.zeros(2, 3).shape == (2, 3)
    assert watched.name == "cpu"
    assert waited == [1]


def test_the_floor_of_a_device_is_products_eigenvectors_and_gathers():
    pytest.importorskip("torch")
    from benchmarks.devices import DeviceLimits, device_floor  # noqa: PLC0415 - needs PyTorch

    d, lengths = 8, [np.diff(side.indptr) for side in (INTERACTIONS.users, INTERACTIONS.items)]
    slow_copy = DeviceLimits(float32=1e30, tf32=2.0, copy=4.0)
    found = device_floor(INTERACTIONS, d, SpectralCG(), slow_copy, 3.0, None)["seconds"]
    assert found["eigh"] == 6
    assert found["users"] == found["items"] == 2 * MATRIX.nnz * d / 4
    assert found["products"] == pytest.approx(5 * sum(MATRIX.shape) * d**2 / 2)
    assert found["total"] == sum(found[part] for part in ("products", "eigh", "users", "items"))
    exact = device_floor(INTERACTIONS, d, Exact(), DeviceLimits(4.0, 2.0, 1e30), 3.0, None)
    assert exact["seconds"]["users"] == epoch_work(*lengths, d, Exact(), (1, 1)).passes[0] / 4
    blocks = device_floor(INTERACTIONS, d, Subspace(4), slow_copy, 3.0, None)
    assert blocks["seconds"]["eigh"] == 0


def page_of(folder, monkeypatch, **measures):
    monkeypatch.setattr(records, "KEPT", folder)
    parts = {
        name: Part(name.title(), measure, lambda results, options: [f"value {results['value']}"])
        for name, measure in measures.items()
    }
    return Parts("tried", "A page", ["About it."], parts)


def fails(options):
    raise RuntimeError("no such device")


def test_a_part_that_fails_does_not_keep_others_from_being_measured(tmp_path, monkeypatch, capsys):
    page = page_of(tmp_path, monkeypatch, first=fails, second=lambda options: {"value": 7})
    with pytest.raises(SystemExit, match="failed: first"):
        page.run(None, TINY, lambda: {"torch": "2.9"})
    assert "no such device" in capsys.readouterr().err
    written = sections(TINY.pages / "tried.md")
    assert written["First"] == "Not measured yet: `python -m benchmarks tried --part first`."
    assert written["Second"].endswith("Beside torch 2.9.\n\nvalue 7")


def test_sections_of_which_nothing_is_kept_stay(tmp_path, monkeypatch):
    page = page_of(tmp_path, monkeypatch, first=fails, second=lambda options: {"value": 7})
    TINY.pages.mkdir(parents=True)
    (TINY.pages / "tried.md").write_text("# A page\n\n## First\n\nOf another day.\n\n| a |\n")
    page.run(["second"], TINY, dict)
    assert sections(TINY.pages / "tried.md")["First"] == "Of another day.\n\n| a |"


def test_an_unknown_part(tmp_path, monkeypatch):
    page = page_of(tmp_path, monkeypatch, first=fails)
    with pytest.raises(SystemExit, match=r"no part \['third'\]: try first or page"):
        page.run(["third"], TINY, dict)
