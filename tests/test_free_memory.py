"""Free memory, as Linux and its containers report it."""

import pytest

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
