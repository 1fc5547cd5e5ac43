"""user_weight: a user of weight 2 counts as two users with the same history, in every model."""

import numpy as np
import pytest
import scipy.sparse as sp

from safecf import Interactions
from safecf.als.loop import Training
from safecf.als.state import State
from safecf.models import MODELS
from safecf.models.als import ALSModel
from tests.helpers import refused
from tests.models.runs import assert_same, fit, make
from tests.models.saved import load, saved
from tests.problems import rotation_free

WEIGHTS = np.arange(30) % 4
ALS_MODELS = [name for name, kind in MODELS.items() if issubclass(kind, ALSModel)]
every_model = pytest.mark.parametrize("name", ALS_MODELS)


def build(name, backend="numpy", **options):
    # nothing may hang on rounding, such as one step of CG more or less
    exact = {key: {"solver": "exact"} for key in ("IALS", "ERMMF", "SAFER2")}
    chosen = (exact | {"SAFER2CG": {"tolerance": 1e-9}}).get(name, {})
    defaults = {"factors": 4, "iterations": 5, "random_state": 1, "backend": backend}
    return MODELS[name](**(defaults | chosen | options))


@pytest.fixture
def start_by_history(monkeypatch):
    """Let users with the same history have the same start, whatever their number."""

    def start(self, factors, init_std):
        users, items = self.problem.interactions.users, self.problem.interactions.items
        scale, dtype = init_std / np.sqrt(factors), self.backend.dtype
        rows = [
            np.random.default_rng(users.row(row)[0]).normal(0, scale, factors)
            for row in range(users.num_rows)
        ]
        columns = np.random.default_rng(0).normal(0, scale, (items.num_rows, factors))
        active = self.problem.active_users
        return State(
            users=(np.array(rows) * active[:, None]).astype(dtype),
            items=(columns * self.problem.active_items[:, None]).astype(dtype),
            weights=self.risk.tail * active.astype(np.float64),
        )

    monkeypatch.setattr(Training, "start", start)


@pytest.mark.parametrize(
    ("name", "backend"), [*((name, "numpy") for name in ALS_MODELS), ("SAFER2", "cpu")]
)
def test_users_of_weight_two_are_two_users(data, start_by_history, name, backend):
    places = np.repeat(np.arange(30), WEIGHTS)
    one = fit(build(name, backend), data, user_weight=WEIGHTS)
    other = fit(build(name, backend), data[places])
    close = {"rtol": 0, "atol": 1e-6 if backend == "numpy" else 1e-3}
    found = rotation_free(one.user_factors[places], one.item_factors)
    expected = rotation_free(other.user_factors, other.item_factors)
    np.testing.assert_allclose(found, expected, **close)
    np.testing.assert_allclose(one.user_weights[places], other.user_weights, **close)
    assert (one.num_users, one.num_items) == (other.num_users, other.num_items)
    for ours, theirs in zip(one.history, other.history, strict=True):
        for number in ("objective", "mean_loss", "var", "cvar", "mean_weight"):
            expected = getattr(theirs, number)
            assert getattr(ours, number) == pytest.approx(expected, rel=10 * close["atol"])
    items = np.arange(20)
    np.testing.assert_allclose(
        rotation_free(one.recalculate_item(items, data.T.tocsr()), one.item_factors),
        rotation_free(other.recalculate_item(items, data[places].T.tocsr()), other.item_factors),
        **close,
    )


@every_model
def test_users_of_weight_zero_are_not_there_but_get_recommendations(data, start_by_history, name):
    counted = np.arange(30) >= 5
    one = fit(build(name), data, user_weight=counted)
    other = fit(build(name), data[5:])
    assert not one.user_weights[:5].any()
    np.testing.assert_array_equal(one.user_factors[:5], one.fold_in(data[:5]))
    np.testing.assert_allclose(
        rotation_free(one.user_factors[:5], one.item_factors),
        rotation_free(other.fold_in(data[:5]), other.item_factors),
        rtol=0,
        atol=1e-6,
    )
    assert one.user_factors[:5].any(axis=1).all()
    ids, _ = one.recommend(np.arange(5), data[:5], N=3)
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


def changed(place, value):
    weights = WEIGHTS.astype(float)
    weights[place] = value
    return weights


BAD = {
    "shape (29,), while there are 30 users": WEIGHTS[1:],
    "shape (), while there are 30 users": 2.0,
    "shape (30, 1)": WEIGHTS[:, None],
    "[3] is -1.0": changed(3, -1),
    "[4] is nan": changed(4, np.nan),
    "[5] is inf": changed(5, np.inf),
    "[6] is 10000000000": changed(6, 1e10),
    "at most 0 for all users that have interactions; try 1": np.zeros(30),
    "at most 1e-10 for all users": np.full(30, 1e-10),
    "not numbers": ["1"] * 30,
    "complex128, not numbers": WEIGHTS + 1j,
    "object, not numbers": [None] * 30,
}


@pytest.mark.parametrize("message", BAD)
def test_bad_weights_are_refused_without_a_trace(data, message):
    model = fit(make(), data)
    with refused(TypeError if "numbers" in message else ValueError, message, unchanged=model):
        fit(model, data, user_weight=BAD[message])


def test_weights_of_users_without_interactions_do_not_count(data):
    data = sp.diags((np.arange(30) != 3).astype(np.float32)) @ data
    weights = np.where(np.arange(30) == 3, 5.0, 1.0)
    model = fit(make(), data, user_weight=weights)
    assert model.num_users == 29
    np.testing.assert_array_equal(model.item_factors, fit(make(), data).item_factors)
    with pytest.raises(ValueError, match="at most 0 for all users that have interactions"):
        fit(make(), data, user_weight=np.arange(30) == 3)


def test_extreme_weights_stay_finite(data):
    for weights in (np.full(30, 1e9), np.full(30, 1e-9), 10.0 ** (np.arange(30) - 20)):
        for backend in ("cpu", "numpy"):
            model = fit(make(backend=backend), data, user_weight=weights)
            assert np.isfinite(model.item_factors).all()
            assert model.item_factors.any()
