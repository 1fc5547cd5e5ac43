"""The objective of tuning: mean, tail or both, and the gain over the defaults."""

import pytest

from safecf.tuning import Objective, Scores

SCORES = {"recall@20": [0.0, 0.5, 1.0, 0.5]}


def test_the_objective_is_a_mean_a_tail_or_their_average():
    assert Objective(kind="mean")(SCORES) == 0.5
    assert Objective(kind="tail", level=0.25)(SCORES) == 0.0
    assert Objective(kind="both", level=0.25)(SCORES) == 0.25
    assert Objective(level=0.5).measure(SCORES) == Scores(0.5, 0.25)
    assert str(Objective()) == "mean recall@20 of all users and of the worst-off 30 %"


def test_the_gain_is_relative_and_averaged():
    found, default = Scores(0.33, 0.1), Scores(0.3, 0.2)
    assert Objective(kind="mean").gain(found, default) == pytest.approx(0.1)
    assert Objective(kind="tail").gain(found, default) == pytest.approx(-0.5)
    assert Objective(kind="both").gain(found, default) == pytest.approx(-0.2)
    assert Objective(kind="both").gain(default, default) == 0


def test_a_gain_over_nothing_or_below_zero_has_its_sign():
    tail = Objective(kind="tail")
    for before in (0.0, 0.001):  # both are compared with a tenth of the mean
        gain = tail.gain(Scores(0.3, 0.03 + before), Scores(0.3, before))
        assert gain == pytest.approx(1.0)
    assert tail.gain(Scores(0.0, 0.5), Scores(0.0, 0.0)) == 0.5
    assert Objective(kind="mean").gain(Scores(-4.0, 0), Scores(-5.0, 0)) == pytest.approx(0.2)
