"""Finished cells: found again for the same code, settings and data only, and if undamaged."""

import json
from dataclasses import replace

import numpy as np
import pytest

from reproduction import page
from reproduction.base import Cell
from reproduction.store import Store
from reproduction.tasks.course import course
from reproduction.tasks.quality import quality
from reproduction.tasks.statistics import statistics, users
from reproduction.tasks.trial import trial
from tests.reproduction.tasks import double, other

CELL = Cell(double, {"data": "tiny", "number": 3})


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "cells")
    store.put(CELL, double(CELL.settings) | {"nothing": np.nan, "list": [1, 2.5, "x"]}, 1.5)
    return store


def test_results_are_read_as_written(store):
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


def test_only_keys_of_timed_cells_contain_the_machine(store, monkeypatch):
    timed = replace(CELL, settings={**CELL.settings, "alone": True})
    not_timed = replace(CELL, settings={**CELL.settings, "alone": False})
    store.put(timed, {}, 1)
    store.put(not_timed, {}, 1)
    here = page.current_origin()
    assert Store(store.folder).get(timed) is not None
    for name, value in (("current_origin", {**here, "machine": "another"}), ("cores", 99)):
        with monkeypatch.context() as other:
            other.setattr(page, name, lambda value=value: value)
            there = Store(store.folder)
        assert there.get(timed) is None
        assert there.get(not_timed) is not None
        assert there.get(CELL) is not None


def test_keys_are_those_of_the_cells_before_the_package_moved(store):
    cell = Cell(quality, {"data": "tiny", "model": "IALS", "on": "test", "seed": 0, "split": 1})
    assert cell.task == "safecf.experiments.quality:quality"
    # sha256 of ["safecf.experiments.quality:quality",
    # {"data":"tiny","model":"IALS","on":"test","seed":0,"split":1},"0.1.0-0",""] in one line
    store.versions[quality] = "0.1.0-0"
    assert store.key(cell) == "49a895ea843e16606d76236947e4528bbafd60cdd58cf933f71063edf4ac97c9"
    # sha256 of ["safecf.experiments.double:double",{"data":"tiny","number":3},"0.1.0-0",""]
    store.versions[double] = "0.1.0-0"
    assert store.key(CELL) == "9fc2ace8f031462cff65b1b8b20f24231c6cc90c931f33fa088a26fef4e74a4c"


@pytest.mark.parametrize(
    ("run", "name"),
    [
        (course, "safecf.experiments.course:course"),
        (statistics, "safecf.experiments.statistics:statistics"),
        (trial, "safecf.experiments.trial:trial"),
        (users, "safecf.experiments.users:users"),
    ],
)
def test_names_of_tasks_are_those_before_the_package_moved(run, name):
    assert Cell(run, {}).task == name


def test_results_have_an_origin(store):
    made = store.get(CELL).origin
    assert made == page.current_origin()
    assert {"safecf", "numpy", "commit", "machine"} <= set(made)
    [file] = store.folder.iterdir()
    content = json.loads(file.read_text())
    for name in ("made", "sum"):  # as in older files
        del content[name]
    file.write_text(json.dumps(content))
    assert store.get(CELL).origin == {}
    text = page.origin_text("python -m reproduction", [store.get(CELL).origin])
    assert text.endswith("the same code, at a commit that they do not tell.")


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
