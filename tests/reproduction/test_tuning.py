"""Tuning: rounds that follow from each other, and the presets that come out; nothing is trained."""

import numpy as np
import pytest

from reproduction import tuning
from reproduction.base import Options, Result, Results, canonical
from reproduction.searches import SEARCHES

BEST = {"unobserved_weight": 0.1, "regularization": 0.004, "normalisation": 0.8, "bandwidth": 0.3}


def found(cell):
    """A user's recall that falls with the distance from the best options, the same for all."""
    options, rng = cell.settings["options"], np.random.default_rng(cell.settings["seed"])
    distance = sum(
        abs(np.log(options[name] / best)) for name, best in BEST.items() if name in options
    )
    size = 0.01 * (options.get("factors") == 512)
    rows = [
        np.full(10, 1 / (2 + distance) + size - 0.001 * abs(epoch - 24)) + 1e-6 * rng.random()
        for epoch in cell.settings["epochs"]
    ]
    record = {"epochs": cell.settings["epochs"], "recall@20": np.array(rows)}
    return Result(cell.settings, record)


def search(data="ml-1m"):
    """Run everything, and return the results and the number of cells of each round."""
    options = tuning.EXPERIMENT.options(data)
    wanted, results, counts = tuning.cells(options), Results(()), []
    while wanted:
        counts.append(len(wanted))
        results += map(found, wanted)
        known = tuning.by_settings(results)
        wanted = [c for c in tuning.then(results, options) if canonical(c.settings) not in known]
    return options, results, counts


@pytest.fixture(scope="module")
def searched():
    return search()


def named(name, which="tuned"):
    return next(s for s in SEARCHES["ml-1m"] if (s.which, s.name) == (which, name))


def test_rounds_follow_each_other_and_then_the_repetitions(searched):
    _, _, counts = searched
    random = [s for s in SEARCHES["ml-1m"] if s.trials is not None]
    assert counts[1] >= sum(s.trials for s in random) / 2  # and the repetitions of the grids
    assert len(counts) == 1 + len(tuning.WIDTHS) + 1


@pytest.mark.parametrize("name", ["iALS", "ERM-MF", "SAFER2"])
def test_every_round_is_nearer(searched, name):
    options, results, _ = searched
    known, one = tuning.by_settings(results), named(name)
    tried = tuning.tried(one, known, options)
    values = [
        max(tuning._values(known[tuning._key(one, t, options)], one.objective)) for t in tried
    ]
    first = one.trials
    bests = [max(values[: first + n * first // 2]) for n in range(len(tuning.WIDTHS) + 1)]
    assert bests == sorted(bests)
    assert bests[-1] > bests[0]
    assert all(each not in tried[:place] for place, each in enumerate(tried))


@pytest.mark.parametrize("name", ["iALS", "SAFER2"])
def test_the_preset_has_the_best_size_and_epochs(searched, name):
    options, results, _ = searched
    best, *others = tuning.compare(named(name), tuning.by_settings(results), options)
    assert (best.options["factors"], best.epochs) == (512, 24)
    assert len(others) == tuning.KEPT * 4 - 1
    assert all(best.value >= each.value - tuning.SAME for each in others)


def test_a_grid_has_one_round_and_one_size(searched):
    options, results, _ = searched
    known, one = tuning.by_settings(results), named("SAFER2", "grid")
    assert len(tuning.tried(one, known, options)) == 5**3
    assert {each.options["factors"] for each in tuning.compare(one, known, options)} == {32}


def test_other_starts_are_used_in_the_repetitions(searched):
    _, results, _ = searched
    long = [each for each in results if each.settings["epochs"][-1] == 32]
    assert {each.settings["seed"] for each in long} == {1, 2, 3}
    assert {each.settings["split"] for each in results} == {tuning.SEED}


def test_fewer_trials_are_fewer_cells():
    assert len(tuning.cells(Options("ml-1m", trials=4))) <= 4 * len(SEARCHES["ml-1m"])


def test_of_equals_the_smaller_and_shorter_is_taken(monkeypatch, searched):
    options, results, _ = searched
    monkeypatch.setattr(tuning, "SAME", 1.0)
    first, *_ = tuning.compare(named("SAFER2"), tuning.by_settings(results), options)
    assert (first.options["factors"], first.epochs) == (128, 8)


def test_there_is_a_preset_for_every_size(searched):
    options, results, _ = searched
    one = named("iALS")
    found = tuning.compare(one, tuning.by_settings(results), options)
    (which, first), *sized = tuning.chosen(one, found, options)
    assert (which, first.name, first.options["factors"]) == ("tuned", "iALS", 512)
    assert [(each.name, each.options["factors"]) for _, each in sized] == [
        (f"iALS, d = {size}", size) for size in (128, 256, 512, 1024)
    ]
    assert {which for which, _ in sized} == {"sized"}
    assert sized[2][1].options == first.options
