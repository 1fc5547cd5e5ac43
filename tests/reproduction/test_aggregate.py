"""Numbers over users, seeds and splits, compared with slow twins."""

import numpy as np
import pytest

from reproduction.aggregate import (
    estimate,
    heading,
    lift,
    lifts,
    over_splits,
    samples,
    without_users,
)
from reproduction.aggregate import gain as gain_of
from reproduction.base import Result, Results
from safecf.defaults import RESAMPLES, SEED
from safecf.measures.bootstrap import percentile_interval
from safecf.measures.tails import tail_mean

COLUMN = ("recall@20", 0.3)


def gain(before, after, column):
    found = samples({"before": before, "after": after}, column)
    return gain_of(found["before"], found["after"])


def result(scores, split=0, seed=0, users=None):
    record = {
        "recall@20": np.asarray(scores),
        "users": np.arange(len(scores)) if users is None else users,
    }
    return Result({"data": "tiny", "split": split, "seed": seed}, record)


def random_results(rng, lift_by, splits=6, users=40):
    """Return two models on the same users, one better by about a factor."""
    before, after = [], []
    for split in range(splits):
        chosen = rng.choice(200, users, replace=False)
        scores = rng.random(users)
        better = scores * lift_by + rng.normal(0, 0.02, users)
        before.append(result(scores, split, users=chosen))
        after.append(result(better, split, users=chosen))
    return before, after


def test_means_over_starts_and_splits():
    rng = np.random.default_rng(1)
    results = [result(rng.random(20), split, seed) for split in (5, 3) for seed in range(2)]
    expected = [
        np.mean([tail_mean(each.record["recall@20"], 0.3) for each in pair])
        for pair in (results[2:], results[:2])
    ]
    sample = samples({"": results}, COLUMN)[""]
    assert sample.splits == [3, 5]
    np.testing.assert_allclose(sample.values, expected)
    found = over_splits(sample)
    assert found.value == pytest.approx(np.mean(expected))
    assert found.spread == pytest.approx(np.std(expected, ddof=1))
    assert found.low < found.value < found.high
    draws = np.random.default_rng(SEED).multinomial(20, np.full(20, 1 / 20), RESAMPLES)
    slow = [
        np.mean([tail_mean(np.repeat(each.record["recall@20"], drawn), 0.3) for each in results])
        for drawn in draws
    ]
    np.testing.assert_allclose(sample.draws, slow, rtol=1e-5)
    ends = np.ravel(percentile_interval(np.array(slow)[:, None], 0.95))
    np.testing.assert_allclose([found.low, found.high], ends, rtol=1e-5)


def test_an_estimate_is_the_mean_of_the_starts_within_its_interval():
    rng = np.random.default_rng(2)
    starts = [result(rng.random(300), seed=seed) for seed in range(3)]
    found = estimate(starts, COLUMN)
    values = [tail_mean(each.record["recall@20"], 0.3) for each in starts]
    assert found.value == pytest.approx(np.mean(values))
    assert found.low < found.value < found.high
    assert np.isnan(estimate(starts[:1], COLUMN).spread)


def test_a_lift_is_paired():
    scores = np.random.default_rng(3).random(200)
    found = lift([result(scores)], [result(1.1 * scores)], COLUMN)
    np.testing.assert_allclose([found.value, found.low, found.high], 10.0)


def test_a_gain_is_paired_over_splits_and_over_users():
    before, after = random_results(np.random.default_rng(4), 1.1)
    found = gain(before, after, ("recall@20", 1.0))
    both = samples({"before": before, "after": after}, ("recall@20", 1.0))
    means = [each.values for each in both.values()]
    assert found.value == pytest.approx(100 * (means[1].mean() / means[0].mean() - 1))
    for low, high in (found.splits, found.users):
        assert 0 < low < found.value < high < 20
    assert found.won == np.mean(means[1] > means[0]) == 1
    nothing = gain(before, before, COLUMN)
    assert nothing == (0.0, (0.0, 0.0), (0.0, 0.0), 0.0)


def test_users_that_come_again_do_not_count_as_new_ones():
    """Ten times the same test set says no more of other users than once."""
    rng = np.random.default_rng(5)
    scores = rng.random(100)
    other = scores + rng.normal(0.01, 0.1, 100)
    widths = []
    for splits in (1, 10):
        pair = [[result(each, split) for split in range(splits)] for each in (scores, other)]
        low, high = gain(*pair, COLUMN).users
        widths.append(high - low)
    np.testing.assert_allclose(*widths)


def test_lifts_at_many_levels_are_those_at_each():
    rng = np.random.default_rng(7)
    before, after = [[result(rng.random(60), seed=seed) for seed in range(2)] for _ in range(2)]
    levels = [0.1, 0.3, 1.0]
    found = lifts(before, after, "recall@20", levels)
    for level, each in zip(levels, found, strict=True):
        np.testing.assert_allclose(each, lift(before, after, ("recall@20", level)))


def test_users_can_be_left_out():
    before = [result([0.1, 0.2, 0.3, 0.4], users=np.array([9, 5, 7, 3]))]
    (found,) = without_users(Results(tuple(before)), [5, 3, 100])
    np.testing.assert_array_equal(found.record["users"], [9, 7])
    np.testing.assert_array_equal(found.record["recall@20"], [0.1, 0.3])
    assert len(before[0].record["users"]) == 4


def test_other_splits_are_no_pairs():
    before, after = random_results(np.random.default_rng(6), 1.0)
    with pytest.raises(ValueError, match="same splits"):
        gain(before, after[1:], COLUMN)


def test_headings():
    assert heading(("recall@50", 1.0)) == "R@50"
    assert heading(COLUMN) == "R@20, worst-off 30 %"
