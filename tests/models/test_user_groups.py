"""user_groups: the worst-off groups are protected, whatever their size."""

import numpy as np
import pytest
import scipy.sparse as sp

from safecf import SAFER2, Interactions, evaluate
from safecf.datasets import synthetic
from safecf.models import MODELS
from safecf.models.als import ALSModel
from safecf.split import HeldOut, Split
from tests.helpers import refused
from tests.models.runs import assert_same, fit, make
from tests.models.saved import load, saved

LABELS = np.array(list("aaab" * 7 + "cc"))
PROTECTING = ["SAFER2", "SAFER2PP", "SAFER2CG"]


def build(name, **options):
    return MODELS[name](**({"factors": 4, "iterations": 6, "random_state": 1} | options))


@pytest.mark.parametrize("name", PROTECTING)
def test_a_group_for_every_user_changes_nothing(data, name):
    one = fit(build(name), data, user_groups=np.arange(30))
    assert_same(one, fit(build(name), data))
    assert list(one.group_weights) == list(range(30))
    np.testing.assert_array_equal(list(one.group_weights.values()), one.user_weights)


@pytest.mark.parametrize("name", PROTECTING)
def test_the_weights_are_those_of_the_groups(data, name):
    model = fit(build(name, bandwidth=0.2), data, user_groups=LABELS)
    inside = model.group_weights
    assert list(inside) == ["a", "b", "c"]
    assert np.mean(list(inside.values())) == pytest.approx(0.3, abs=1e-6)
    for label, weight in inside.items():
        members = label == LABELS
        expected = 30 * weight / (3 * members.sum())
        np.testing.assert_allclose(model.user_weights[members], expected, rtol=1e-12)
    last = model.history[-1]
    assert last.mean_weight == pytest.approx(0.3, abs=1e-6)
    # of three groups, the worst one is a third
    assert last.var == pytest.approx(last.cvar, rel=1e-12)
    assert last.cvar > last.mean_loss


@pytest.mark.parametrize("name", PROTECTING)
def test_weights_and_groups_go_together(data, name):
    """Group a counts by its first user alone, c by the second user six times."""
    counts = np.ones(30)
    counts[LABELS == "a"] = np.arange(21) == 0
    counts[28:] = [0, 6]
    model = fit(build(name, bandwidth=0.2), data, user_groups=LABELS, user_weight=counts)
    shares = {"a": 1, "b": 7, "c": 6}
    assert model.num_users == 14
    for label, weight in model.group_weights.items():
        members = (label == LABELS) & (counts > 0)
        expected = 14 * weight / (3 * shares[label])
        np.testing.assert_allclose(model.user_weights[members], expected, rtol=1e-12)
    assert not model.user_weights[counts == 0].any()


def test_a_group_of_one_user(data):
    labels = np.where(np.arange(30) == 3, "alone", "all")
    model = fit(make(iterations=20, bandwidth=0.3), data, user_groups=labels)
    assert model.user_weights[3] == pytest.approx(30 / 2 * model.group_weights["alone"])
    assert model.history[-1].residual_items < 0.1 * model.history[0].residual_items


@pytest.mark.parametrize(
    "labels",
    [LABELS.tolist(), LABELS.astype(object), np.array([ord(label) for label in LABELS])],
    ids=["list", "objects", "integers"],
)
def test_the_form_of_the_labels_does_not_matter(data, labels):
    model = fit(make(), data, user_groups=labels)
    assert_same(model, fit(make(), data, user_groups=LABELS))
    assert sorted(model.group_weights) == sorted(set(labels))
    assert {type(label) for label in model.group_weights} <= {str, int}
    fit(model, data)
    assert model.group_weights is None


def test_no_part_of_a_label_is_lost(data):
    model = fit(make(), data, user_groups=["a", "a\0"] * 15)
    assert list(model.group_weights) == ["a", "a\0"]
    assert load(saved(model)).group_weights == model.group_weights


def test_the_callback_sees_the_weights_of_its_epoch(data):
    model, seen = make(), []
    fit(model, data, user_groups=LABELS, callback=lambda *call: seen.append(model.group_weights))
    assert len(seen) == 5
    for epoch, weights in enumerate(seen, start=1):
        shorter = fit(make(iterations=epoch), data, user_groups=LABELS)
        assert weights == shorter.group_weights


def test_the_weights_of_new_users_are_unknown(data):
    later = sp.diags((np.arange(20) >= 10).astype(np.float32))
    heldout = HeldOut(history=data - data @ later, target=data @ later)
    split = Split(data, heldout, heldout, np.arange(20), np.arange(90))
    model = fit(make(), data, user_groups=LABELS)
    found = evaluate(model, split, k=5)
    assert found.weights is None
    assert found.losses is not None
    np.testing.assert_array_equal(found.training["weights"], model.user_weights)
    assert evaluate(fit(make(), data), split, k=5).weights is not None


def with_label(place, label):
    labels = LABELS.astype(object)
    labels[place] = label
    return labels


BAD = {
    "shape (29,), while there are 30 users": LABELS[1:],
    "shape (), while there are 30 users": "a",
    "shape (30, 2)": np.stack([LABELS] * 2, axis=1),
    "one label, 'a', for all users that count": ["a"] * 30,
    "[3] is None": with_label(3, None),
    "[4] is nan": with_label(4, np.nan),
    "[5] is 7": with_label(5, 7),
    "[0] is 0.0": np.arange(30.0),
    "[0] is True": LABELS == "a",
    "[1] is 1": ["a", 1] * 15,
    "[1] is nan": ["a", float("nan")] * 15,
    "UTF-8": ["b", "\ud800"] * 15,
    "[0] is 1180591620717411303424": [2**70] * 30,
}
OF_A_VALUE = ("shape", "one label", "UTF-8")


@pytest.mark.parametrize("message", BAD)
def test_bad_labels_are_refused_without_a_trace(data, message):
    model = fit(make(), data, user_groups=LABELS)
    error = ValueError if message.startswith(OF_A_VALUE) else TypeError
    with refused(error, "user_groups", message, unchanged=model):
        fit(model, data, user_groups=BAD[message])


def test_two_groups_have_to_count(data):
    with refused(ValueError, "one label, 'a', for all users that count"):
        fit(make(), data, user_groups=LABELS, user_weight=LABELS == "a")


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, kind in MODELS.items()
        if issubclass(kind, ALSModel) and name not in PROTECTING
    ],
)
def test_other_models_say_which_ones_do(data, name):
    with pytest.raises(TypeError, match=f"^user_groups .* {name} .* try SAFER2"):
        fit(build(name), data, user_groups=LABELS)


def test_the_worst_groups_of_planted_tastes_are_better_off():
    """The mean loss of the worst 6 of 20 groups is lower than if users were protected."""
    drawn = synthetic(2000, 600, 60_000, tastes=20, seed=1)
    options = {"bandwidth": 0.1, "regularization": 0.007, "iterations": 15, "factors": 8}
    users = Interactions.from_csr(drawn.matrix).users

    def worst_groups(**given):
        model = fit(SAFER2(random_state=0, **options), drawn.matrix, **given)
        losses = model.user_losses(users, model.user_factors)
        means = [losses[drawn.group == group].mean() for group in range(20)]
        return np.mean(sorted(means)[-6:])

    assert worst_groups(user_groups=drawn.group) < 0.97 * worst_groups()
