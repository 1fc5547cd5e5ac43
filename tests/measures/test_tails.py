"""The tail mean against a twin, and its identities."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safecf.measures.tails import in_tail, tail_mean, value_at_risk

scores_of_users = st.lists(st.floats(0, 1), min_size=1, max_size=30)
levels = st.floats(0.01, 1)


def slow_tail_mean(scores, level):
    """Fill a budget of level * n users from the worst one on."""
    left = budget = level * len(scores)
    total = 0.0
    for score in sorted(scores):
        share = min(left, 1.0)
        total += share * score
        left -= share
    return total / budget


@given(scores_of_users, levels)
def test_tail_mean_is_its_definition(scores, level):
    assert tail_mean(scores, level) == pytest.approx(slow_tail_mean(scores, level), abs=1e-12)


@given(scores_of_users)
def test_level_1_is_the_mean(scores):
    assert tail_mean(scores, 1.0) == pytest.approx(np.mean(scores), abs=1e-12)


@given(scores_of_users, levels)
def test_no_user_in_the_tail_is_forgotten(scores, level):
    """Rockafellar and Uryasev: the tail mean is max_t { t - mean(max(t - score, 0)) / level }."""
    values = np.array(scores)
    best = max(t - np.maximum(t - values, 0).mean() / level for t in values)
    assert tail_mean(scores, level) == pytest.approx(best, abs=1e-9)


@given(scores_of_users, levels, st.integers(0, 5))
def test_users_without_a_score_do_not_count(scores, level, missing):
    with_missing = np.array([math.nan] * missing + scores)
    assert tail_mean(with_missing, level) == tail_mean(scores, level)


def test_the_boundary_user_counts_by_a_fraction():
    assert tail_mean([1.0, 0.0, 1.0, 1.0], 0.4) == pytest.approx(0.6 / 1.6)
    assert tail_mean([1.0, 0.25, 0.5], 0.01) == 0.25


@pytest.mark.parametrize("level", [0, -0.1, 1.1, math.nan])
def test_bad_levels_are_refused(level):
    with pytest.raises(ValueError, match=f"level is {level}; it is a share of users"):
        tail_mean([0.5], level)


def test_bad_scores_are_refused():
    with pytest.raises(ValueError, match=r"shape \(1, 2\); give one score per user"):
        tail_mean([[0.5, 0.5]], 0.5)
    for scores in ([], [math.nan, math.nan]):
        with pytest.raises(ValueError, match="no user has a score"):
            tail_mean(scores, 0.5)


@given(scores_of_users, levels)
def test_value_at_risk_is_the_slope_of_the_tail(scores, level):
    """Level * tail mean is linear between users; its slope is the boundary user's score."""
    step = 1e-4 / len(scores)
    # one-sided, because at a whole number of users the slope jumps
    left = level - step
    rise = level * tail_mean(scores, level) - left * tail_mean(scores, left)
    if math.ceil(level * len(scores)) == math.ceil(left * len(scores)):
        assert rise / step == pytest.approx(value_at_risk(scores, level), abs=1e-6)


@given(scores_of_users, levels)
def test_the_tail_holds_its_share_of_users_and_only_those_up_to_the_boundary(scores, level):
    values = np.array(scores)
    inside = in_tail(values, level)
    boundary = value_at_risk(values, level)
    assert np.count_nonzero(inside) >= level * values.size * (1 - 1e-9)
    assert np.count_nonzero(values < boundary) < max(level * values.size, 1)
    assert values[inside].max() == boundary
    assert (values[~inside] > boundary).all()


def test_value_at_risk_is_not_misled_by_rounding():
    assert value_at_risk(np.arange(100.0), 0.29) == 28
    assert value_at_risk(np.arange(10.0), 1.0) == 9
    assert value_at_risk([3.0, math.nan, 1.0, 2.0], 0.34) == 2


def test_users_without_a_score_are_in_no_tail():
    np.testing.assert_array_equal(in_tail([math.nan, 0.0, 1.0], 1.0), [False, True, True])
