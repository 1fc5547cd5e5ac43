"""Every experiment plans, and every stored page is what its template and rows make."""

import shutil
from pathlib import Path

import pytest

from reproduction import NAMES, page, store
from reproduction.command import load, main
from reproduction.experiment import RESULTS

PAGES = [
    (name, file.stem)
    for file in sorted(RESULTS.glob("*.json"))
    if (name := max((n for n in NAMES if f"{file.stem}-".startswith(f"{n}-")), key=len, default=""))
]


@pytest.mark.parametrize(("name", "file"), PAGES)
def test_a_page_is_its_template_and_rows(name, file, tmp_path):
    pytest.importorskip("matplotlib", reason="pages have figures")
    for stored in RESULTS.glob(f"{file}.*"):
        if stored.suffix in (".json", ".csv"):
            shutil.copy(stored, tmp_path)
    written = page.render(load(NAMES, name), file, tmp_path)
    assert {path.suffix for path in written} == ({".md"} if name == "tuning" else {".md", ".svg"})
    assert (tmp_path / f"{file}.md").read_text() == (RESULTS / f"{file}.md").read_text()


def test_every_experiment_has_a_page():
    assert {name for name, _ in PAGES} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_plans(name):
    """On all its data the same cases each time, none of them twice; with smaller counts, fewer."""
    experiment = load(NAMES, name)
    for data in (*experiment.data, "tiny"):
        options = experiment.options(data)
        wanted = list(experiment.cases(options))
        assert wanted == list(experiment.cases(options))
        assert len({case.key for case in wanted}) == len(wanted)
        assert bool(wanted) == bool(experiment.data)
        fewer = experiment.options(data, **dict.fromkeys(experiment.counts, 1))
        assert len(list(experiment.cases(fewer))) <= len(wanted)
        assert experiment.page(options) != experiment.page(fewer) or not experiment.reduced(fewer)


@pytest.mark.parametrize(
    "name",
    ["robustness", "constants", "dimensions", pytest.param("tuning", marks=pytest.mark.slow)],
)
def test_an_experiment_runs_on_tiny_data(name, tmp_path):
    """What it writes can be rendered again; nothing is computed twice."""
    pytest.importorskip("matplotlib", reason="pages have figures")
    pytest.importorskip("torch" if name == "tuning" else "numpy", reason="Mult-VAE")
    sizes = {"splits": 2, "seeds": 1, "trials": 3}
    words = [name, "--data", "tiny", "--jobs", "0", "--quiet", "--output", str(tmp_path / "pages")]
    words += ["--cells", str(tmp_path / "cells")]
    words += [word for count, number in sizes.items() for word in (f"--{count}", str(number))]
    assert main(NAMES, "About.", words) == 0
    experiment = load(NAMES, name)
    file = tmp_path / "pages" / f"{experiment.page(experiment.options('tiny', **sizes))}.md"
    first, cells = file.read_bytes(), _times(tmp_path / "cells")
    assert b"the numbers mean nothing" in first
    file.unlink()
    assert main(NAMES, "About.", [*words, "--render"]) == 0
    assert file.read_bytes() == first
    if not experiment.alone:  # timed cases run anew where files have changed
        assert main(NAMES, "About.", words) == 0
        assert _times(tmp_path / "cells") == cells


def _times(folder):
    return {file.name: file.stat().st_mtime_ns for file in folder.glob("*.json")}


def test_parts_are_stored_by_themselves(tmp_path, monkeypatch):
    """One that is measured later, or fails, leaves the other as it is."""
    names = {"whole": "tests.reproduction.cases:WHOLE", "broken": "tests.reproduction.cases:BROKEN"}
    words = ["--rows", "--quiet", "--jobs", "0", "--output", str(tmp_path)]
    words += ["--cells", str(tmp_path / "cells")]
    assert main(names, "About.", ["whole", "--part", "odd", *words]) == 0
    before = store.read(tmp_path, "twice")
    assert list(before) == ["odd"]
    assert before["odd"]["command"].endswith("--part odd")
    monkeypatch.setattr(store, "made", lambda: {"commit": "later", "machine": "other"})
    assert main(names, "About.", ["broken", *words]) == 1
    after = store.read(tmp_path, "twice")
    assert "even" not in after
    assert after["odd"]["tables"] == before["odd"]["tables"]
    assert main(names, "About.", ["whole", "--part", "even", *words]) == 0
    assert store.read(tmp_path, "twice")["odd"] == after["odd"]
    assert [row["twice"] for row in store.read(tmp_path, "twice")["even"]["tables"]["rows"]] == [
        0,
        4,
        8,
    ]


def test_rows_are_read_back_as_they_were(tmp_path):
    rows = [
        {"model": "a, b", "value": 0.1, "count": 3, "is": True, "none": None},
        {"model": 'quoted "x"', "value": 1e-300, "count": -1, "is": False, "none": None},
    ]
    part = {"made": [], "options": {}, "tables": {"numbers": rows, "others": rows}}
    for file in store.write(tmp_path, "page", {"": part}):
        assert Path(file).is_file()
    assert store.read(tmp_path, "page")[""]["tables"] == part["tables"]
