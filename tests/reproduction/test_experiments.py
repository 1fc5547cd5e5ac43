"""Every experiment, from its cells to its page, on tiny data; and what tuning may look at."""

import csv
import re
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
import pytest

import reproduction as experiments
from reproduction import data, page, presets, tuning
from reproduction.base import Cell, Experiment, Options, Results, canonical
from reproduction.page import Page
from reproduction.quality import quality
from reproduction.runner import run_cells
from reproduction.session import PlanError, Session
from reproduction.store import Store
from reproduction.trial import trial
from tests.reproduction import tasks

pytest.importorskip("matplotlib", reason="experiments draw figures")

ALL = list(experiments.MODULES)


def run(experiment, tmp_path, options=None, **more):
    """Run it in this process; return how many cells failed, and what was said."""
    said = []
    chosen = options or experiment.options("tiny", splits=2, seeds=1, trials=1)
    session = Session(None, tmp_path / "out", tmp_path / "cells", 0, show_progress=False, **more)
    return session.run(experiment, chosen, said.append), said


@pytest.fixture(scope="module")
def shared_cells(tmp_path_factory):
    """Return a folder in which all experiments keep their cells, as they do for people."""
    return tmp_path_factory.mktemp("cells")


@pytest.mark.filterwarnings("ignore")  # such small runs need not converge
@pytest.mark.parametrize("name", ALL)
def test_it_runs_and_renders(name, tmp_path, shared_cells):
    experiment = experiments.load(name)
    assert experiment.name == name
    (tmp_path / "cells").symlink_to(shared_cells)
    failed, said = run(experiment, tmp_path)
    assert failed == 0, said
    options = experiment.options("tiny", splits=2, seeds=1, trials=1)
    stem = tmp_path / "out" / experiment.page_name(options)
    text = stem.with_suffix(".md").read_text()
    assert f"`{experiment.command(options)}`" in text
    assert ("numbers mean nothing" in text) == bool(experiment.data)
    assert "nan" not in re.findall(r"\bnan\b", text)
    with stem.with_suffix(".csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows
    for link in re.findall(r"\]\(([^)]*)\)", text):
        assert (tmp_path / "out" / link).is_file()
    before = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    count = len(list(shared_cells.iterdir()))
    assert run(experiment, tmp_path, render_only=True)[0] == 0
    after = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    assert after == before
    assert len(list(shared_cells.iterdir())) == count


@pytest.mark.parametrize("name", ALL)
def test_cells_are_json_and_different(name):
    experiment = experiments.load(name)
    cells = experiment.cells(experiment.options("tiny", splits=2, seeds=2, trials=3))
    assert len({cell.task + canonical(cell.settings) for cell in cells}) == len(cells)
    whole = experiment.options("tiny")
    assert (whole.splits, whole.seeds) == (experiment.splits, experiment.seeds)


def test_quantiles_has_no_cells_of_its_own():
    options = Options("tiny", seeds=2)
    ours, theirs = (
        {canonical(cell.settings) for cell in experiments.load(name).cells(options)}
        for name in ("quantiles", "table-1")
    )
    assert ours < theirs


def test_numbers_of_the_page_are_those_of_the_cells(tmp_path):
    experiment = experiments.load("robustness")
    options = experiment.options("tiny", splits=2, seeds=1)
    run(experiment, tmp_path, options)
    store = Store(tmp_path / "cells")
    found = [store.get(cell) for cell in experiment.cells(options)]
    mean = np.mean([each.record["recall@20"].mean() for each in found[::3]])  # iALS
    text = (tmp_path / "out" / "robustness-tiny-part.md").read_text()
    assert f"| iALS | {mean:.4f} ±" in text
    assert "2 of 50 splits, 1 of 10 seeds" in text


def cells_of(options):
    return [Cell(tasks.fail_on_two, {"number": number}) for number in range(options.splits)]


def render(results, options):
    return Page([f"{len(results)} cells"], [each.settings for each in results])


TOY = Experiment("toy", "A toy", "nothing", cells_of, render, splits=4)


def test_a_failure_is_told_and_leaves_no_page(tmp_path):
    failed, said = run(TOY, tmp_path, TOY.options("tiny"))
    assert failed == 1
    assert "ValueError: two is too many" in said[0]
    assert '{"number":2}' in said[0]
    assert "no page was written, since 1 cell failed" in said[1]
    assert not (tmp_path / "out").exists()
    assert run(TOY, tmp_path, TOY.options("tiny", splits=2))[0] == 0
    assert "2 of 4 splits" in (tmp_path / "out" / "toy-tiny-part.md").read_text()


def test_failures_are_told_by_their_reasons(tmp_path):
    cells = [Cell(tasks.fail, {"number": number, "looks": [1, 2]}) for number in range(9)]
    bad = replace(TOY, cells=lambda options: cells)
    said = run(bad, tmp_path, bad.options("tiny"))[1]
    assert said[0].startswith("failed: ValueError: there are no data (tasks.py, line")
    assert said[0].endswith('in 3 cells, such as fail {"number":0}')
    assert said[1] == "not tried after that: 6 cells"


def test_models_without_their_library_are_told_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setattr("reproduction.session.find_spec", lambda name: None)
    with pytest.raises(PlanError, match="needs PyTorch"):
        run(experiments.load("table-1"), tmp_path)
    assert run(experiments.load("cvar"), tmp_path)[0] == 0


def test_pages_name_the_files_of_their_data(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "find", lambda name, path: tmp_path / "data")
    (tmp_path / "data").write_text("1,2")
    on_file = replace(
        TOY, cells=lambda options: [Cell(tasks.double, {"number": 1, "data": "ml-1m"})]
    )
    assert run(on_file, tmp_path, on_file.options("tiny"))[0] == 0
    total = data.checksum(tmp_path / "data")
    assert f"Data: ml-1m, sha256 `{total[:16]}" in (tmp_path / "out" / "toy-tiny.md").read_text()


def test_render_only_says_what_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="2 of 2 cells are not in"):
        run(TOY, tmp_path, TOY.options("tiny", splits=2), render_only=True)


def test_an_interrupt_says_that_the_same_command_goes_on(tmp_path):
    def cells(options):
        return [Cell(tasks.interrupt_on_two, {"number": number}) for number in range(4)]

    said = []
    session = Session(None, tmp_path / "out", tmp_path / "cells", 0, show_progress=False)
    with pytest.raises(KeyboardInterrupt):
        session.run(replace(TOY, cells=cells), Options("tiny"), said.append)
    assert said == ["stopped: 2 of 4 cells are kept; the same command goes on from there"]


def test_more_cells_follow_from_results(tmp_path):
    def then(results: Results, options):
        largest = max(each.record["twice"] for each in results)
        return [Cell(tasks.double, {"number": largest + 1})] if largest < 20 else []

    grown = replace(TOY, cells=lambda options: [Cell(tasks.double, {"number": 1})], then=then)
    assert run(grown, tmp_path, Options("tiny"))[0] == 0
    assert "4 cells" in (tmp_path / "out" / "toy-tiny-part.md").read_text()  # 1, 3, 7, 15


def test_rounds_have_numbers(tmp_path, monkeypatch):
    titles = []

    def noted(cells, store, *, title, **others):
        titles.append(title)
        return run_cells(cells, store, title=title, **others)

    monkeypatch.setattr("reproduction.session.run_cells", noted)
    one, two = ([Cell(tasks.double, {"number": number})] for number in (1, 2))
    plain = replace(TOY, cells=lambda options: one)
    run(plain, tmp_path, Options("tiny"))
    run(replace(plain, then=lambda results, options: two), tmp_path, Options("tiny"))
    assert titles == ["toy", "toy, round 1", "toy, round 2"]


def test_options_are_checked():
    with pytest.raises(ValueError, match="unknown data of robustness 'ml-20m-like'"):
        experiments.load("robustness").options("ml-20m-like")
    with pytest.raises(ValueError, match="--splits 0"):
        TOY.options("tiny", splits=0)
    assert TOY.options("tiny", splits=99).splits == 4
    assert TOY.command(TOY.options(splits=2)) == "safecf reproduce toy --splits 2"


def test_what_is_more_than_there_is_is_told():
    assert TOY.unused(splits=4, seeds=1, trials=None, jobs=8) == []
    assert TOY.unused(splits=100, seeds=3) == [
        "toy has 4 splits: --splits 100 is that many",
        "toy has no seeds: --seeds is ignored",
    ]
    timed = replace(TOY, alone=True)
    assert timed.unused(jobs=1) == []
    assert timed.unused(jobs=2) == [
        "toy takes the time: its cells run one by one, not 2 at once",
    ]


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("robustness", {}, "robustness"),
        ("robustness", {"splits": 50, "seeds": 99}, "robustness"),
        ("robustness", {"splits": 49}, "robustness-part"),
        ("robustness", {"presets": Path("mine.toml")}, "robustness-part"),
        ("robustness", {"presets": Path(presets.__file__).with_suffix(".toml")}, "robustness"),
        ("table-1", {"data": "msd", "seeds": 1}, "table-1-msd-part"),
        ("tuning", {"presets": Path("mine.toml")}, "tuning"),
        ("tuning", {"trials": 2}, "tuning-part"),
        ("cvar", {"data": "ml-1m", "presets": Path("mine.toml"), "splits": 2}, "cvar"),
    ],
)
def test_only_the_whole_experiment_has_its_page(name, given, expected):
    experiment = experiments.load(name)
    assert experiment.page_name(experiment.options(**given)) == expected


def test_commands_have_presets_as_they_were_given():
    options = TOY.options(presets=Path("some where", "mine.toml"))
    assert TOY.command(options) == "safecf reproduce toy --presets 'some where/mine.toml'"


def test_settings_of_ones_own_are_told(tmp_path):
    options = TOY.options("tiny", splits=2, presets=tmp_path / "mine.toml")
    run(TOY, tmp_path, options)
    assert "mine.toml" in (tmp_path / "out" / "toy-tiny-part.md").read_text().split("\n\n")[4]


def test_pages_name_the_origins_of_their_cells(tmp_path):
    options = TOY.options("tiny", splits=2)
    run(TOY, tmp_path, options)
    name = tmp_path / "out" / "toy-tiny-part.md"
    here = page.here()
    assert f"with safecf {here['safecf']}, numpy {np.__version__}" in name.read_text()
    assert f"at commit `{here['commit']}`, on {here['machine']}." in name.read_text()
    there = Store(tmp_path / "cells")
    there.made = {**here, "commit": "abc", "machine": "another machine"}
    there.put(cells_of(options)[1], {"twice": 2}, 0)
    run(TOY, tmp_path, options, render_only=True)
    lines = name.read_text().splitlines()
    assert any(line.startswith("- 1 cell with") and here["machine"] in line for line in lines)
    assert any(line.endswith("at commit `abc`, on another machine") for line in lines)


def refused(options):
    raise ValueError("nobody knows the settings")


def many(tmp_path, *plans):
    """Run several in this process; return how many have no page, and what was said."""
    said = []
    session = Session(None, tmp_path / "out", tmp_path / "cells", 0, show_progress=False)
    return session.run_all(plans, said.append), said


def test_what_cannot_be_run_is_told_first_and_the_rest_runs(tmp_path):
    bad = replace(TOY, name="bad", cells=refused)
    good, options = TOY.options("tiny", splits=2), bad.options("tiny")
    failed, said = many(tmp_path, (TOY, good), (bad, options), (replace(TOY, name="last"), good))
    assert failed == 1
    assert said[0] == "bad cannot be run: nobody knows the settings"
    assert all(line.startswith("written: ") for line in said[1:])
    assert {file.stem for file in (tmp_path / "out").iterdir()} == {
        *("toy-tiny-part", "last-tiny-part")
    }
    with pytest.raises(PlanError, match="nobody knows"):
        many(tmp_path, (bad, options))


def test_a_mistake_in_a_page_does_not_stop_the_others(tmp_path, capsys):
    def broken(results, options):
        return {}["model"]

    bad, options = replace(TOY, name="bad", render=broken), TOY.options("tiny", splits=2)
    failed, said = many(tmp_path, (bad, options), (TOY, options))
    assert failed == 1
    assert said[0].startswith("bad: no page was written")
    assert "KeyError: 'model'" in capsys.readouterr().err
    assert said[1].startswith("written: ")


def test_what_tuning_finds_is_there_for_those_after_it(tmp_path):
    file = tmp_path / "mine.toml"

    def writes(results, options):
        presets.update(options.presets, "tiny", [("tuned", presets.load("tiny", "paper")["iALS"])])
        return Page(["found"])

    def reads(options):
        presets.require("tiny", "tuned", ["iALS"], options.presets)
        return []

    tunes = replace(TOY, name="tuning", cells=lambda options: [], render=writes)
    uses = replace(TOY, name="uses", cells=reads)
    options = TOY.options("tiny", presets=file)
    assert many(tmp_path, (tunes, options), (uses, options))[0] == 0
    file.unlink()
    failed, said = many(tmp_path, (uses, options), (tunes, options))
    assert failed == 1
    assert said[0].startswith("uses cannot be run: there is no")


def test_tuning_comes_before_what_uses_its_settings():
    names = list(experiments.MODULES)
    for name in ("table-1", "kernels", "dimensions", "frontier", "sensitivity"):
        assert names.index("tuning") < names.index(name)


def test_folders_are_tried_before_anything_runs(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for option in ("output", "cells"):
        with pytest.raises(NotADirectoryError, match=f"file is a file; .* --{option}"):
            Session(**{"output": tmp_path, "cells": tmp_path, option: tmp_path / "file" / "new"})

    def full(dir):
        if dir == tmp_path / "full":
            raise OSError(30, "Read-only file system")
        return TemporaryFile(dir=dir)

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    (tmp_path / "full").mkdir()
    for option in ("output", "cells"):
        with pytest.raises(OSError, match=f"Read-only file system.* --{option}"):
            Session(**{"output": tmp_path, "cells": tmp_path, option: tmp_path / "full" / "new"})
    Session(output=tmp_path, cells=tmp_path / "full", render_only=True)
    session, tunes = Session(output=tmp_path, cells=tmp_path), experiments.load("tuning")
    for file, said in (("full/mine.toml", "Read-only"), ("no/mine.toml", "there is no folder")):
        with pytest.raises(PlanError, match=f"{said}.* --presets"):
            session.plan(tunes, tunes.options("tiny", presets=tmp_path / file))


def test_settings_decide_the_scores():
    settings = presets.load("tiny", "paper")["SAFER2"].settings("tiny", data.SEED, 0)
    first, again = (quality(settings)["recall@20"] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    for change in ({"seed": 1}, {"split": 7}, {"on": "validation"}):
        assert not np.array_equal(quality({**settings, **change})["recall@20"], first)


@pytest.fixture
def no_test_users(monkeypatch):
    """Let anybody who looks at the test users fail."""
    whole = data.load_split("tiny")
    monkeypatch.setattr("reproduction.trial.load_split", lambda *_: replace(whole, test=None))


@pytest.mark.filterwarnings("ignore")
def test_tuning_looks_at_validation_users_only(no_test_users):
    cells = tuning.cells(Options("tiny", trials=1))
    assert {cell.run for cell in cells} == {trial}
    for cell in cells:
        found = trial(cell.settings)
        assert len(found["recall@20"][0]) == 60
    held_out = data.load_split("tiny").validation.target
    assert held_out.shape[0] == 60


def test_a_trial_scores_every_epoch_as_a_shorter_one_would(no_test_users):
    settings = {
        **presets.load("tiny", "paper")["SAFER2"].settings("tiny", data.SEED, 0),
        "epochs": [1, 3],
    }
    settings["options"] = {**settings["options"], "iterations": 3}
    found = trial(settings)
    assert found["epochs"] == [1, 3]
    short = {**settings["options"], "iterations": 1}
    alone = quality({**settings, "options": short, "on": "validation"})
    np.testing.assert_array_equal(found["recall@20"][0], alone["recall@20"])


@pytest.mark.filterwarnings("ignore")
def test_tuning_writes_what_it_finds(tmp_path):
    file = tmp_path / "mine.toml"
    options = experiments.load("tuning").options("tiny", trials=1, presets=file)
    assert run(experiments.load("tuning"), tmp_path, options)[0] == 0
    found = presets.read(file)["tuned"]["tiny"]["SAFER2"]
    assert found["found"] == "safecf reproduce tuning --data tiny --trials 1"
    assert found["options"]["factors"] in (4, 6)
    assert found["options"]["iterations"] in (1, 2)
