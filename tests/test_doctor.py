"""The doctor: what it finds, what it says of what does not work, and what data needs."""

import sys

import pytest

from safecf import SAFER2, datasets, doctor
from tests.helpers import refused


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


EXTRAS = {
    "there": "print('fine', 1)",
    "tune": "import no_such_module",
    "faiss": "import no_such_module",  # a package, and no extra
    "broken": "raise ImportError('a library is missing')",
    "crashing": "import os; os.abort()",
}
PROGRAMS = {
    "answering": [sys.executable, "-V"],
    "failing": [sys.executable, "-c", "print('no driver'); raise SystemExit(9)"],
    "hanging": [sys.executable, "-c", "import time; time.sleep(60)"],
    "none": ["no-such-program"],
}


@pytest.fixture
def examined(monkeypatch):
    """Return a function that returns what the doctor finds: works and text by name."""
    monkeypatch.setattr(doctor, "self_test", lambda: [doctor.Finding("train", "1 s")])

    def found():
        sections = doctor.examine()
        assert list(sections) == ["software", "machine", "extras", "data", "self-test"]
        return {each.name: (each.works, each.found) for part in sections.values() for each in part}

    return found


def test_extras_and_programs_are_asked_in_their_own_processes(monkeypatch, examined):
    monkeypatch.setattr(doctor, "EXTRAS", EXTRAS)
    monkeypatch.setattr(doctor, "PROGRAMS", PROGRAMS)
    monkeypatch.setattr(doctor, "PROBE_SECONDS", 3)
    found = examined()
    assert {"safecf", "Python", "BLAS", "kernels", "memory", "cores", "train"} <= {*found}
    assert found["there"] == (True, "fine 1")
    missing = "no_such_module is not installed; try pip install"
    assert found["tune"] == (None, f"{missing} 'safecf[tune]'")
    assert found["faiss"] == (None, f"{missing} faiss-cpu")
    assert found["broken"][0] is found["crashing"][0] is False
    assert "a library is missing (exit code 1)" in found["broken"][1]
    assert "exit code -6" in found["crashing"][1]
    assert found["answering"] == (True, f"Python {sys.version.split()[0]}")
    assert found["failing"] == (False, "no driver (exit code 9)")
    assert (found["hanging"][0], "timed out" in found["hanging"][1]) == (False, True)
    assert found["none"] == (None, "there is no no-such-program")


def test_folders_of_data(monkeypatch, tmp_path, examined):
    for names in ("EXTRAS", "PROGRAMS"):
        monkeypatch.setattr(doctor, names, {})
    (tmp_path / "ratings.dat").write_text("1::1::5::1\n")
    monkeypatch.setenv("SAFECF_DATA", str(tmp_path))
    monkeypatch.setenv("SAFECF_CACHE", str(tmp_path / "new" / "cache"))
    found = examined()
    assert found["SAFECF_DATA"] == (True, str(tmp_path))
    assert found["cache"][0]
    assert "which is made by the first download" in found["cache"][1]
    assert found["ml-1m"] == (True, str(datasets.DATASETS["ml-1m"].find(tmp_path)))
    assert found["msd"] == (None, "not there")
    monkeypatch.setenv("SAFECF_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv("SAFECF_CACHE", str(tmp_path / "ratings.dat" / "cache"))
    found = examined()
    assert found["SAFECF_DATA"][0] is False
    assert (found["cache"][0], "set SAFECF_CACHE" in found["cache"][1]) == (False, True)


def test_needs_grow_with_the_data_and_the_factors(tmp_path):
    """Both directions of the matrix are 8 bytes per interaction; training holds the factors."""
    some = doctor.needs(1000, 500, 20_000, factors=16)
    more = doctor.needs(1000, 500, 40_000, factors=16)
    large = doctor.needs(1000, 500, 20_000, factors=32)
    assert 8 * 20_000 <= more.training - some.training < 40 * 20_000
    assert more.reading == 2 * some.reading > 0
    assert large.training - some.training >= 4 * 16 * 1500
    matrix = datasets.synthetic(1000, 500, 20_000).matrix
    model = SAFER2(16, iterations=1, random_state=0).fit(matrix, show_progress=False)
    model.save(tmp_path / "model")
    assert some.file == pytest.approx((tmp_path / "model.safetensors").stat().st_size, rel=0.2)
    with refused(ValueError, "users=0 has to be at least 1"):
        doctor.needs(0, 1, 1)
    with refused(ValueError, "10 users and 10 items are only 100 pairs; lower interactions"):
        doctor.needs(10, 10, 101)
