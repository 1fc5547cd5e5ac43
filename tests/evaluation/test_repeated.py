"""Evaluations over several splits: means of the splits, and users drawn with all appearances."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from safecf import IALS, datasets
from safecf.evaluation import Comparison, compare, evaluate, over_splits

METRIC = "recall@20"
LEVELS = (0.1, 0.3, 1.0)


@pytest.fixture(scope="module")
def on_splits(made_up):
    """Return a function that makes a model's evaluations on splits with 60 of 150 users each."""

    def make(name, splits, gain=0.0):
        people = np.random.default_rng(0).uniform(0.2, 1, 150)  # how easy each user is
        found = []
        for split in range(splits):
            rng = np.random.default_rng([1, split])
            ids = np.sort(rng.choice(150, 60, replace=False))
            scores = np.round(np.clip(people[ids] + rng.normal(0, 0.1, 60) + gain, 0.1, 2), 1)
            each = made_up(name, scores, group=ids % 2, data=f"split {split}")
            found.append(replace(each, users=replace(each.users, ids=ids)))
        return found

    return make


def test_means_and_tails_are_those_of_the_splits(on_splits):
    parts = on_splits("m", 4)
    found = over_splits(parts)
    assert found.num_splits == 4
    assert found.num_users == np.unique([each.users.ids for each in parts]).size
    assert repr(found) == f"Evaluation('m', {found.num_users} users in 4 splits)"
    for level in LEVELS:
        assert found.tail(METRIC, level) == np.mean([each.tail(METRIC, level) for each in parts])
    curve, tails = found.tail_curve(METRIC)[1], found.split_tails(METRIC, LEVELS)
    np.testing.assert_allclose(curve, tails.mean(axis=0))
    low, high = found.interval(METRIC, 0.3, 0.9, 200, 3)
    lowest, highest = found.interval(METRIC, 0.3, 0.99, 200, 3)
    assert lowest < low < found.tail(METRIC, 0.3) < high < highest


def test_the_test_takes_every_user_once_with_the_mean_change(on_splits):
    before, after = (over_splits(on_splits(name, 3)) for name in ("old", "new"))
    changes = np.random.default_rng(3).normal(0.02, 0.1, before.scores[METRIC].size)
    after = replace(after, scores={METRIC: before.scores[METRIC] + changes})
    found = compare([before, after], resamples=20).difference("new", METRIC, 1.0)
    means = [changes[before.users.ids == user].mean() for user in np.unique(before.users.ids)]
    assert (found.wins, found.losses) == (sum(m > 0 for m in means), sum(m < 0 for m in means))
    assert found.p_value == pytest.approx(scipy.stats.wilcoxon(means, method="approx").pvalue)


def test_the_same_users_again_say_no_more_than_once(on_splits):
    """A user who is in all splits is drawn with all appearances."""
    (once,) = on_splits("m", 1)
    again = over_splits([once] * 5)
    for level in LEVELS:
        assert again.tail(METRIC, level) == pytest.approx(once.tail(METRIC, level))
        assert again.interval(METRIC, level) == pytest.approx(once.interval(METRIC, level))
    groups = [each.groups(METRIC) for each in (once, again)]
    for before, after in zip(*(each.scores for each in groups), strict=True):
        assert (before.users, before.share) == (after.users, after.share)
        assert [before.mean, before.low, before.high] == pytest.approx(
            [after.mean, after.low, after.high]
        )


def test_a_comparison_counts_splits_and_users(on_splits):
    pair = on_splits("a", 6), on_splits("b", 6, gain=0.1)
    comparison = compare(pair, resamples=50)
    for change in comparison.differences("b", METRIC):
        tails = [[each.tail(METRIC, change.level) for each in parts] for parts in pair]
        np.testing.assert_allclose(change.splits, np.transpose(tails))
        assert change.splits_won == 6
        assert change.value == pytest.approx(np.mean(tails[1]))
        lifts = [100 * (after / before - 1) for before, after in change.splits]
        assert change.split_lifts == pytest.approx(lifts)
    assert change.wins + change.ties + change.losses == comparison.baseline.num_users
    same = compare([pair[0], [replace(each, model="c") for each in pair[0]]], resamples=50)
    assert same.difference("c", METRIC, 0.3).splits_won == 0
    alone = compare([each[0] for each in pair], resamples=50)
    assert alone.difference("b", METRIC, 0.3).splits == ()


def test_a_user_counts_once_with_the_mean_change(made_up):
    ids = np.array([7, 8])
    parts = [[(0.1, 0.5), (0.4, 0.5)], [(0.2, 0.5), (0.1, 0.5)]]  # by model and split
    models = []
    for name, splits in zip("ab", parts, strict=True):
        found = [made_up(name, scores, data=str(n)) for n, scores in enumerate(splits)]
        models.append([replace(each, users=replace(each.users, ids=ids)) for each in found])
    change = compare(models, resamples=5).difference("b", METRIC, 1.0)
    assert (change.wins, change.ties, change.losses) == (0, 1, 1)  # user 7: +0.1 and -0.3


def test_one_split_is_no_repetition(on_splits):
    (once,) = on_splits("m", 1)
    assert over_splits([once]) is once
    assert (once.num_splits, once.num_users) == (1, 60)


def test_evaluate_knows_the_users_of_every_split():
    log = datasets.Log.of_matrix(datasets.synthetic(120, 40, 1500, tastes=2).matrix)
    splits = list(log.repeated_strong_generalization(heldout=30, repeats=3))
    model = IALS(4, iterations=2, random_state=0)
    parts = [evaluate(model.fit(each.training, show_progress=False), each) for each in splits]
    for split, each in zip(splits, parts, strict=True):
        assert each.users.ids.tolist() == split.user_ids[-30:].tolist()
        on = evaluate(model.fit(split.train, show_progress=False), split, on="validation")
        assert on.users.ids.tolist() == split.user_ids[-60:-30].tolist()
    found = over_splits(parts)
    assert found.losses.size == found.weights.size == 90
    ginis = [each.catalogue["gini@20"] for each in parts]
    assert found.catalogue["gini@20"] == np.mean(ginis) != max(ginis)
    assert found.training["params"] == parts[0].training["params"]
    np.testing.assert_array_equal(found.training["losses"], parts[0].training["losses"])


def test_results_are_read_back(on_splits):
    comparison = compare([on_splits("a", 3), on_splits("b", 3, gain=0.1)], resamples=40)
    record = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    again = Comparison.from_dict(record)
    for level in LEVELS:
        assert again.difference("b", METRIC, level) == comparison.difference("b", METRIC, level)
    (found,) = [e for e in record["differences"]["b"][METRIC] if e["level"] == 0.3]
    assert found["splits"] == [list(e) for e in comparison.difference("b", METRIC, 0.3).splits]


def test_what_cannot_be_put_together(on_splits, made_up):
    first, second = on_splits("m", 2)
    with pytest.raises(ValueError, match="there is no evaluation; give one for every split"):
        over_splits([])
    with pytest.raises(ValueError, match="evaluation 1 of 'm' is of 'n'; give those of one model"):
        over_splits([first, replace(second, model="n")])
    with pytest.raises(ValueError, match="evaluation 1 of 'm' is already over several splits"):
        over_splits([first, over_splits([first, second])])
    with pytest.raises(ValueError, match="evaluation 1 of 'm' has no user ids"):
        over_splits([first, made_up("m", [0.1, 0.2])])
    with pytest.raises(ValueError, match="evaluation 1 of 'm' has other metrics"):
        over_splits([first, replace(second, scores={})])
    with pytest.raises(ValueError, match="were not evaluated on the same users"):
        compare([[first, second], [replace(each, model="n") for each in (second, first)]])
