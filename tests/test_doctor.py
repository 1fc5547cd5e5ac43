"""The doctor: what it finds, what it says of what does not work, and what data needs."""

import sys

import pytest

from benchmarks.memory import expected_bytes
from safecf import SAFER2, datasets, doctor
from safecf.backends import thread_count


def test_all_checks_of_the_self_test_pass():
    found = list(doctor.self_test())
    assert len(found) >= 5
    assert all(each.works for each in found)
    assert all(each.found.endswith(" s") for each in found)


def test_the_self_test_finds_wrong_results(monkeypatch):
    fit = SAFER2.fit

    def wrong(self, *arguments, **options):
        fit(self, *arguments, **options)
        if self.backend == "numpy":
            self.item_factors = self.item_factors / 1.01
        if self.num_threads == 1:
            self.item_factors = self.item_factors[::-1].copy()
        return self

    monkeypatch.setattr(SAFER2, "fit", wrong)
    found = {each.name: each for each in doctor.self_test()}
    assert found["the same as the float64 twin"].works is False
    assert "the scores differ by 1.0e-02" in found["the same as the float64 twin"].found
    assert found["the same bits on one thread"].works is False
    assert found["save and load"].works


def test_an_error_does_not_end_the_examination(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("illegal instruction")

    monkeypatch.setattr(SAFER2, "fit", fail)
    found = list(doctor.self_test())
    assert found[0] == doctor.Finding("train SAFER2", "RuntimeError: illegal instruction", False)
    assert not any(each.works for each in found)


@pytest.mark.parametrize(
    ("code", "works", "said"),
    [
        ("print('fine', 1)", True, "fine 1"),
        ("import no_such_module", None, "no_such_module is not installed; try pip install"),
        ("raise ImportError('a library is missing')", False, "a library is missing (exit code 1)"),
        ("import os; os.abort()", False, "exit code -6"),
    ],
)
def test_extras_are_imported_in_their_own_process(code, works, said):
    found = doctor._extra("torch", code)
    assert found.works is works
    assert said in found.found


def test_packages_that_are_no_extra_have_their_own_remedy():
    assert "faiss" in doctor.EXTRAS
    code = "import no_such_module"
    assert doctor._extra("faiss", code).found.endswith("; try pip install faiss-cpu")
    assert doctor._extra("spark", code).found.endswith("; try pip install 'safecf[spark]'")


def test_programs_that_fail_or_hang_are_found(monkeypatch):
    monkeypatch.setattr(doctor, "PROBE_SECONDS", 0.2)
    programs = {
        "there": [sys.executable, "-V"],
        "failing": [sys.executable, "-c", "print('no driver'); raise SystemExit(9)"],
        "hanging": [sys.executable, "-c", "import time; time.sleep(60)"],
        "none": ["no-such-program"],
    }
    monkeypatch.setattr(doctor, "PROGRAMS", programs)
    found = {each.name: each for each in doctor._programs()}
    assert found["there"].found.startswith("Python 3")
    assert found["failing"] == doctor.Finding("failing", "no driver (exit code 9)", False)
    assert (found["hanging"].works, "timed out" in found["hanging"].found) == (False, True)
    assert found["none"] == doctor.Finding("none", "there is no no-such-program", None)


def test_folders_of_data(monkeypatch, tmp_path):
    (tmp_path / "ratings.dat").write_text("1::1::5::1\n")
    monkeypatch.setenv("SAFECF_DATA", str(tmp_path))
    monkeypatch.setenv("SAFECF_CACHE", str(tmp_path / "new" / "cache"))
    found = {each.name: each for each in doctor._data()}
    assert found["SAFECF_DATA"].found == str(tmp_path)
    assert found["cache"].works
    assert "which is made by the first download" in found["cache"].found
    assert found["ml-1m"].found == str(datasets.DATASETS["ml-1m"].find(tmp_path))
    assert found["msd"] == doctor.Finding("msd", "not there", None)
    monkeypatch.setenv("SAFECF_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv("SAFECF_CACHE", str(tmp_path / "ratings.dat" / "cache"))
    found = {each.name: each for each in doctor._data()}
    assert found["SAFECF_DATA"].works is False
    assert (found["cache"].works, "set SAFECF_CACHE" in found["cache"].found) == (False, True)


def test_needs_are_those_of_the_formula(tmp_path):
    found = doctor.needs(1000, 500, 20_000, factors=16)
    formula = expected_bytes(1000, 500, 20_000, 16, thread_count(0))
    assert 0 <= found.training - formula <= 8 * 1500
    matrix = datasets.synthetic(1000, 500, 20_000).matrix
    model = SAFER2(16, iterations=1, random_state=0).fit(matrix, show_progress=False)
    model.save(tmp_path / "model")
    written = (tmp_path / "model.safetensors").stat().st_size
    assert found.file == pytest.approx(written, rel=0.2)
    with pytest.raises(ValueError, match="users=0 has to be at least 1"):
        doctor.needs(0, 1, 1)


def test_what_is_examined():
    found = doctor.examine()
    assert list(found) == ["software", "machine", "extras", "data", "self-test"]
    names = {each.name for section in found.values() for each in section}
    assert {"safecf", "Python", "BLAS", "kernels", "memory", "torch", "GPU", "Java"} <= names
