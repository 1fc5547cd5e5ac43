"""Spaces and objectives: inside their ranges, repeatable, and as the formulas say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safecf.tuning import (
    Choice,
    LogUniform,
    Objective,
    Trial,
    Uniform,
    best,
    grid,
    near,
    sample,
)

SPACE = {"a": LogUniform(1e-4, 1e-2), "b": Uniform(0.1, 0.5, 3), "c": Choice(("x", "y"))}


@given(st.floats(1e-6, 1e3), st.floats(1, 1e4), st.integers(0, 2**31))
def test_numbers_stay_inside(low, ratio, seed):
    rng = np.random.default_rng(seed)
    for each in (LogUniform(low, low * ratio), Uniform(low, low * ratio)):
        assert low <= each.draw(rng) <= low * ratio


@given(st.floats(1e-6, 1e3), st.floats(1, 1e4), st.floats(0, 1), st.integers(0, 2**31))
def test_neighbours_are_near_and_inside(low, ratio, width, seed):
    high, rng = low * ratio, np.random.default_rng(seed)
    for each, far in (
        (LogUniform(low, high), low * ratio**width),
        (Uniform(low, high), low + width * (high - low)),
    ):
        found = each.near(low, width, rng)
        assert low <= found <= min(high, far * 1.005)  # rounded to three digits


def test_neighbours_are_of_all_centres_in_turn():
    centres = sample(SPACE, 2)
    found = near(SPACE, centres, 5, 0.0)
    assert found == [centres[0], centres[1], centres[0], centres[1], centres[0]]
    wide = near(SPACE, centres, 50, 1.0, seed=1)
    assert {each["c"] for each in wide} == {"x", "y"}
    assert wide == near(SPACE, centres, 50, 1.0, seed=1) != near(SPACE, centres, 50, 1.0, seed=2)


def test_logarithms_are_uniform():
    drawn = [each["a"] for each in sample(SPACE, 4000)]
    shares = np.histogram(np.log10(drawn), bins=4, range=(-4, -2))[0] / 4000
    np.testing.assert_allclose(shares, 0.25, atol=0.03)


def test_grids_reach_both_ends():
    assert LogUniform(1e-4, 1e-2).grid() == [1e-4, 0.000316, 1e-3, 0.00316, 1e-2]
    assert Uniform(0.1, 0.5, 3).grid() == [0.1, 0.3, 0.5]
    found = grid(SPACE)
    assert len(found) == 5 * 3 * 2
    assert found[0] == {"a": 1e-4, "b": 0.1, "c": "x"}
    assert len({tuple(each.values()) for each in found}) == len(found)


def test_places_are_shares_of_the_range():
    assert LogUniform(0.01, 1.0).place(0.1) == pytest.approx(0.5)
    assert Uniform(-1.0, 3.0).place(0.0) == 0.25
    assert [Uniform(2.0, 2.0).place(2.0), LogUniform(2.0, 2.0).place(2.0)] == [0.0, 0.0]
    assert Choice((1, 2)).place(1) is None


def test_fewer_trials_are_the_first_of_more():
    assert sample(SPACE, 3) == sample(SPACE, 8)[:3]
    assert sample(SPACE, 3) != sample(SPACE, 3, seed=1)


@pytest.mark.parametrize("bad", [(0, 1), (2, 1)])
def test_bad_ranges_are_refused(bad):
    with pytest.raises(ValueError, match="low <= high"):
        LogUniform(*bad)


def test_the_objective_averages_tails():
    scores = {"recall@20": [0.0, 0.5, 1.0, 0.5]}
    assert Objective(levels=(1.0,))(scores) == 0.5
    assert Objective(levels=(1.0, 0.25))(scores) == 0.25
    assert str(Objective()) == "mean and tail 0.3 of recall@20"


def test_the_best_have_the_largest_means():
    trials = [Trial({"n": n}, values) for n, values in enumerate([(1, 1), (0, 9), (2, 2)])]
    assert [each.options["n"] for each in best(trials, 2)] == [1, 2]
