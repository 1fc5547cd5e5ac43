"""Tuning: its rounds, and the presets that it finds; nothing is trained."""

import numpy as np
import pytest

from reproduction import search
from reproduction.base import Options, Result, Results, canonical
from reproduction.data import SEED
from reproduction.experiments import tuning
from reproduction.spaces import SEARCHES

BEST = {"unobserved_weight": 0.1, "regularization": 0.004, "normalisation": 0.8, "bandwidth": 0.3}


def found(cell):
    """Return a recall, the same for all users, that falls with the distance from `BEST`."""
    options, rng = cell.settings["options"], np.random.default_rng(cell.settings["seed"])
    distance = sum(
        abs(np.log(options[name] / best)) for name, best in BEST.items() if options.get(name)
    )
    size = 0.01 * (options.get("factors") == 512)
    rows = [
        np.full(10, 1 / (2 + distance) + size - 0.001 * abs(epoch - 24)) + 1e-6 * rng.random()
        for epoch in cell.settings["epochs"]
    ]
    record = {"epochs": cell.settings["epochs"], "recall@20": np.array(rows)}
    return Result(cell.settings, record)


def run_all(data="ml-1m"):
    """Run all rounds; return the options, the results, and the number of cells of each round."""
    options = tuning.EXPERIMENT.options(data)
    wanted, results, counts = tuning.cells(options), Results(()), []
    while wanted:
        counts.append(len(wanted))
        results += map(found, wanted)
        known = results.by_settings()
        wanted = [c for c in tuning.then(results, options) if canonical(c.settings) not in known]
    return options, results, counts


@pytest.fixture(scope="module")
def searched():
    return run_all()


def progress(searched, name, which="tuned"):
    """Return one of the searches with all results."""
    options, results, _ = searched
    found = tuning.progress(results, options)
    return next(p for p in found if (p.search.which, p.search.name) == (which, name))


def test_rounds_follow_each_other_and_then_the_repetitions(searched):
    _, _, counts = searched
    random = [s for s in SEARCHES["ml-1m"] if s.trials is not None]
    assert counts[1] >= sum(s.trials for s in random) / 2  # and the repetitions of the grids
    assert len(counts) == 1 + search.ROUNDS + 1


@pytest.mark.parametrize("name", ["iALS", "ERM-MF", "SAFER2"])
def test_further_rounds_find_better_settings(searched, name):
    done = progress(searched, name)
    tried, one = done.tried, done.search
    values = [max(search.values(done.result(one.cell(t, "ml-1m")), one.objective)) for t in tried]
    first = one.trials
    bests = [max(values[: first + n * first // 2]) for n in range(search.ROUNDS + 1)]
    assert bests == sorted(bests)
    assert bests[-1] > bests[0]
    assert all(each not in tried[:place] for place, each in enumerate(tried))


@pytest.mark.parametrize("name", ["iALS", "SAFER2"])
def test_the_preset_has_the_best_size_and_epochs(searched, name):
    best, *others = progress(searched, name).compare()
    assert (best.options["factors"], best.epochs) == (512, 24)
    assert len(others) == (search.KEPT + 1) * 4 - 1  # with the defaults
    assert all(best.value >= each.value - search.SAME for each in others)


def test_a_grid_has_one_round_and_one_size(searched):
    done = progress(searched, "SAFER2", "grid")
    assert len(done.tried) == 5**3
    assert {each.options["factors"] for each in done.compare()} == {32}


def test_repetitions_have_other_seeds(searched):
    _, results, _ = searched
    long = [each for each in results if each.settings["epochs"][-1] == 32]
    assert {each.settings["seed"] for each in long} == {1, 2, 3}
    assert {each.settings["split"] for each in results} == {SEED}


def test_training_that_diverges_has_no_value():
    settings = {"epochs": [8, 12]}
    diverged = Result(settings, {"epochs": [8], "recall@20": np.ones((1, 5))})
    assert search.values(diverged, search.MEAN) == [-np.inf, -np.inf]


def test_settings_that_diverged_are_not_proposed_again(searched):
    one = progress(searched, "iALS").search
    tried = one.first(40)
    good = [each["regularization"] < 0.005 for each in tried]
    found = one.further(tried, [1.0 if each else -np.inf for each in good], 10, 0)
    assert sum(each["regularization"] < 0.005 for each in found) > 8
    assert found == one.further(tried, [1.0 if each else -np.inf for each in good], 10, 0)


@pytest.mark.parametrize("name", ["iALS", "ERM-MF", "SAFER2, ridge in the risk"])
def test_the_defaults_are_tried_first_and_always_repeated(searched, name):
    done = progress(searched, name)
    start = done.search.start
    assert done.tried[0] == {**done.search.fixed, **start}
    assert len(done.tried) == done.search.budget
    repeated = [each for each in done.repeated if start.items() <= each.items()]
    assert [each["factors"] for each in repeated] == list(done.search.sizes)


def test_only_the_searches_that_are_named_are_run():
    names = ("SAFER2, ridge in the risk", "iALS")
    options = tuning.EXPERIMENT.options("ml-1m", searches=names)
    assert [each.search.name for each in tuning.progress(Results(()), options)] == list(names)
    assert {each.search.which for each in tuning.progress(Results(()), options)} == {"tuned"}
    assert tuning.EXPERIMENT.command(options).endswith(
        "tuning --search 'SAFER2, ridge in the risk' --search iALS"
    )
    assert tuning.EXPERIMENT.page_name(options) == "tuning-chosen"
    with pytest.raises(ValueError, match="unknown search 'SAFER3': known are 'iALS'"):
        tuning.cells(Options("ml-1m", searches=("SAFER3",)))


def test_fewer_trials_are_fewer_cells():
    assert len(tuning.cells(Options("ml-1m", trials=4))) <= 4 * len(SEARCHES["ml-1m"])


def test_of_equals_the_smaller_and_shorter_is_taken(monkeypatch, searched):
    monkeypatch.setattr(search, "SAME", 1.0)
    first, *_ = progress(searched, "SAFER2").compare()
    assert (first.options["factors"], first.epochs) == (128, 8)


def test_there_is_a_preset_for_every_size(searched):
    done = progress(searched, "iALS")
    (which, first), *sized = tuning.chosen(done.search, done.compare(), searched[0])
    assert (which, first.name, first.options["factors"]) == ("tuned", "iALS", 512)
    assert [(each.name, each.options["factors"]) for _, each in sized] == [
        (f"iALS, d = {size}", size) for size in (128, 256, 512, 1024)
    ]
    assert {which for which, _ in sized} == {"sized"}
    assert sized[2][1].options == first.options
