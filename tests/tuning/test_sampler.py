"""Proposals and the pruning rule: functions of the finished trials and the seed."""

import logging
import math
import sys

import numpy as np
import optuna
import pytest

from safecf.tuning import Choice, LogInteger, LogUniform, Uniform, suggest
from safecf.tuning.sampler import STARTUP, UNPRUNED, load_optuna, median_rule

SPACE = {
    "a": LogUniform(1e-4, 1e-2),
    "b": Uniform(0.1, 0.5),
    "c": Choice(("x", "y")),
    "d": LogInteger(8, 64),
}


def test_proposals_are_inside_and_follow_the_seed():
    found = suggest(SPACE, [], 50, seed=0)
    assert all(each.contains(options[n]) for options in found for n, each in SPACE.items())
    assert found == suggest(SPACE, [], 50, seed=0) != suggest(SPACE, [], 50, seed=1)
    assert found[:3] == suggest(SPACE, [], 3, seed=0)
    assert {options["c"] for options in found} == {"x", "y"}


def test_random_proposals_are_uniform_in_their_logarithms():
    drawn = [each["a"] for each in suggest({"a": SPACE["a"]}, [], 2000, seed=0)]
    shares = np.histogram(np.log10(drawn), bins=4, range=(-4, -2))[0] / 2000
    np.testing.assert_allclose(shares, 0.25, atol=0.04)


@pytest.mark.parametrize("objectives", [1, 2])
def test_later_proposals_are_nearer_to_the_best(objectives):
    distances, tried = [], []
    for number in range(40):
        (options,) = suggest({"a": SPACE["a"]}, tried, 1, (0, number))
        distances.append(abs(math.log(options["a"] / 1e-3)))
        tried.append((options, [-distances[-1]] * objectives))
    assert len(tried) > 2 * STARTUP
    assert np.median(distances[-STARTUP:]) < np.median(distances[:STARTUP])


def test_proposals_of_one_call_avoid_each_other():
    """TPE counts proposals that are not scored yet as bad: the constant liar."""
    space = {"b": Uniform(0.0, 1.0)}
    tried = [({"b": b}, [-abs(b - 0.5)]) for b in np.linspace(0, 1, 4 * STARTUP).tolist()]

    def spread(proposals):
        return np.std([each["b"] for each in proposals])

    together = [spread(suggest(space, tried, 12, seed)) for seed in range(6)]
    alone = [
        spread([suggest(space, tried, 1, (seed, n))[0] for n in range(12)]) for seed in range(6)
    ]
    assert np.mean(together) > 3 * np.mean(alone)


def test_trials_outside_of_the_space_are_left_out():
    inside = [({"b": 0.2 + 0.01 * n}, [float(n)]) for n in range(STARTUP)]
    outside = [({"b": 0.7}, [99.0]), ({"b": "auto"}, [99.0])]
    space = {"b": SPACE["b"]}
    assert suggest(space, inside + outside, 3, 0) == suggest(space, inside, 3, 0)


def test_the_rule_compares_with_the_median_at_the_same_epoch():
    complete = [{3: 0.1 * n, 6: 0.2 * n} for n in range(UNPRUNED)]  # medians 0.2 and 0.4
    rule = median_rule(complete, warmup=6)
    assert not rule({3: 0.0})  # too early
    assert rule({3: 0.0, 6: 0.39})
    assert not rule({3: 0.0, 6: 0.41})
    assert not rule({3: 0.5, 6: 0.0})  # its best so far counts
    assert not median_rule(complete[1:], warmup=6)({3: 0.0, 6: 0.0})  # too few to compare with


def test_optuna_s_log_is_silent_and_left_as_it_was(capfd):
    before = optuna.logging.get_verbosity()
    try:
        optuna.logging.set_verbosity(logging.INFO)
        suggest(SPACE, [], 1, 0)
        assert optuna.logging.get_verbosity() == logging.INFO
    finally:
        optuna.logging.set_verbosity(before)
    assert capfd.readouterr() == ("", "")


def test_a_missing_optuna_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r"pip install 'safecf\[tune\]'"):
        load_optuna()
