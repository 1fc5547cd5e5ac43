"""The objective of tuning, and trials ranked by it."""

from safecf.tuning import Objective, Trial, best


def test_the_objective_averages_tails():
    scores = {"recall@20": [0.0, 0.5, 1.0, 0.5]}
    assert Objective(levels=(1.0,))(scores) == 0.5
    assert Objective(levels=(1.0, 0.25))(scores) == 0.25
    assert str(Objective()) == "mean recall@20 of all users and of the worst-off 30 %"


def test_the_best_have_the_largest_means():
    trials = [Trial({"n": n}, values) for n, values in enumerate([(1, 1), (0, 9), (2, 2)])]
    assert [each.options["n"] for each in best(trials, 2)] == [1, 2]
