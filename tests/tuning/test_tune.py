"""`tune`: the same trials for the same seed, ranges, budgets, and what is done with the best."""

import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

import safecf
from safecf import EASE, IALS, SAFER2, Interactions, ParameterWarning, datasets
from safecf.evaluation import evaluate
from safecf.tuning import Choice, LogInteger, LogUniform, TuningInterrupted, Uniform
from tests.helpers import refused
from tests.tuning.conftest import SMALL, tune, without_time


def test_the_same_seed_gives_the_same_trials_and_another_one_others(split, model, tuned):
    again, other = tune(model, split, trials=13), tune(model, split, trials=4, seed=1)
    assert without_time(again)[0] == without_time(tuned)[0][:13]
    options = [[t["regularization"] for t in each.trials[1:]] for each in (again, other)]
    assert not set(options[0]) & set(options[1])


def test_trial_0_are_the_defaults_in_the_middle_of_the_ranges(tuned):
    search = tuned.searches[0]
    first, defaults = search.trials[0], SAFER2().get_params()
    assert list(first.options) == ["unobserved_weight", "regularization", "bandwidth"]
    for name, each in search.space.items():
        assert each.place(first.options[name]) == pytest.approx(0.5, abs=5e-3)  # rounded ends
        if defaults[name] != "auto":
            assert first.options[name] == defaults[name]
    for trial in search.trials[1:]:
        assert all(search.space[name].contains(value) for name, value in trial.options.items())


def test_ranges_can_be_given_and_options_fixed(split):
    space = {"bandwidth": LogUniform(1.0, 2.0), "kernel": Choice(("uniform", "logistic"))}
    space |= {"regularization": None, "normalisation": Uniform(0.5, 1.0)}
    model = SAFER2(4, iterations=2, unobserved_weight=0.01)
    found = tune(model, split, trials=8, space=space)
    assert set(found.searches[0].space) == {"bandwidth", "kernel", "normalisation"}
    for trial in found.trials[1:]:
        assert 1 <= trial["bandwidth"] <= 2
        assert trial["kernel"] in ("uniform", "logistic")
        assert 0.5 <= trial["normalisation"] <= 1
    assert found.best_options["unobserved_weight"] == 0.01
    assert "regularization" not in found.best_options


def test_values_near_an_end_that_could_be_wider_are_told(split):
    space = {"normalisation": Uniform(0.0, 1.0), "bandwidth": LogUniform(0.1, 1.0)}
    space |= {"factors": LogInteger(8, 64), "kernel": Choice(("gaussian", "logistic"))}
    search = tune(SAFER2(8, iterations=2), split, trials=1, space=space).searches[0]
    ends = {"normalisation": 1.0, "bandwidth": 0.99, "factors": 8, "kernel": "gaussian"}
    found = search.edges(replace(search.trials[0], options=search.trials[0].options | ends))
    assert found == ["bandwidth", "factors"]


def test_pruning_ends_the_worse_trials_and_spares_the_best(tuned):
    search = tuned.searches[0]
    pruned = [each for each in search.trials if each.state == "pruned"]
    complete = [each for each in search.trials if each.state == "complete"]
    assert pruned
    assert search.pick().state == "complete"
    assert np.mean([search.gain(t) for t in pruned]) < np.mean([search.gain(t) for t in complete])
    assert all(max(each.curve) < 12 for each in pruned)
    assert all(max(each.curve) == 12 for each in complete)


def test_the_refitted_model_has_the_validation_scores_of_its_trial(tuned, split):
    best = tuned.best
    for model, trial in zip(tuned.models, tuned.picked, strict=True):
        found = evaluate(model, split, on="validation")
        assert trial.scores == (found.mean("recall@20"), found.tail("recall@20", 0.3))
        assert model.iterations == trial.epochs == len(model.history)
    options = {k: v for k, v in tuned.best_options.items() if k in best.options}
    assert options == ({} if best.number == 0 else best.options)
    assert SAFER2(**tuned.best_options).get_params() == tuned.best_model.get_params()


def test_evaluations_are_of_the_test_users(tuned, split):
    theirs, defaults, ours = tuned.evaluations  # the others are compared with the first
    names = [each.model for each in tuned.evaluations]
    assert names == ["IALS (tuned)", "SAFER2 (defaults)", "SAFER2 (tuned)"]
    plain = SAFER2(8, iterations=12, random_state=0).fit(split.training, show_progress=False)
    assert defaults.mean("recall@20") == evaluate(plain, split).mean("recall@20")
    for model, found in zip(tuned.models, (ours, theirs), strict=True):
        assert found.mean("ndcg@50") == evaluate(model, split).mean("ndcg@50")


def test_baselines_have_the_same_budget(tuned):
    ours, theirs = tuned.searches
    assert len(ours.trials) == len(theirs.trials) == 20
    assert (ours.task, ours.budget, ours.seed) == (theirs.task, theirs.budget, theirs.seed)


def test_the_seed_is_that_of_models_without_one(split):
    models = IALS(4, iterations=2), SAFER2(4, iterations=2, random_state=7)
    found = tune(models[0], split, trials=1, seed=3, against=models[1:])
    assert [each.random_state for each in found.models] == [3, 7]


def test_a_number_picks_a_trial_of_the_first_model(split, small):
    assert small.best.number != 0
    found = tune(SMALL, split, trials=4, pick=0, against=[SMALL])
    assert [each.number for each in found.picked] == [0, small.best.number]


def test_minutes_end_a_search(split, model):
    found = tune(model, split, trials=1000, minutes=0.002)
    spent = [each.seconds for each in found.searches[0].trials]
    assert sum(spent[:-1]) < 0.12 <= sum(spent)


def test_objectives_and_picks(split, model):
    for kind in ("mean", "tail"):
        found = tune(model, split, trials=12, objective=kind)
        best, search = getattr(found.best.scores, kind), found.searches[0]
        assert best == max(each[kind] for each in found.trials)
        assert search.pick("mean") == search.front[-1]
        assert search.pick("tail") == search.front[0]
        assert search.pick(4).number == 4
        with refused(ValueError, "pick=99: SAFER2 has no such trained trial"):
            search.pick(99)


def test_the_front_is_shown_as_records(tuned):
    means, tails = ([each[part] for each in tuned.front] for part in ("mean", "tail"))
    assert (means, tails) == (sorted(means), sorted(tails, reverse=True))
    assert all(each in tuned.trials for each in tuned.front)
    assert tuned.best.number in {each["trial"] for each in tuned.front}


def test_a_model_without_epochs_is_tuned(split):
    found = tune(EASE, split, trials=4, metric="ndcg@10")
    assert [each.epochs for each in found.searches[0].trials] == [1] * 4
    assert "iterations" not in found.best_options
    assert "ndcg@10" in found.evaluations[0].metrics


def test_interactions_are_split_with_their_ids():
    matrix = datasets.synthetic(200, 60, 3000, tastes=3).matrix
    items = [f"i{n}" for n in range(60)]
    data = Interactions.from_csr(matrix, [f"u{n}" for n in range(200)], items)
    found = tune("IALS", data, trials=2, space={"factors": Choice((4,))})
    assert found.searches[0].task.split.test.target.shape[0] == 20
    assert set(found.best_model.item_ids) <= set(items)


@pytest.mark.filterwarnings("ignore:nothing was learned")
def test_settings_that_cannot_be_trained_are_failed_trials(split):
    space = {"ridge_exponent": Uniform(0.5, 10), "unobserved_weight": LogUniform(1e-2, 1e15)}
    found = tune(IALS(4, iterations=3), split, trials=8, space=space)
    failed = [each for each in found.searches[0].trials if each.state == "failed"]
    assert failed
    assert all(each.error for each in failed)
    assert found.best.state == "complete"


def test_ctrl_c_keeps_what_was_done(split, model, tmp_path, monkeypatch):
    study, fit, looks = tmp_path / "mine.sqlite", SAFER2.fit, []

    def interrupted(self, data, *, callback, **options):
        def look(*epoch):
            looks.append(epoch)
            if len(looks) == 30:  # in the third training at the earliest
                raise KeyboardInterrupt
            return callback(*epoch)

        return fit(self, data, callback=look, **options)

    monkeypatch.setattr(SAFER2, "fit", interrupted)
    with pytest.raises(TuningInterrupted, match=r"SAFER2: \d trials, best mean 0\.\d+ tail 0"):
        tune(model, split, trials=6, study=study)
    trained = []

    def counted(self, *arguments, **options):
        trained.append(self)
        return fit(self, *arguments, **options)

    monkeypatch.setattr(SAFER2, "fit", counted)
    resumed = tune(model, split, trials=6, study=study)
    again = len(trained)
    assert without_time(resumed) == without_time(tune(model, split, trials=6))
    assert again < len(trained) - again


def test_a_tail_without_hits_is_warned_of(split):
    model = IALS(4, iterations=2)
    with pytest.warns(ParameterWarning, match="precision@1 is 0 for the worst-off 10 %"):
        tune(model, split, metric="precision@1", level=0.1, trials=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tune(model, split, metric="precision@1", objective="mean", trials=1)


def test_the_provenance_is_saved_with_the_model_and_forgotten_by_fit(tuned, split, tmp_path):
    tuned.best_model.save(tmp_path / "best")
    found = safecf.load(tmp_path / "best")
    assert found.provenance == tuned.best_model.provenance
    assert found.provenance["trial"] == tuned.best.number
    assert found.provenance["validation"] == tuned.best.scores._asdict()
    assert found.provenance["ranges"]["bandwidth"] == str(tuned.searches[0].space["bandwidth"])
    found.fit(split.training, show_progress=False)
    assert found.provenance is None


def test_optuna_is_imported_only_when_it_is_needed():
    code = "import sys, safecf; safecf.tune; sys.exit('optuna' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_ranges_are_around_what_a_fit_has_resolved(tuned, split):
    fitted = SAFER2(8, iterations=12, random_state=0).fit(split.training, show_progress=False)
    first = tuned.searches[0].trials[0]
    assert set(fitted.resolved) == {"regularization", "unobserved_weight", "bandwidth"}
    for name, value in fitted.resolved.items():
        assert first.options[name] == value


def test_defaults_that_are_picked_stay_automatic(split):
    found = tune(SAFER2(8, iterations=4), split, trials=2, pick=0)
    assert found.best.number == 0
    assert found.best_model.bandwidth == found.best_model.unobserved_weight == "auto"


def test_a_bandwidth_that_makes_no_difference_is_not_searched():
    """All histories are the same, so are all losses, and the bandwidth resolves to inf."""
    users, items = np.repeat(np.arange(60), 10), np.tile(np.arange(10), 60)
    same = safecf.split.strong_generalization(users, items, heldout=10)
    model = SAFER2(4, iterations=3, random_state=0)
    found = tune(model, same, trials=3, metric="ndcg")
    assert set(found.searches[0].space) == {"regularization", "unobserved_weight"}
    assert len(found.trials) == 3
