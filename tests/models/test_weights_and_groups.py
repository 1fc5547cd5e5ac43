"""user_weight and user_groups: users who count more, and groups protected whatever their size."""

import numpy as np
import pytest
import scipy.sparse as sp

from safecf import Interactions, evaluate
from safecf.models import MODELS
from safecf.split import HeldOut, Split
from tests.helpers import refused
from tests.models.runs import assert_same, fit, make
from tests.models.saved import load, saved
from tests.reference import rotation_free

WEIGHTS = np.arange(30) % 4
LABELS = np.array(list("aaab" * 7 + "cc"))
PROTECTING = ("SAFER2", "SAFER2PP", "SAFER2CG")
ALS_MODELS = [name for name in MODELS if name not in ("EASE", "MultVAE")]


def build(name, **options):
    # nothing may hang on rounding, such as one step of CG more or less
    exact = {key: {"solver": "exact"} for key in ("IALS", "ERMMF", "SAFER2")}
    chosen = (exact | {"SAFER2CG": {"tolerance": 1e-9}}).get(name, {})
    defaults = {"factors": 4, "iterations": 5, "random_state": 1, "backend": "numpy"}
    return MODELS[name](**(defaults | chosen | options))


@pytest.mark.parametrize("name", ALS_MODELS)
def test_users_of_weight_zero_get_recommendations(data, name):
    model = fit(build(name), data, user_weight=np.arange(30) >= 5)
    assert not model.user_weights[:5].any()
    assert model.user_factors[:5].any(axis=1).all()
    np.testing.assert_array_equal(model.user_factors[:5], model.fold_in(data[:5]))
    ids, _ = model.recommend(np.arange(5), data[:5], N=3)
    assert (ids >= 0).all()


@pytest.mark.parametrize("name", [name for name in ALS_MODELS if name != "CVaRMF"])
def test_only_the_proportions_matter(data, name):
    """Those of CVaR-MF scale the gradients of the items, whose step is of a fixed size."""
    one, other = (fit(build(name), data, user_weight=WEIGHTS * scale) for scale in (1, 3.7))
    found, expected = (rotation_free(each.user_factors, each.item_factors) for each in (other, one))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    assert other.history[-1].objective == pytest.approx(one.history[-1].objective, rel=1e-6)
    assert other.num_users == pytest.approx(3.7 * one.num_users)


@pytest.mark.parametrize("kind", [list, tuple, np.float32, np.int8])
def test_the_form_of_the_weights_does_not_matter(data, kind):
    expected = fit(make(), data, user_weight=WEIGHTS)
    assert_same(fit(make(), data, user_weight=kind(WEIGHTS)), expected)
    assert_same(fit(make(), Interactions.from_csr(data), user_weight=kind(WEIGHTS)), expected)


def test_new_users_count_once_each(data):
    model = fit(make(), data, user_weight=WEIGHTS + 0.5)
    model.partial_fit_users([31], data[3])
    for each in (model, load(saved(model))):
        np.testing.assert_array_equal(each.user_counts, [*(WEIGHTS + 0.5), 1, 1])
        assert each.user_weights[31] == each.tail


def test_weights_of_users_without_interactions_do_not_count(data):
    data = sp.diags((np.arange(30) != 3).astype(np.float32)) @ data
    weights = np.where(np.arange(30) == 3, 5.0, 1.0)
    model = fit(make(), data, user_weight=weights)
    assert model.num_users == 29
    np.testing.assert_array_equal(model.item_factors, fit(make(), data).item_factors)
    with refused(ValueError, "at most 0 for all users that have interactions"):
        fit(make(), data, user_weight=np.arange(30) == 3)


@pytest.mark.parametrize("backend", ["cpu", "numpy"])
def test_extreme_weights_stay_finite(data, backend):
    for weights in (np.full(30, 1e9), np.full(30, 1e-9), 10.0 ** (np.arange(30) - 20)):
        model = fit(make(backend=backend), data, user_weight=weights)
        assert np.isfinite(model.item_factors).all()
        assert model.item_factors.any()


# Groups


@pytest.mark.parametrize("name", PROTECTING)
def test_a_group_for_every_user_changes_nothing(data, name):
    one = fit(build(name), data, user_groups=np.arange(30))
    assert_same(one, fit(build(name), data))
    assert list(one.group_weights) == list(range(30))
    np.testing.assert_array_equal(list(one.group_weights.values()), one.user_weights)


# Group a counts by its first user alone, c by the second user six times.
COUNTS = np.where(LABELS == "a", np.arange(30) == 0, 1)
COUNTS[28:] = [0, 6]


@pytest.mark.parametrize("counts", [np.ones(30), COUNTS], ids=["once", "counted"])
@pytest.mark.parametrize("name", PROTECTING)
def test_the_weights_are_those_of_the_groups(data, name, counts):
    model = fit(build(name, bandwidth=0.2), data, user_groups=LABELS, user_weight=counts)
    inside, last = model.group_weights, model.history[-1]
    assert list(inside) == ["a", "b", "c"]
    assert np.mean(list(inside.values())) == pytest.approx(0.3, abs=1e-6)
    assert model.num_users == counts.sum()
    for label, weight in inside.items():
        members = label == LABELS
        expected = counts.sum() * weight / (3 * counts[members].sum())
        np.testing.assert_allclose(model.user_weights[members & (counts > 0)], expected, rtol=1e-12)
    assert not model.user_weights[counts == 0].any()
    assert last.mean_weight == pytest.approx(0.3, abs=1e-6)
    # of three groups, the worst one is a third
    assert last.var == pytest.approx(last.cvar, rel=1e-12)
    assert last.cvar > last.mean_loss


@pytest.mark.parametrize("kind", [list, lambda labels: labels.astype(object), np.vectorize(ord)])
def test_the_form_of_the_labels_does_not_matter(data, kind):
    labels = kind(LABELS)
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
    for epoch in range(1, 6):
        shorter = fit(make(iterations=epoch), data, user_groups=LABELS)
        assert seen[epoch - 1] == shorter.group_weights


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


# What is refused


def changed(values, place, value):
    values = values.astype(object if isinstance(values[0], str) else float)
    values[place] = value
    return values


ODD_LABELS = {3: None, 4: np.nan, 5: 7}
BAD = [
    *(("user_weight", weights, ValueError, words) for weights, words in (
        (WEIGHTS[1:], "shape (29,), while there are 30 users"),
        (2.0, "shape (), while there are 30 users"),
        (WEIGHTS[:, None], "shape (30, 1)"),
        (changed(WEIGHTS, 3, -1), "[3] is -1.0"),
        (changed(WEIGHTS, 4, np.nan), "[4] is nan"),
        (changed(WEIGHTS, 5, np.inf), "[5] is inf"),
        (changed(WEIGHTS, 6, 1e10), "[6] is 10000000000"),
        (np.zeros(30), "at most 0 for all users that have interactions; try 1"),
        (np.full(30, 1e-10), "at most 1e-10 for all users"))),
    ("user_weight", ["1"] * 30, TypeError, "not numbers"),
    ("user_weight", WEIGHTS + 1j, TypeError, "complex128, not numbers"),
    ("user_weight", [None] * 30, TypeError, "object, not numbers"),
    ("user_groups", LABELS[1:], ValueError, "shape (29,), while there are 30 users"),
    ("user_groups", "a", ValueError, "shape (), while there are 30 users"),
    ("user_groups", np.stack([LABELS] * 2, axis=1), ValueError, "shape (30, 2)"),
    ("user_groups", ["a"] * 30, ValueError, "one label, 'a', for all users that count"),
    ("user_groups", ["b", "\ud800"] * 15, ValueError, "UTF-8"),
    *(("user_groups", changed(LABELS, place, label), TypeError, f"[{place}] is {label}")
      for place, label in ODD_LABELS.items()),
    *(("user_groups", labels, TypeError, words) for labels, words in (
        (np.arange(30.0), "[0] is 0.0"),
        (LABELS == "a", "[0] is True"),
        (["a", 1] * 15, "[1] is 1"),
        (["a", float("nan")] * 15, "[1] is nan"),
        ([2**70] * 30, "[0] is 1180591620717411303424"))),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(BAD)))
def test_bad_weights_and_labels_are_refused_without_a_trace(data, case):
    name, value, error, words = BAD[case]
    model = fit(make(), data, user_groups=LABELS)
    with refused(error, name, words, unchanged=model):
        fit(model, data, **{name: value})


def test_two_groups_have_to_count(data):
    with refused(ValueError, "one label, 'a', for all users that count"):
        fit(make(), data, user_groups=LABELS, user_weight=LABELS == "a")


@pytest.mark.parametrize("name", [name for name in ALS_MODELS if name not in PROTECTING])
def test_other_models_say_which_ones_do(data, name):
    with refused(TypeError, "user_groups ", f" {name} ", " try SAFER2"):
        fit(build(name), data, user_groups=LABELS)
