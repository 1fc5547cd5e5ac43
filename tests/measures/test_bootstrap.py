"""The bootstrap against a slow twin, its coverage, and its seeds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.coverage import covered, like_auc
from safecf.measures import bootstrap
from safecf.measures.bootstrap import (
    ENOUGH,
    percentile_interval,
    resample,
    resample_clusters,
    tail_means,
    tail_means_of_counts,
)
from safecf.measures.tails import tail_mean

LEVELS = (0.05, 0.3, 0.5, 1.0)

scores_of_users = st.lists(
    st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=30
)


@given(scores_of_users, st.lists(st.floats(0.01, 1), min_size=1, max_size=4))
def test_tail_means_are_the_tail_mean_at_every_level(scores, levels):
    expected = [tail_mean(scores, level) for level in levels]
    np.testing.assert_allclose(tail_means(scores, levels), expected, atol=1e-12)


@given(scores_of_users, st.integers(0, 5))
def test_a_draw_is_a_sample_of_users(scores, seed):
    values = np.array(scores)
    rng = np.random.default_rng(seed)
    users = rng.integers(values.size, size=(7, values.size), dtype=np.int32)
    expected = [[tail_mean(values[drawn], level) for level in LEVELS] for drawn in users]
    np.testing.assert_allclose(resample(values, LEVELS, 7, seed), expected, atol=1e-12)


def test_blocks_change_nothing_but_memory(monkeypatch):
    scores = np.random.default_rng(0).random(64)  # an even number, which ends every row of draws
    whole = resample(scores, LEVELS, 40, seed=1)
    monkeypatch.setattr(bootstrap, "BLOCK", 3 * 64)
    np.testing.assert_array_equal(resample(scores, LEVELS, 40, seed=1), whole)


def test_the_same_seed_draws_the_same_users_for_every_model():
    scores = np.random.default_rng(0).random(50)
    once, again = resample(scores, LEVELS, 100, seed=3), resample(scores, LEVELS, 100, seed=3)
    np.testing.assert_array_equal(once, again)
    assert (once != resample(scores, LEVELS, 100, seed=4)).any()
    shifted = resample(scores + 0.25, LEVELS, 100, seed=3)
    np.testing.assert_allclose(shifted - once, 0.25, atol=1e-12)


def test_users_without_a_score_are_left_out():
    scores = np.random.default_rng(0).random(50)
    some = np.insert(scores, [0, 20, 50], np.nan)
    np.testing.assert_array_equal(resample(some, LEVELS, 9, 0), resample(scores, LEVELS, 9, 0))


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


def test_one_appearance_each_is_the_plain_bootstrap():
    scores = np.random.default_rng(0).random(50)
    scores[3] = np.nan
    users, splits = np.arange(50), np.zeros(50, dtype=int)
    clusters = resample_clusters(scores, LEVELS, users, splits, 30, 2)
    np.testing.assert_array_equal(clusters, resample(scores, LEVELS, 30, 2))


def test_intervals_cover_at_about_the_nominal_rate():
    """Of uniform scores the tail mean is level / 2; the models' means differ by 0.02."""
    levels, runs, users = np.array([0.1, 0.3, 1.0]), 300, 300
    covered, paired_covered, widths = np.zeros(3), 0, []
    for run in range(runs):
        rng = np.random.default_rng([7, run])
        before = rng.random(users)
        after = before + rng.normal(0.02, 0.1, users)
        draws = [resample(scores, levels, 200, run) for scores in (before, after)]
        low, high = percentile_interval(draws[0], 0.9)
        covered += (low <= levels / 2) & (levels / 2 <= high)
        paired_low, paired_high = percentile_interval(draws[1] - draws[0], 0.9)
        paired_covered += paired_low[-1] <= 0.02 <= paired_high[-1]
        widths.append((paired_high[-1] - paired_low[-1]) / (high[-1] - low[-1]))
    # 0.9 with a standard error of 0.017
    assert (covered / runs >= 0.85).all()
    assert (covered / runs <= 0.95).all()
    assert 0.85 <= paired_covered / runs <= 0.95
    assert np.mean(widths) < 0.5  # pairs tell more


def test_intervals_take_infinite_draws():
    low, high = percentile_interval(np.array([[1.0], [np.inf], [2.0], [3.0], [np.inf]]), 0.5)
    assert (low[0], high[0]) == (2.0, np.inf)


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="resamples=1 has to be at least 2; try resamples=2000"):
        resample([0.1, 0.2], [0.5], 1, 0)
    with pytest.raises(ValueError, match=r"level=1\.5"):
        resample([0.1, 0.2], [0.5, 1.5], 10, 0)
    with pytest.raises(ValueError, match="confidence=95 has to lie between 0 and 1"):
        percentile_interval(np.ones((5, 1)), 95)
    with pytest.raises(ValueError, match="no user has a score"):
        resample([np.nan], [0.5], 10, 0)


@pytest.mark.parametrize("level", [0.1, 0.3, 1.0])
def test_intervals_are_trusted_from_enough_users_on(level):
    """Standard error of a share of 0.9 of 300 samples: 0.017."""
    assert covered(like_auc, round(ENOUGH / level), level, 300, 200) > 0.87
    if level < 1:
        assert covered(like_auc, 4, level, 300, 200) < 0.6


def test_the_interval_of_equal_scores_holds_them():
    assert covered(lambda rng, size: np.full(size, 0.5), 4, 0.3, samples=5, resamples=10) == 1
