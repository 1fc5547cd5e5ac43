"""Trials: curves on the validation users, the best epoch, and the front."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safecf import IALS, CVaRMF, FileFormatError, datasets
from safecf.evaluation import evaluate
from safecf.split import strong_generalization
from safecf.tuning import Objective, Scores, Trial, pareto_front
from safecf.tuning.trials import COMPLETE, FAILED, PRUNED, Task, best_epoch
from tests.helpers import refused
from tests.strategies import damaged


@pytest.fixture(scope="module")
def task():
    matrix = datasets.synthetic(300, 80, 6000, tastes=3).matrix.tocoo()
    return Task(strong_generalization(matrix.row, matrix.col, heldout=40), Objective())


FAILURE = Trial(1, {}, FAILED, 0, None, error="diverged")
CURVE = {3: Scores(0.2, 0.1), 6: Scores(0.3, 0.1)}
TRIAL = Trial(2, {"a": 0.1}, COMPLETE, 6, Scores(0.3, 0.1), CURVE, 1.5)


def trial_of(number, mean, tail):
    return Trial(number, {}, COMPLETE, 1, Scores(mean, tail))


scores = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=30)


@given(scores)
def test_the_front_is_what_nothing_dominates(found):
    trials = [trial_of(n, *each) for n, each in enumerate(found)]
    front = pareto_front(trials)

    def dominates(one, other):
        return one != other and one[0] >= other[0] and one[1] >= other[1]

    points = [each.scores for each in front]
    assert {tuple(p) for p in points} == {
        p for p in found if not any(dominates(other, p) for other in found)
    }
    assert points == sorted(points)
    assert len(set(points)) == len(points)


def test_failed_trials_are_not_on_the_front():
    assert pareto_front([FAILURE]) == []
    assert [each.number for each in pareto_front([trial_of(0, 0.1, 0.1), FAILURE])] == [0]


def test_a_curve_has_the_scores_of_shorter_trainings(task):
    curve, pruned = task.run(IALS(4, iterations=25, random_state=0))
    assert list(curve) == [3, 6, 9, 12, 15, 18, 21, 24, 25]
    assert not pruned
    for epochs in (6, 25):
        model = IALS(4, iterations=epochs, random_state=0)
        model.fit(task.training, show_progress=False)
        found = evaluate(model, task.split, on="validation")
        assert curve[epochs] == (found.mean("recall@20"), found.tail("recall@20", 0.3))


def test_a_hopeless_training_ends_and_one_that_ends_by_itself_is_scored_then(task):
    curve, pruned = task.run(IALS(4, iterations=20, random_state=0), lambda curve: len(curve) == 3)
    assert (list(curve), pruned) == ([2, 4, 6], True)
    model = CVaRMF(4, iterations=200, step_size=10.0, random_state=0)
    curve, _ = task.run(model)
    assert max(curve) == len(model.history) < 200


def test_errors_are_recorded(task):
    model = IALS(4, init_std=1e6, unobserved_weight=1e30, random_state=0)
    found = task.try_options(3, {}, model, Scores(0.5, 0.5), lambda curve: False)
    assert (found.number, found.state, found.scores) == (3, FAILED, None)
    assert "unobserved_weight" in found.error


def test_the_best_epoch_has_the_largest_gain_and_is_the_earliest():
    curve = {1: Scores(0.1, 0.4), 2: Scores(0.3, 0.3), 3: Scores(0.3, 0.3), 4: Scores(0.4, 0.1)}
    default = Scores(0.4, 0.1)
    assert best_epoch(curve, Objective(kind="mean"), default) == 4
    assert best_epoch(curve, Objective(kind="tail"), default) == 1
    assert best_epoch({n: curve[n] for n in (2, 3)}, Objective(), default) == 2


@pytest.mark.parametrize("trial", [TRIAL, FAILURE])
def test_trials_survive_json(trial):
    assert Trial.from_dict(trial.to_dict()) == trial


@given(st.data())
def test_a_damaged_trial_is_read_whole_or_refused(data):
    record = TRIAL.to_dict()
    changed = data.draw(damaged(record))
    try:
        found = Trial.from_dict(changed, "trial 2")
    except FileFormatError as problem:
        text = str(problem)
        assert text.startswith("trial 2: ")
        assert text.endswith("; choose another study")
        assert "\n" not in text
        assert len(text) < 500
        assert changed != record
        return
    assert found.to_dict() == changed | {"scores": found.to_dict()["scores"]}
    assert isinstance(found.number, int)
    assert found.seconds >= 0
    assert found.state in (COMPLETE, PRUNED, FAILED)
    for epoch, both in found.curve.items():
        assert all(map(math.isfinite, (epoch, *both)))
    if found.state != FAILED:
        assert found.epochs in found.curve
        assert min(found.curve) >= 1
        assert [*found.scores] == changed["scores"]
        assert all(map(math.isfinite, found.scores))


WRONG = [
    ("number", "0", "'number' is a str, not a int"),
    ("state", "x" * 5000, "its state is 'xxx"),
    ("epochs", 2, "'epochs' is no epoch of its 'curve'"),
    ("scores", [0.3, None], "'scores' holds [0.3, None], which are not 2 numbers"),
    ("scores", [10**400, 0.1], "'scores' holds a number that is not finite"),
    ("seconds", None, "it took nan seconds"),
]


@pytest.mark.parametrize(("key", "value", "words"), WRONG)
def test_what_is_wrong_with_a_trial_is_told(key, value, words):
    with refused(FileFormatError, f"trial 2: {words}", "; choose another study"):
        Trial.from_dict(TRIAL.to_dict() | {key: value}, "trial 2")
