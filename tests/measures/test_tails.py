"""VaR and CVaR against slow references, and with counts of users."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safecf.evaluation import tail_mean, value_at_risk
from safecf.measures.tails import in_tail, level_name, whom
from tests.helpers import refused

scores_of_users = st.lists(st.floats(0, 1), min_size=1, max_size=30)
levels = st.floats(0.01, 1)
counted_users = st.lists(
    st.tuples(st.one_of(st.floats(-5, 5), st.sampled_from([0.0, 1.0])), st.integers(1, 5)),
    min_size=1,
    max_size=20,
)
percentages = st.integers(1, 100)


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


@given(scores_of_users, levels, st.integers(0, 5))
def test_users_without_a_score_do_not_count(scores, level, missing):
    with_missing = np.array([math.nan] * missing + scores)
    assert tail_mean(with_missing, level) == tail_mean(scores, level)


@pytest.mark.parametrize("level", [0, -0.1, 1.1, math.nan])
@pytest.mark.parametrize("measure", [tail_mean, value_at_risk])
def test_bad_levels_are_refused(measure, level):
    with refused(ValueError, f"level={level:g} has to be a share of users"):
        measure([0.5], level)


@pytest.mark.parametrize("measure", [tail_mean, value_at_risk])
def test_bad_scores_and_counts_are_refused(measure):
    with pytest.raises(ValueError, match=r"shape \(1, 2\); give one score per user"):
        measure([[0.5, 0.5]], 0.5)
    for scores in ([], [math.nan, math.nan]):
        with pytest.raises(ValueError, match="no user has a score"):
            measure(scores, 0.5)
    with pytest.raises(ValueError, match=r"counts have shape \(1,\), scores \(2,\); give"):
        measure([0.1, 0.2], 0.5, [1.0])
    for bad in (0, -1, math.nan):
        with pytest.raises(ValueError, match=rf"counts\[1\] is {float(bad)}; leave out users who"):
            measure([0.1, 0.2], 0.5, [1.0, bad])


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


@given(counted_users, levels)
def test_a_count_repeats_the_user(users, level):
    scores, counts = (np.array(each) for each in zip(*users, strict=True))
    repeated = np.repeat(scores, counts)
    expected = tail_mean(repeated, level)
    assert tail_mean(scores, level, counts) == pytest.approx(expected, abs=1e-12)
    assert value_at_risk(scores, level, counts) == value_at_risk(repeated, level)


@given(counted_users, levels, st.floats(1e-3, 1e3))
def test_counts_need_not_be_whole(users, level, scale):
    """Only the proportions of the counts matter."""
    scores, counts = (np.array(each, dtype=float) for each in zip(*users, strict=True))
    expected = tail_mean(scores, level, counts)
    assert tail_mean(scores, level, scale * counts) == pytest.approx(expected, abs=1e-12)
    boundary = level * counts.sum() - np.cumsum(counts[np.argsort(scores)])
    if np.abs(boundary).min() > 1e-6:  # else rounding of the scaled counts may decide
        found = value_at_risk(scores, level, scale * counts)
        assert found == value_at_risk(scores, level, counts)


@given(scores_of_users, levels)
def test_counts_of_one_change_nothing(scores, level):
    ones = np.ones(len(scores))
    assert tail_mean(scores, level, ones) == pytest.approx(tail_mean(scores, level), abs=1e-12)
    assert value_at_risk(scores, level, ones) == value_at_risk(scores, level)


def test_users_without_a_score_take_their_counts_with_them():
    scores, counts = [math.nan, 0.2, 0.4], [7.0, 1.0, 3.0]
    assert tail_mean(scores, 0.5, counts) == pytest.approx((0.2 + 0.4) / 2)
    assert value_at_risk(scores, 0.25, counts) == 0.2
    assert value_at_risk(scores, 0.26, counts) == 0.4


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=150), percentages)
def test_of_losses_the_worst_are_the_largest(losses, percent):
    """VaR is the ceil(tail n)-th largest loss, also where tail n is whole but for rounding."""
    values, tail = np.array(losses), percent / 100
    largest_first = np.sort(values)[::-1]
    place = math.ceil(Fraction(percent, 100) * values.size) - 1
    assert -value_at_risk(-values, tail) == largest_first[place]
    assert -value_at_risk(-values, tail, np.ones(values.size)) == largest_first[place]
    inside = np.clip(tail * values.size - np.arange(values.size), 0, 1)
    expected = inside @ largest_first / (tail * values.size)
    assert -tail_mean(-values, tail) == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), percentages)
def test_counted_losses_at_whole_numbers_of_users(counts, percent):
    """The smallest number of users whose counts reach tail n, in exact arithmetic."""
    losses = np.arange(float(len(counts)))  # the last user is the worst
    budget, reached = Fraction(percent, 100) * sum(counts), 0
    for loss in losses[::-1]:
        reached += counts[int(loss)]
        if reached >= budget:
            break
    assert -value_at_risk(-losses, percent / 100, counts) == loss


@pytest.mark.parametrize(
    ("level", "name", "phrase"),
    [
        (0.3, "worst-off 30 %", "the worst-off 30 %"),
        (0.07, "worst-off 7 %", "the worst-off 7 %"),
        (0.025, "worst-off 2.5 %", "the worst-off 2.5 %"),
        (1.0, "all users", "all users"),
    ],
)
def test_levels_have_one_name(level, name, phrase):
    assert (level_name(level), whom(level)) == (name, phrase)
