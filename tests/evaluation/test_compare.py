"""Comparisons: differences, their signs and symmetry, and the verdict."""

import json
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from safecf.evaluation import Comparison, Difference, compare, tail_profile
from safecf.evaluation.difference import verdict

METRIC = "recall@20"


@pytest.fixture(scope="module")
def pair(made_up):
    rng = np.random.default_rng(2)
    before = rng.integers(0, 11, 400) / 10
    after = np.clip(before + rng.choice([-0.1, 0, 0, 0.1, 0.2], 400), 0, 1)
    return made_up("iALS", before), made_up("SAFER2", after)


@pytest.fixture(scope="module")
def comparison(pair):
    return compare(pair, resamples=500)


def test_a_difference_is_that_of_the_tails(pair, comparison):
    before, after = pair
    found = comparison.differences("SAFER2", METRIC)
    assert [each.level for each in found] == [0.1, 0.3, 1.0]
    for each in found:
        assert each.baseline == pytest.approx(before.tail(METRIC, each.level))
        assert each.value == pytest.approx(after.tail(METRIC, each.level))
        seen, low, high = each.absolute
        assert seen == each.value - each.baseline
        assert low < seen < high
        lift, low, high = each.relative
        assert lift == pytest.approx(100 * (each.value / each.baseline - 1))
        assert low < lift < high


def test_the_test_is_on_the_users_in_either_tail(pair, comparison):
    before, after = (each.scores[METRIC] for each in pair)
    for each in comparison.differences(0, METRIC):
        boundaries = [e.value_at_risk(METRIC, each.level) for e in pair]
        either = (before <= boundaries[0]) | (after <= boundaries[1])
        change = np.round(after - before, 10)[either]
        moved = change[change != 0]
        method = "exact" if moved.size <= 50 else "approx"
        assert each.p_value == scipy.stats.wilcoxon(moved, method=method).pvalue
        assert each.wins == np.count_nonzero(change > 0)
        assert each.ties == np.count_nonzero(change == 0)
        assert each.losses == np.count_nonzero(change < 0)
    assert each.wins + each.ties + each.losses == 400


def test_models_are_found_by_name_place_and_evaluation(pair, comparison):
    found = comparison.differences("SAFER2", METRIC)
    assert comparison.differences(0, METRIC) == comparison.differences(pair[1], METRIC) == found
    assert comparison.difference(0, METRIC, 0.3) == found[1]
    assert comparison.difference(0, METRIC, 0.25).level == 0.25
    levels, lift, low, high = comparison.relative_curve(0, METRIC)
    assert levels.tolist() == [0.1, 0.3, 1.0]
    assert [tuple(row) for row in np.stack([lift, low, high], 1)] == [d.relative for d in found]
    assert len(comparison.relative_curve(0, METRIC, np.linspace(0.05, 1, 20))[0]) == 20
    with pytest.raises(ValueError, match="unknown model 'SAFER': known are 'SAFER2'"):
        comparison.differences("SAFER", METRIC)
    with pytest.raises(ValueError, match="unknown metric 'recall@2'"):
        comparison.differences(0, "recall@2")


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.2, 0.5, 1.0]), st.floats(0, 1)), min_size=2, max_size=12
    )
)
def test_comparisons_are_antisymmetric(made_up, scores):
    pair = [
        made_up(name, values) for name, values in zip("ab", zip(*scores, strict=True), strict=True)
    ]
    there = compare(pair, "a", resamples=50).differences("b", METRIC)
    back = compare(pair, "b", resamples=50).differences("a", METRIC)
    for one, other in zip(there, back, strict=True):
        seen, low, high = one.absolute
        assert other.absolute == pytest.approx((-seen, -high, -low), abs=1e-15)
        assert (one.wins, one.ties, one.losses) == (other.losses, other.ties, other.wins)
        assert one.p_value == pytest.approx(other.p_value)
        assert (one.baseline, one.value) == (other.value, other.baseline)


def test_a_model_does_not_differ_from_itself(made_up):
    scores = np.random.default_rng(0).random(30)
    comparison = compare([made_up("a", scores), made_up("b", scores)], resamples=50)
    for each in comparison.differences("b", METRIC):
        assert each.absolute == each.relative == (0, 0, 0)
        assert (each.p_value, each.wins, each.losses) == (1, 0, 0)
    assert "makes no clear difference" in comparison.verdict("b")


def test_results_depend_on_the_seed_alone(pair, comparison):
    same = compare(pair, resamples=500).differences(0, METRIC)
    assert same == comparison.differences(0, METRIC)
    assert compare(pair, resamples=500, seed=1).differences(0, METRIC) != same
    for narrow, wide in zip(
        compare(pair, resamples=500, confidence=0.5).differences(0, METRIC), same, strict=True
    ):
        for (seen, low, high), (point, lowest, highest) in (
            (narrow.absolute, wide.absolute),
            (narrow.relative, wide.relative),
        ):
            assert seen == point
            assert lowest < low < high < highest


def test_users_without_a_score_are_left_out(made_up):
    before, after = [0.1, np.nan, 0.3, 0.5], [0.2, np.nan, 0.3, 0.4]
    whole = compare([made_up("a", before), made_up("b", after)], resamples=50)
    kept = [[score for score in scores if not math.isnan(score)] for scores in (before, after)]
    without = compare([made_up(n, s) for n, s in zip("ab", kept, strict=True)], resamples=50)
    assert whole.differences("b", METRIC) == without.differences("b", METRIC)


def test_a_baseline_of_zero_is_lifted_infinitely(made_up):
    zeros = np.r_[np.zeros(60), np.full(40, 0.5)]
    comparison = compare([made_up("a", zeros), made_up("b", zeros + 0.1)], resamples=50)
    tail = comparison.difference("b", METRIC, 0.3)
    assert tail.relative[0] == math.inf
    assert tail.absolute[0] == pytest.approx(0.1)
    said = comparison.verdict("b")
    assert said.startswith("b lifts the worst-off 30 % by 0.1000 [0.1000, 0.1000] and the average")
    record = comparison.to_dict()["differences"]["b"][METRIC]
    assert record[1]["relative"] == [None, None, None]


def test_zero_beside_zero_is_no_lift(made_up):
    """If both tails are zero, the lift is not defined: +0.0 % would look like a result."""
    before = np.r_[np.zeros(60), np.full(40, 0.5)]
    after = np.r_[np.zeros(40), np.full(60, 0.5)]
    tail = compare([made_up("a", before), made_up("b", after)], resamples=50).difference(
        "b", METRIC, 0.1
    )
    assert (tail.baseline, tail.value) == (0, 0)
    assert np.isnan(tail.relative).all()
    assert not tail.has_lift
    assert tail.absolute[0] == 0


def test_the_outcome_is_what_the_interval_says():
    outcomes = [change(0.3, 1, low, high).outcome for low, high in ((1, 2), (-2, -1), (-1, 1))]
    assert outcomes == ["better", "worse", "unclear"]


def test_the_metric_is_the_first_one_by_default(made_up):
    pair = [made_up(name, [0.1, 0.2, 0.3], metric="hit@5") for name in "ab"]
    comparison = compare(pair, resamples=50)
    assert comparison.summary() == comparison.verdict("b") == comparison.verdict("b", "hit@5")
    assert "(hit@5, compared with a)" in comparison.summary()


def test_everything_goes_into_json(pair, comparison):
    record = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert record["baseline"] == "iALS"
    assert [each["model"] for each in record["evaluations"]] == ["iALS", "SAFER2"]
    written = record["differences"]["SAFER2"][METRIC]
    levels = [each["level"] for each in written]
    assert {0.02, 0.1, 0.15, 0.3, 1.0} <= set(levels)
    found = comparison.differences(0, METRIC, levels)
    # If both tails are zero the lift is NaN, which JSON writes as null.
    assert [tuple(each["absolute"]) for each in written] == [each.absolute for each in found]
    assert [each["wins"] for each in written] == [each.wins for each in found]
    assert record["verdicts"]["SAFER2"][METRIC] == comparison.verdict("SAFER2", METRIC, 0.3)
    assert comparison.to_dict(metrics=[])["differences"] == {"SAFER2": {}}


def test_a_comparison_comes_back_from_json(pair, comparison):
    record = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    again = Comparison.from_dict(record)
    assert again.differences(0, METRIC) == comparison.differences(0, METRIC)
    assert again.to_dict() == comparison.to_dict()
    other_way = compare(pair, baseline="SAFER2", resamples=50, confidence=0.9, seed=3)
    again = Comparison.from_dict(other_way.to_dict())
    assert again.to_dict() == other_way.to_dict()


def change(level, seen, low, high):
    """Make a difference by its lift in percent."""
    estimate = (seen, low, high)
    return Difference(METRIC, level, 0.1, 0.2, estimate, estimate, 0.01, 3, 2, 1)


@pytest.mark.parametrize(
    ("tail", "mean", "said"),
    [
        (
            (8.6, 5.1, 12.0),
            (1.9, 0.4, 3.3),
            "lifts the worst-off 30 % by 8.6 % [5.1, 12.0] and the average by 1.9 % [0.4, 3.3]",
        ),
        (
            (8.6, 5.1, 12.0),
            (-1.9, -3.3, -0.4),
            "lifts the worst-off 30 % by 8.6 % [5.1, 12.0], but lowers the average by 1.9 % "
            "[0.4, 3.3]",
        ),
        (
            (8.6, -1.0, 12.0),
            (1.9, 0.4, 3.3),
            "makes no clear difference to the worst-off 30 %, +8.6 % [-1.0, 12.0], and lifts the "
            "average by 1.9 % [0.4, 3.3]",
        ),
        (
            (-0.5, -1.0, 0.2),
            (0.1, -0.4, 0.3),
            "makes no clear difference to the worst-off 30 %, -0.5 % [-1.0, 0.2], nor to the "
            "average, +0.1 % [-0.4, 0.3]",
        ),
        (
            (-8.6, -12.0, -5.1),
            (0.1, -0.4, 0.3),
            "lowers the worst-off 30 % by 8.6 % [5.1, 12.0] and makes no clear difference to the "
            "average, +0.1 % [-0.4, 0.3]",
        ),
    ],
)
def test_the_verdict_claims_no_more_than_the_intervals(tail, mean, said):
    found = verdict("SAFER2", "iALS", change(0.3, *tail), change(1.0, *mean))
    assert found == f"SAFER2 {said} (recall@20, compared with iALS)"


def test_a_verdict_on_the_average_alone(comparison):
    said = comparison.verdict("SAFER2", level=1.0)
    assert said.startswith("SAFER2 lifts the average by")
    assert "and" not in said
    assert comparison.summary() == comparison.verdict("SAFER2")
    assert repr(comparison) == "Comparison('SAFER2' compared with 'iALS')"


def test_what_cannot_be_compared_is_refused(made_up):
    one = made_up("one", [0.1, 0.2])
    for evaluations, options, message in (
        ([one], {}, "there is 1 evaluation; give at least 2"),
        ([one, made_up("one", [0.1, 0.3])], {}, "two evaluations are called 'one'"),
        ([one, made_up("two", [0.1, 0.3], data="x")], {}, "not evaluated on the same users"),
        ([one, made_up("two", [0.1, 0.3, 0.4])], {}, "not evaluated on the same users"),
        ([one, made_up("two", [0.1, 0.3], metric="hit@5")], {}, "no metric in common"),
        ([one, made_up("two", [0.1, 0.3])], {"baseline": "on"}, "unknown baseline 'on'"),
        ([one, made_up("two", [0.1, 0.3])], {"baseline": 2}, "baseline=2, but there are 2"),
        ([one, made_up("two", [0.1, 0.3])], {"confidence": 1}, "confidence=1 has"),
        ([one, made_up("two", [0.1, 0.3])], {"resamples": 0}, "resamples=0 has"),
    ):
        with pytest.raises(ValueError, match=message):
            compare(evaluations, **options)


def test_the_profile_compares_the_tail_with_the_others(made_up):
    scores = np.array([0.0, 0.0, 0.5, 1.0, np.nan, 1.0])
    group = np.array(["b", "a", "a", "a", "b", "a"])
    losses = np.array([5.0, 3.0, 1.0, 1.0, 9.0, 1.0])
    evaluation = made_up("m", scores, group=group, weights=losses / 10)
    found = tail_profile(evaluation, METRIC, 0.2)
    assert (found.inside, found.outside) == (2, 3)  # both users at zero
    inside, outside = found.properties["history_length"]
    assert (inside.mean, outside.mean) == (0.5, pytest.approx(10 / 3))
    assert outside.median == 3
    mean = losses.mean() / 10
    assert found.properties["weight"][0].mean == pytest.approx(0.4 / mean)  # 1 is the mean
    assert "loss" not in found.properties
    assert found.groups == {"a": (0.5, 1.0, 0.25), "b": (0.5, 0.0, 1.0)}
    everybody = tail_profile(evaluation, METRIC, 1.0)
    assert everybody.outside == 0
    assert math.isnan(everybody.properties["popularity"][1].mean)
    record = json.loads(json.dumps(everybody.to_dict(), allow_nan=False))
    assert record["properties"]["popularity"][1]["mean"] is None
