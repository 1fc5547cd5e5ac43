"""Finished cells: found again, only for the very same work, and only when whole."""

import json

import numpy as np
import pytest

from safecf.experiments import version
from safecf.experiments.base import Cell
from safecf.experiments.store import Store
from safecf.experiments.version import code_version, meaning
from tests.experiments.tasks import double, other

CELL = Cell(double, {"data": "tiny", "number": 3})


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "cells")
    store.put(CELL, double(CELL.settings) | {"nothing": np.nan, "list": [1, 2.5, "x"]}, 1.5)
    return store


def test_what_is_put_comes_back(store):
    found = store.get(CELL)
    assert found.settings == CELL.settings
    assert found.seconds == 1.5
    assert found.record["twice"] == 6
    assert found.record["list"] == [1, 2.5, "x"]
    assert np.isnan(found.record["nothing"])
    np.testing.assert_allclose(found.record["scores"], np.linspace(0, 1, 4), rtol=1e-7)


def test_arrays_keep_their_shape(store):
    table = np.arange(6, dtype=np.float64).reshape(2, 3)
    store.put(CELL, {"table": table, "empty": np.zeros((0, 2))}, 0)
    found = store.get(CELL).record
    np.testing.assert_array_equal(found["table"], table)
    assert found["empty"].shape == (0, 2)


def test_other_settings_are_another_cell(store):
    assert store.get(Cell(double, {"data": "tiny", "number": 4})) is None
    assert store.get(Cell(double, {**CELL.settings, "more": 1})) is None
    assert store.get(Cell(other, CELL.settings)) is None


def test_the_order_of_settings_does_not_matter(store):
    assert store.get(Cell(double, {"number": 3, "data": "tiny"})) is not None


def test_other_data_of_the_same_name_are_another_cell(store):
    assert Store(store.folder, {"tiny": "sum"}).get(CELL) is None
    assert Store(store.folder, {"another": "sum"}).get(CELL) is not None


def test_other_code_is_another_cell(store, monkeypatch):
    monkeypatch.setattr(version, "_library", lambda: "another library")
    assert store.get(CELL) is not None  # as long as this process runs
    assert Store(store.folder).get(CELL) is None


def test_the_version_follows_the_library_and_the_module_of_the_function(monkeypatch, tmp_path):
    before = code_version(double)
    assert before == code_version(other)  # of the same module
    assert before != code_version(code_version)
    source = tmp_path / "als"
    source.mkdir()
    (source / "loop.py").write_text("x = 1")
    (tmp_path / "experiments").mkdir()
    for name in version.FILES:
        (tmp_path / name).write_text("")
    monkeypatch.setattr(version, "SOURCES", tmp_path)
    monkeypatch.setattr(version, "_library", version._library.__wrapped__)
    first = code_version(double)
    (source / "loop.py").write_text("x = 1  # with a comment")
    assert code_version(double) == first
    (source / "loop.py").write_text("x = 2")
    assert code_version(double) != first


def test_docstrings_and_comments_have_no_meaning():
    plain = meaning("def f(x):\n    return x + 1")
    assert meaning('"""A."""\ndef f(x):\n    """B."""\n    # c\n    return x+1') == plain
    assert meaning("def f(x):\n    return x + 2") != plain


@pytest.mark.parametrize("damage", ["cut", "foreign", "empty", "list", "array"])
def test_damaged_files_do_not_count(store, damage):
    [file] = store.folder.iterdir()
    text = file.read_text()
    content = json.loads(text)
    content["record"]["scores"]["float32"] = "AAAA"
    damaged = {
        "cut": text[: len(text) // 2],
        "foreign": text.replace('"format": 1', '"format": 99'),
        "empty": "",
        "list": "[]",
        "array": json.dumps(content),
    }
    file.write_text(damaged[damage])
    assert store.get(CELL) is None


def test_half_written_files_are_not_there(store, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    another = Cell(double, {"data": "tiny", "number": 5})
    with pytest.raises(OSError, match="No space left"):
        store.put(another, double(another.settings), 1)
    assert store.get(another) is None
    assert len(list(store.folder.iterdir())) == 1


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="--cells"):
        Store(tmp_path / "file")
