"""Free memory, as Linux and its containers report it."""

import pytest
import scipy.sparse

import safecf
from safecf import free_memory


@pytest.fixture
def system(tmp_path, monkeypatch):
    monkeypatch.setattr(free_memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(free_memory, "CONTAINER", tmp_path)
    (tmp_path / "meminfo").write_text("MemTotal: 200 kB\nMemFree: 1 kB\nMemAvailable: 100 kB\n")
    return tmp_path


def test_available_memory_of_the_system(system):
    assert free_memory.available_bytes() == 100 * 1024


@pytest.mark.parametrize(("limit", "left"), [("max\n", 102_400), ("5000\n", 2000), ("10\n", 0)])
def test_the_limit_of_a_container(system, limit, left):
    (system / "memory.max").write_text(limit)
    (system / "memory.current").write_text("3000\n")
    assert free_memory.available_bytes() == left


def test_systems_without_meminfo(system):
    (system / "meminfo").write_text("nothing\n")
    assert free_memory.available_bytes() is None
    (system / "meminfo").unlink()
    assert free_memory.available_bytes() is None


def test_this_system():
    found = free_memory.available_bytes()
    assert found is None or found > 0


def test_cached_files_are_free_memory(system):
    (system / "memory.max").write_text("5000\n")
    (system / "memory.current").write_text("3000\n")
    (system / "memory.stat").write_text("anon 500\ninactive_file 2500\nactive_file 0\n")
    assert free_memory.available_bytes() == 4500


def test_what_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(free_memory, "available_bytes", lambda: 3 * 10**9)
    message = r"all of it needs 400 GB of memory, while 3\.0 GB are free; use less"
    with pytest.raises(MemoryError, match=message):
        free_memory.check_free(400 * 10**9, "all of it", "use less")
    free_memory.check_free(3 * 10**9, "just enough", "")
    monkeypatch.setattr(free_memory, "available_bytes", lambda: None)
    free_memory.check_free(10**15, "where nothing is known", "")


def test_factors_that_do_not_fit_are_refused_before_training(monkeypatch):
    monkeypatch.setattr(free_memory, "available_bytes", lambda: 10**9)
    matrix = scipy.sparse.csr_matrix(([1.0], ([0], [999_999])), shape=(2, 1_000_000))
    message = "training 300 factors of 2 users and 1,000,000 items needs 3.9 GB.*lower factors"
    with pytest.raises(MemoryError, match=message):
        safecf.SAFER2(factors=300, random_state=0).fit(matrix, show_progress=False)
