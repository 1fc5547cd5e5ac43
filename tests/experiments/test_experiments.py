"""Every experiment, from its cells to its page, on tiny data; and what tuning may look at."""

import csv
import re
from dataclasses import replace

import numpy as np
import pytest

from safecf import experiments
from safecf.experiments import data, presets, tuning
from safecf.experiments.base import Cell, Experiment, Options, Results, canonical
from safecf.experiments.page import Page
from safecf.experiments.quality import quality
from safecf.experiments.session import Session
from safecf.experiments.store import Store
from safecf.experiments.trial import trial
from tests.experiments import tasks

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
    stem = tmp_path / "out" / f"{name}-tiny"
    text = stem.with_suffix(".md").read_text()
    assert f"`safecf reproduce {name} --data tiny" in text
    assert "numbers mean nothing" in text
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
    text = (tmp_path / "out" / "robustness-tiny.md").read_text()
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
    assert "no page was written" in said[1]
    assert not (tmp_path / "out").exists()
    assert run(TOY, tmp_path, TOY.options("tiny", splits=2))[0] == 0
    assert "2 of 4 splits" in (tmp_path / "out" / "toy-tiny.md").read_text()


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
    assert "4 cells" in (tmp_path / "out" / "toy-tiny.md").read_text()  # 1, 3, 7, 15


def test_options_are_checked():
    with pytest.raises(ValueError, match="unknown data of robustness 'ml-20m-like'"):
        experiments.load("robustness").options("ml-20m-like")
    with pytest.raises(ValueError, match="--splits 0"):
        TOY.options("tiny", splits=0)
    assert TOY.options("tiny", splits=99).splits == 4
    assert TOY.command(TOY.options(splits=2)) == "safecf reproduce toy --splits 2"


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
    monkeypatch.setattr("safecf.experiments.trial.load_split", lambda *_: replace(whole, test=None))


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
