"""The bootstrap against slow references, and its seeds."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safecf.evaluation import tail_mean
from safecf.measures import bootstrap
from safecf.measures.bootstrap import (
    percentile_interval,
    resample,
    resample_clusters,
    resample_groups,
    tail_means,
    tail_means_of_counts,
)

LEVELS = (0.05, 0.3, 0.5, 1.0)

scores_of_users = st.lists(
    st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0, np.nan])), min_size=1, max_size=30
).filter(lambda scores: not np.isnan(scores).all())


@given(scores_of_users, st.lists(st.floats(0.01, 1), min_size=1, max_size=4))
def test_tail_means_are_the_tail_mean_at_every_level(scores, levels):
    expected = [tail_mean(scores, level) for level in levels]
    np.testing.assert_allclose(tail_means(scores, levels), expected, atol=1e-12)


@given(scores_of_users, st.integers(0, 5))
def test_a_draw_is_a_sample_of_users(scores, seed):
    values = np.array(scores)
    known = values[~np.isnan(values)]
    rng = np.random.default_rng(seed)
    users = rng.integers(known.size, size=(7, known.size), dtype=np.int32)
    expected = [[tail_mean(known[drawn], level) for level in LEVELS] for drawn in users]
    np.testing.assert_allclose(resample(values, LEVELS, 7, seed), expected, atol=1e-12)
    each_once = np.arange(values.size), np.zeros(values.size, int)
    clusters = resample_clusters(values, LEVELS, *each_once, 7, seed)
    np.testing.assert_allclose(clusters, expected, atol=1e-12)


@given(
    st.lists(st.floats(-3, 3) | st.sampled_from([0.0, np.inf]), min_size=2, max_size=30),
    st.sampled_from([0.0625, 0.5, 0.75, 0.875, 0.9375]),  # exact as floats
)
def test_intervals_leave_their_share_of_all_draws_outside(draws, confidence):
    outside = (1 - Fraction(confidence)) / 2 * (len(draws) - 1)
    low = max(d for d in draws if sum(each < d for each in draws) <= outside)
    high = min(d for d in draws if sum(each > d for each in draws) <= outside)
    found = percentile_interval(np.array([draws, draws[::-1]]).T, confidence)
    np.testing.assert_array_equal(found, [[low, low], [high, high]])


def test_blocks_change_nothing_but_memory(monkeypatch):
    scores = np.random.default_rng(0).random(64)  # an even number, which ends every row of draws
    sizes, once = np.array([24, 40]), (np.arange(64), np.zeros(64, int))
    calls = (
        lambda: resample(scores, LEVELS, 40, seed=1),
        lambda: resample_clusters(scores, LEVELS, *once, 40, seed=1),
        lambda: resample_groups(scores, sizes, 40, seed=1),
    )
    whole = [call() for call in calls]
    monkeypatch.setattr(bootstrap, "BLOCK", 3 * 64)
    for call, expected in zip(calls, whole, strict=True):
        np.testing.assert_array_equal(call(), expected)


def test_the_same_seed_draws_the_same_users_for_every_model():
    scores = np.random.default_rng(0).random(50)
    once, other = (resample(scores, LEVELS, 100, seed=seed) for seed in (3, 4))
    assert (once != other).any()
    shifted = resample(scores + 0.25, LEVELS, 100, seed=3)
    np.testing.assert_allclose(shifted - once, 0.25, atol=1e-12)


def test_groups_draw_their_own_users():
    sizes, draws = np.array([1, 5, 40]), 3000
    values = np.concatenate([np.full(size, 10.0**place) for place, size in enumerate(sizes)])
    np.testing.assert_array_equal(
        resample_groups(values, sizes, 9, 0), np.tile(sizes * 10.0 ** np.arange(3), (9, 1))
    )
    values = np.random.default_rng(0).random(46)
    found = resample_groups(values, sizes, draws, 0) / sizes
    for column, part in enumerate(np.split(values, np.cumsum(sizes)[:-1])):
        error = part.std() / part.size**0.5
        assert found[:, column].mean() == pytest.approx(
            part.mean(), abs=5 * error / draws**0.5 + 1e-9
        )
        assert found[:, column].std() == pytest.approx(error, rel=0.1)


def test_tail_means_of_counts_are_those_of_repeated_users():
    rng = np.random.default_rng(0)
    scores = rng.random(50).round(1)
    scores[7] = np.nan
    counts = rng.integers(0, 4, (6, 50))
    found = tail_means_of_counts(scores, counts, LEVELS)
    for row, means in zip(counts, found, strict=True):
        expected = [tail_mean(np.repeat(scores, row), level) for level in LEVELS]
        np.testing.assert_allclose(means, expected)
    assert np.isnan(tail_means_of_counts(scores, 0 * counts, LEVELS)).all()


def by_hand(scores, users, splits, level, resamples, seed):
    """Return the means over splits for draws of users, each with all appearances."""
    people, rng, found = np.unique(users[~np.isnan(scores)]), np.random.default_rng(seed), []
    for _ in range(resamples):
        drawn = people[rng.integers(people.size, size=people.size, dtype=np.int32)]
        rows = np.concatenate([np.flatnonzero(users == user) for user in drawn])
        parts = [scores[rows[splits[rows] == split]] for split in np.unique(splits)]
        known = [part[~np.isnan(part)] for part in parts]
        found.append(np.mean([tail_mean(part, level) for part in known if part.size]))
    return found


@pytest.mark.parametrize("size", [3, 40])
def test_users_are_drawn_with_all_appearances(size):
    rng = np.random.default_rng(1)
    users = np.concatenate([rng.choice(100, size, replace=False) for _ in range(4)])
    splits = np.repeat(np.arange(4), size)
    scores = rng.integers(0, 6, users.size) / 5
    scores[1] = np.nan
    found = resample_clusters(scores, [0.3, 1.0], users, splits, 60, 5)
    for column, level in enumerate((0.3, 1.0)):
        expected = by_hand(scores, users, splits, level, 60, 5)
        np.testing.assert_allclose(found[:, column], expected)


@pytest.mark.parametrize("level", [0.1, 0.3, 1.0])
def test_intervals_hold_the_true_tail_about_as_often_as_they_say(level):
    """Of uniform scores it is level / 2; 0.9 of 300 samples have a standard error of 0.017."""
    held = 0
    for run in range(300):
        scores = np.random.default_rng([7, run]).random(300)
        (low,), (high,) = percentile_interval(resample(scores, [level], 200, run), 0.9)
        held += low <= level / 2 <= high
    assert 0.85 <= held / 300 <= 0.95


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="resamples=1 has to be at least 2; try resamples=2000"):
        resample([0.1, 0.2], [0.5], 1, 0)
    with pytest.raises(ValueError, match=r"level=1\.5"):
        resample([0.1, 0.2], [0.5, 1.5], 10, 0)
    for share in (0, 1, 95):
        with pytest.raises(ValueError, match=f"confidence={share} has to lie between 0 and 1"):
            percentile_interval(np.ones((5, 1)), share)
    with pytest.raises(ValueError, match="no user has a score"):
        resample([np.nan], [0.5], 10, 0)
