"""Group CVaR: a risk like the others, whose tail is one of groups."""

import itertools
import math

import numpy as np
import pytest

from safecf.als.kernels import KERNELS
from safecf.als.population import Population
from safecf.als.risk import GroupCVaR, SmoothedCVaR
from tests.reference import gradient

every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
LABELS = np.random.default_rng(3).choice(list("aabbbcddddd"), 40)
COUNTS = [None, np.random.default_rng(1).uniform(0.5, 3, 40)]


def some_losses(seed=0):
    return 0.5 * np.random.default_rng(seed).beta(4, 3, 40)


def groups_of(kernel, tail=0.3, bandwidth=0.15, labels=LABELS):
    return GroupCVaR.of(SmoothedCVaR(tail, kernel, bandwidth), labels)


def best(risk, population, epochs=10):
    xi = risk.start(population)
    for _ in range(epochs):
        xi = risk.quantile(population, xi, None)
    return xi


@pytest.mark.parametrize("counts", COUNTS, ids=["once", "counted"])
@every_kernel
def test_the_weights_are_the_slopes_of_the_total(kernel, counts):
    for risk in (groups_of(kernel), groups_of(kernel, bandwidth=math.inf)):
        users = Population(some_losses(), counts)
        for xi in (0.2, best(risk, users), 0.4):

            def total(at, risk=risk, xi=xi):
                return risk.total(Population(at, counts), xi)

            slopes = gradient(total, users.losses, step=1e-6)
            np.testing.assert_allclose(users.counted(risk.weights(users, xi)), slopes, atol=5e-6)


@every_kernel
def test_the_mean_weight_is_the_tail(kernel):
    for tail, counts in itertools.product((0.1, 0.3, 1.0), COUNTS):
        users, risk = Population(some_losses(), counts), groups_of(kernel, tail)
        weights = risk.weights(users, best(risk, users))
        assert users.mean(weights) == pytest.approx(tail, rel=1e-12)
        assert risk.tail == tail


@every_kernel
def test_a_group_counts_the_same_however_many_users_it_has(kernel):
    users, risk = Population(some_losses()), groups_of(kernel)
    weights = risk.weights(users, 0.3)
    inside = risk.risk.weights(risk.ranked(users), 0.3)
    for name, share in zip("abcd", inside, strict=True):
        assert weights[name == LABELS].sum() == pytest.approx(40 / 4 * share)
        assert np.ptp(weights[name == LABELS]) == 0


def test_the_groups_are_ranked_by_their_mean_losses():
    counts = COUNTS[1]
    users, risk = Population(some_losses(), counts), groups_of(KERNELS["gaussian"])
    ranked = risk.ranked(users)
    means = [
        np.average(users.losses[name == LABELS], weights=counts[name == LABELS]) for name in "abcd"
    ]
    np.testing.assert_allclose(ranked.losses, means)
    assert ranked.counts is None
    assert risk.names.tolist() == list("abcd")
    assert risk.start(users) == pytest.approx(np.mean(means))


@every_kernel
def test_a_group_for_every_user_is_the_smoothed_cvar(kernel):
    users = Population(some_losses())
    risk = groups_of(kernel, labels=np.arange(40))
    xi = best(risk, users)
    assert xi == best(risk.risk, users)
    assert risk.total(users, xi) == risk.risk.total(users, xi)
    np.testing.assert_array_equal(risk.weights(users, xi), risk.risk.weights(users, xi))


@every_kernel
def test_groups_of_equal_losses_are_in_the_tail_alike(kernel):
    users, risk = Population(np.full(40, 0.3)), groups_of(kernel)
    weights = risk.weights(users, best(risk, users))
    inside = risk.group_weights(Population(weights))
    assert inside == pytest.approx(dict.fromkeys("abcd", 0.3))
    assert weights[LABELS == "c"][0] > 1 > weights[LABELS == "d"][0] * 2


@pytest.mark.parametrize("counts", COUNTS, ids=["once", "counted"])
def test_the_weights_of_the_groups_follow_from_those_of_the_users(counts):
    users, risk = Population(some_losses(), counts), groups_of(KERNELS["gaussian"])
    inside = risk.risk.weights(risk.ranked(users), 0.28)
    found = risk.group_weights(Population(risk.weights(users, 0.28), counts))
    assert found == pytest.approx(dict(zip("abcd", inside, strict=True)))


@every_kernel
def test_a_shrinking_bandwidth_leads_to_the_cvar_of_the_groups(kernel):
    users, risk = Population(some_losses()), groups_of(kernel, 0.6, 1e-9)
    xi, ranked = best(risk, users), risk.ranked(users)
    assert xi == pytest.approx(ranked.value_at_risk(0.6), abs=1e-7)
    cvar = ranked.tail_mean(0.6)
    assert risk.total(users, xi) / (0.6 * users.size) == pytest.approx(cvar, abs=1e-7)


def test_sub_samples_are_drawn_among_the_groups():
    labels = np.arange(40) // 2
    risk = SmoothedCVaR(0.3, KERNELS["gaussian"], 0.15, steps=1, sample=0.5)
    grouped, users = GroupCVaR.of(risk, labels), Population(some_losses())
    xi = grouped.quantile(users, 0.3, np.random.default_rng(0))
    assert xi == risk.quantile(grouped.ranked(users), 0.3, np.random.default_rng(0))
