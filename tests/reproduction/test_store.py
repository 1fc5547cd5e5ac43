"""Finished cells: found again, only for the very same work, and only when whole."""

import importlib
import json
from dataclasses import replace

import numpy as np
import pytest

from reproduction import page, version
from reproduction.base import Cell
from reproduction.store import Store
from reproduction.version import code_version, meaning
from tests.reproduction.tasks import double, other

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
    monkeypatch.setattr("reproduction.store.code_version", lambda run: "another library")
    assert store.get(CELL) is not None  # as long as this process runs
    assert Store(store.folder).get(CELL) is None


def test_the_version_is_that_of_the_code_that_was_loaded(monkeypatch, tmp_path):
    file = tmp_path / "fleeting.py"
    file.write_text("def run(settings):\n    return {'value': 1}\n")
    monkeypatch.syspath_prepend(tmp_path)
    run = importlib.import_module("fleeting").run
    before = code_version(run)
    file.write_text("def run(settings):\n    return {'value': 2}\n")
    assert code_version(run) == before
    assert code_version.__wrapped__(run) != before


def test_keys_of_cells_that_are_not_timed_know_no_machine(store, monkeypatch):
    timed = replace(CELL, settings={**CELL.settings, "alone": True})
    not_timed = replace(CELL, settings={**CELL.settings, "alone": False})
    store.put(timed, {}, 1)
    store.put(not_timed, {}, 1)
    here = page.here()
    assert Store(store.folder).get(timed) is not None
    for name, value in (("here", {**here, "machine": "another"}), ("cores", 99)):
        with monkeypatch.context() as other:
            other.setattr(page, name, lambda value=value: value)
            there = Store(store.folder)
        assert there.get(timed) is None
        assert there.get(not_timed) is not None
        assert there.get(CELL) is not None


def test_the_key_is_the_one_of_all_cells_so_far(store):
    store.versions[CELL.task] = "0.1.0-0"
    # sha256 of ["tests.reproduction.tasks:double",{"data":"tiny","number":3},"0.1.0-0",""]
    assert store.key(CELL) == ("076d8d628549196e63aa10935556a70cd56b41934ffa286ed028a7490daa7130")


def test_cells_say_how_they_were_made(store):
    made = store.get(CELL).made
    assert made == page.here()
    assert {"safecf", "numpy", "commit", "machine"} <= set(made)
    [file] = store.folder.iterdir()
    content = json.loads(file.read_text())
    for name in ("made", "sum"):  # as cells were before
        del content[name]
    file.write_text(json.dumps(content))
    assert store.get(CELL).made == {}
    told = page.origin("safecf reproduce", cells=[store.get(CELL).made])
    assert told.endswith("the same code, at a commit that they do not tell.")


def test_the_version_follows_the_library_and_the_module_of_the_function(monkeypatch, tmp_path):
    current = code_version.__wrapped__
    before = current(double)
    assert before == current(other)  # of the same module
    assert before != current(code_version)
    source = tmp_path / "als"
    source.mkdir()
    (source / "loop.py").write_text("x = 1")
    (tmp_path / "experiments").mkdir()
    for name in version.FILES:
        (tmp_path / name).write_text("")
    monkeypatch.setattr(version, "SOURCES", tmp_path)
    monkeypatch.setattr(version, "_library", version._library.__wrapped__)
    first = current(double)
    (source / "loop.py").write_text("x = 1  # with a comment")
    assert current(double) == first
    (source / "loop.py").write_text("x = 2")
    assert current(double) != first


def test_docstrings_and_comments_have_no_meaning():
    plain = meaning("def f(x):\n    return x + 1")
    assert meaning('"""A."""\ndef f(x):\n    """B."""\n    # c\n    return x+1') == plain
    assert meaning("def f(x):\n    return x + 2") != plain


@pytest.mark.parametrize("damage", ["cut", "foreign", "empty", "list", "array", "number", "text"])
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
        "number": text.replace('"twice": 6', '"twice": 7'),
        "text": json.dumps({**json.loads(text), "record": "lost"}),
    }
    assert damaged[damage] != text
    file.write_text(damaged[damage])
    assert store.get(CELL) is None


@pytest.mark.parametrize("record", [None, 1, "lost", ["lost"], {"float32": "AAAA"}, {"float32": 1}])
def test_cells_without_a_sum_have_a_record_at_least(store, record):
    [file] = store.folder.iterdir()
    content = json.loads(file.read_text()) | {"record": record}
    del content["sum"]
    file.write_text(json.dumps(content))
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
