"""Free memory, as Linux and its containers report it."""

import sys

import pytest
import scipy.sparse

import safecf
from safecf import free_memory

if sys.platform != "win32":
    import resource


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


@pytest.mark.parametrize(("backend", "needed"), [("cpu", "4.8"), ("numpy", "9.6")])
def test_many_factors_are_refused_before_training(monkeypatch, backend, needed):
    monkeypatch.setattr(free_memory, "available_bytes", lambda: 10**9)
    matrix = scipy.sparse.csr_matrix([[1.0, 1.0], [0.0, 1.0]])
    message = rf"training 10000 factors of 2 users and 2 items needs {needed} GB.*; lower factors"
    with pytest.raises(MemoryError, match=message):
        safecf.IALS(10_000, backend=backend, num_threads=1).fit(matrix, show_progress=False)


def test_a_network_that_does_not_fit_is_refused_before_training(monkeypatch):
    pytest.importorskip("torch", reason="MultVAE needs torch")
    monkeypatch.setattr(free_memory, "available_bytes", lambda: 10**9)
    matrix = scipy.sparse.csr_matrix([[1.0, 1.0], [0.0, 1.0]])
    message = r"10000 factors of 2 items in batches of 200 needs 7\.2 GB.*; lower factors or batch"
    with pytest.raises(MemoryError, match=message):
        safecf.MultVAE(10_000).fit(matrix, show_progress=False)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_the_limit_of_the_process(system, monkeypatch):
    (system / "meminfo").write_text("nothing\n")
    (system / "statm").write_text("10 5 1 1 0 1 0\n")
    page = resource.getpagesize()
    monkeypatch.setattr(free_memory, "STATM", system / "statm")
    monkeypatch.setattr(resource, "getrlimit", lambda what: (100 * page, resource.RLIM_INFINITY))
    assert free_memory.available_bytes() == 90 * page
    (system / "statm").unlink()
    assert free_memory.available_bytes() is None
    monkeypatch.setattr(resource, "getrlimit", lambda what: (resource.RLIM_INFINITY,) * 2)
    assert free_memory.available_bytes() is None
