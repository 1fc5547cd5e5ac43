"""Every experiment on tiny data, from its cells to its page; tuning never scores test users."""

import csv
import re
from dataclasses import replace

import numpy as np
import pytest

import reproduction
from reproduction import data, presets
from reproduction.base import Options, canonical
from reproduction.experiments import tuning
from reproduction.store import Store
from reproduction.tasks.quality import quality
from reproduction.tasks.trial import trial
from safecf.models.presets import read
from tests.long import LONG

LONGEST = {"constants", "defaults", "tuning"}


def small(name, **more):
    """Return options that run little of an experiment on tiny data."""
    return reproduction.load(name).options("tiny", splits=2, seeds=1, trials=1, **more)


@pytest.mark.filterwarnings("ignore")  # such small runs need not converge
@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=LONG if each in LONGEST else ()) for each in reproduction.NAMES],
)
def test_it_runs_and_renders(name, render, shared_cells):
    experiment, options = reproduction.load(name), small(name)
    assert experiment.name == name
    page = render(name, options)
    text = page.read_text()
    assert f"`{experiment.command(options)}`" in text
    assert ("numbers mean nothing" in text) == bool(experiment.data)
    assert "nan" not in re.findall(r"\bnan\b", text)
    with page.with_suffix(".csv").open() as file:
        assert list(csv.DictReader(file))
    for link in re.findall(r"\]\(([^)]*)\)", text):
        assert (page.parent / link).is_file()
    before = {file.name: file.read_bytes() for file in page.parent.iterdir()}
    count = len(list(shared_cells.iterdir()))
    render(name, options, render_only=True)
    assert {file.name: file.read_bytes() for file in page.parent.iterdir()} == before
    assert len(list(shared_cells.iterdir())) == count


@pytest.mark.parametrize("name", reproduction.NAMES)
def test_cells_are_json_and_different(name):
    experiment = reproduction.load(name)
    cells = experiment.cells(experiment.options("tiny", splits=2, seeds=2, trials=3))
    assert len({cell.task + canonical(cell.settings) for cell in cells}) == len(cells)
    whole = experiment.options("tiny")
    assert (whole.splits, whole.seeds) == (experiment.splits, experiment.seeds)


def test_quantiles_has_no_cells_of_its_own():
    options = Options("tiny", seeds=2)
    ours, theirs = (
        {canonical(cell.settings) for cell in reproduction.load(name).cells(options)}
        for name in ("quantiles", "table-1")
    )
    assert ours < theirs


def test_numbers_of_the_page_are_those_of_the_cells(render, shared_cells):
    experiment, options = reproduction.load("robustness"), small("robustness")
    text = render("robustness", options).read_text()
    store = Store(shared_cells)
    found = [store.get(cell) for cell in experiment.cells(options)]
    mean = np.mean([each.record["recall@20"].mean() for each in found[::3]])  # iALS
    assert f"| iALS | {mean:.4f} ±" in text
    assert "2 of 50 splits, 1 of 10 seeds" in text


def safer2():
    return presets.load("tiny", "paper")["SAFER2"]


def test_scores_are_determined_by_the_settings():
    settings = presets.settings(safer2(), "tiny", data.SEED, 0)
    first, again = (quality(settings)["recall@20"] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    for change in ({"seed": 1}, {"split": 7}, {"on": "validation"}):
        assert not np.array_equal(quality({**settings, **change})["recall@20"], first)


@pytest.fixture
def no_test_users(monkeypatch):
    """Let scoring of test users fail."""
    whole = data.load_split("tiny")
    monkeypatch.setattr("reproduction.tasks.trial.load_split", lambda *_: replace(whole, test=None))


@pytest.mark.filterwarnings("ignore")
def test_tuning_scores_validation_users_only(no_test_users):
    cells = tuning.cells(Options("tiny", trials=1))
    assert {cell.run for cell in cells} == {trial}
    for cell in cells:
        found = trial(cell.settings)
        assert len(found["recall@20"][0]) == 60
    held_out = data.load_split("tiny").validation.target
    assert held_out.shape[0] == 60


def test_a_trial_scores_every_epoch_as_a_shorter_one_would(no_test_users):
    settings = {
        **presets.settings(safer2(), "tiny", data.SEED, 0),
        "epochs": [1, 3],
    }
    settings["options"] = {**settings["options"], "iterations": 3}
    found = trial(settings)
    assert found["epochs"] == [1, 3]
    short = {**settings["options"], "iterations": 1}
    alone = quality({**settings, "options": short, "on": "validation"})
    np.testing.assert_array_equal(found["recall@20"][0], alone["recall@20"])


@pytest.mark.filterwarnings("ignore")
def test_tuning_writes_the_presets_that_it_finds(tmp_path, render):
    file = tmp_path / "mine.toml"
    render("tuning", small("tuning", presets=file))
    found = read(file)["tuned"]["tiny"]["SAFER2"]
    assert found.found == "python -m reproduction tuning --data tiny --trials 1"
    assert found.options["factors"] in (4, 6)
    assert found.options["iterations"] in (1, 2)
