"""Groups of users: their means and intervals, and which one may be called the worst."""

import numpy as np
import pytest

METRIC = "recall@20"
ENOUGH = 30  # users whose group may be called the worst


def grouped(made_up, sizes, means, seed=0):
    """Return an evaluation whose group g has `sizes[g]` users around `means[g]`."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    scores = np.clip(np.array(means)[labels] + rng.normal(0, 0.1, labels.size), 0, 1)
    return made_up("m", scores, group=labels)


def test_every_group_has_mean_share_and_interval(made_up):
    evaluation = grouped(made_up, [200, 60, 40], [0.6, 0.3, 0.5])
    scores, labels = evaluation.scores[METRIC], evaluation.users.group
    found = evaluation.groups(METRIC)
    assert [each.label for each in found.scores] == [1, 2, 0]  # the lowest mean first
    for each in found.scores:
        inside = scores[labels == each.label]
        assert each.mean == pytest.approx(inside.mean())
        assert each.share == inside.size / 300
        spread = 1.96 * inside.std() / inside.size**0.5
        assert each.low == pytest.approx(each.mean - spread, abs=0.01)
        assert each.high == pytest.approx(each.mean + spread, abs=0.01)
    assert found.smaller is None
    assert evaluation.groups(METRIC) is found  # kept
    assert made_up("m", [0.1, 0.2]).groups(METRIC).scores == []


def test_a_small_group_is_never_called_the_worst(made_up):
    evaluation = grouped(made_up, [100, ENOUGH, ENOUGH - 1, 5], [0.6, 0.5, 0.1, 0.2])
    found = evaluation.groups(METRIC)
    assert found.scores[0].label == 2  # shown, but
    assert not found.scores[0].enough
    assert evaluation.worst_group(METRIC).label == 1
    assert found.smaller.label == "2 smaller groups"
    assert found.smaller.users == ENOUGH - 1 + 5
    inside = np.isin(evaluation.users.group, [2, 3])
    assert found.smaller.mean == pytest.approx(evaluation.scores[METRIC][inside].mean())
    assert found.smaller.low < found.smaller.mean < found.smaller.high
    assert grouped(made_up, [5, 6], [0.1, 0.2]).worst_group(METRIC) is None


def test_the_worst_case_has_an_interval_of_its_own(made_up):
    """Among several equal groups, any may be the worst in another draw."""
    alone = grouped(made_up, [50, 500], [0.2, 0.9]).groups(METRIC)
    lowest = alone.scores[0]
    assert alone.worst == lowest
    alike = grouped(made_up, [50] * 8, [0.5] * 8).groups(METRIC)
    assert alike.worst.mean == alike.scores[0].mean
    assert alike.worst.high < alike.scores[0].high


def test_intervals_depend_on_seed_and_confidence(made_up):
    evaluation = grouped(made_up, [50, 40], [0.4, 0.5])
    wide, narrow = (evaluation.groups(METRIC, confidence=share).scores[0] for share in (0.99, 0.5))
    assert wide.low < narrow.low < narrow.high < wide.high
    assert evaluation.groups(METRIC, seed=1) != evaluation.groups(METRIC)
