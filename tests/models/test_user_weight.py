"""user_weight: a user of weight 2 counts as two users with the same history, in every model."""

import io

import numpy as np
import pytest
import scipy.sparse as sp

import safecf
from safecf import Interactions
from safecf.als.loop import Training
from safecf.als.state import State
from safecf.models import MODELS
from safecf.models.als import ALSModel
from tests.models.runs import assert_same, fit, held, make
from tests.problems import gradient, rotation_free

WEIGHTS = np.arange(30) % 4
ALS_MODELS = [name for name, kind in MODELS.items() if issubclass(kind, ALSModel)]
every_model = pytest.mark.parametrize("name", ALS_MODELS)
every_backend = pytest.mark.parametrize("backend", ["numpy", "cpu"])


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


@every_backend
@every_model
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


@every_backend
@every_model
def test_users_of_weight_zero_are_not_there_but_get_recommendations(
    data, start_by_history, name, backend
):
    counted = np.arange(30) >= 5
    one = fit(build(name, backend), data, user_weight=counted)
    other = fit(build(name, backend), data[5:])
    close = {"rtol": 0, "atol": 1e-6 if backend == "numpy" else 1e-3}
    assert not one.user_weights[:5].any()
    np.testing.assert_array_equal(one.user_factors[:5], one.fold_in(data[:5]))
    np.testing.assert_allclose(
        rotation_free(one.user_factors[:5], one.item_factors),
        rotation_free(other.fold_in(data[:5]), other.item_factors),
        **close,
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


@every_backend
@every_model
def test_weights_of_one_change_no_bit(data, name, backend):
    one, other = build(name, backend), build(name, backend)
    assert_same(fit(one, data, user_weight=np.ones(30)), fit(other, data))


@pytest.mark.parametrize(
    "kind",
    [list, tuple, np.float32, np.int8, Interactions],
    ids=lambda kind: kind.__name__,
)
def test_the_form_of_the_weights_does_not_matter(data, kind):
    expected = fit(make(), data, user_weight=WEIGHTS)
    if kind is Interactions:
        assert_same(fit(make(), kind.from_csr(data), user_weight=WEIGHTS), expected)
    else:
        assert_same(fit(make(), data, user_weight=kind(WEIGHTS)), expected)


@every_model
def test_a_recalculated_item_minimises_the_weighted_objective(data, name):
    """The users in it are those of the training, and two new ones, who count once each."""
    model = fit(build(name), data, user_weight=WEIGHTS)
    new = data[[3, 7]]
    model.partial_fit_users([30, 31], new)
    parts, users = model.compose(), sp.vstack([data, new]).tocsr()
    counts = np.append(WEIGHTS, [1, 1])
    mass = np.asarray(users.sum(axis=1)).ravel()
    pairs, b = counts * parts.loss.pair_weight(mass), parts.loss.unobserved_weight
    confidence, x, weight = users.toarray(), model.user_factors, model.user_weights
    x = x.astype(np.float64)
    total = parts.risk.tail * WEIGHTS.sum()
    ridge = parts.ridge.weights(confidence.T @ pairs, b * total)

    def objective(y):
        scores = x @ y.T
        error = ((weight * pairs)[:, None] * confidence * (1 - scores) ** 2).sum() / 2
        unobserved = b / 2 * ((counts * weight)[:, None] * scores**2).sum()
        return error + unobserved + (ridge / 2 * (y**2).sum(axis=1)).sum()

    np.testing.assert_array_equal(model.user_counts, counts)
    assert weight[[30, 31]].tolist() == [parts.risk.tail] * 2
    model.partial_fit_items(np.arange(20), users.T.tocsr())
    factors = model.item_factors.astype(np.float64)
    np.testing.assert_allclose(gradient(objective, factors), 0, atol=2e-4)


def test_save_and_load(data):
    model = fit(make(), data, user_weight=WEIGHTS + 0.5)
    model.partial_fit_users([31], data[3])
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    loaded = safecf.load(file)
    assert held(loaded) == held(model)
    np.testing.assert_array_equal(loaded.user_counts, [*(WEIGHTS + 0.5), 1, 1])
    items, users = np.arange(20), sp.hstack([data.T, sp.csr_matrix((20, 2))]).tocsr()
    np.testing.assert_array_equal(
        loaded.recalculate_item(items, users), model.recalculate_item(items, users)
    )


def test_a_run_with_other_weights_is_not_resumed(data, tmp_path):
    path = tmp_path / "run"
    fit(make(iterations=2), data, checkpoint=path, user_weight=WEIGHTS)
    resumed = fit(make(), data, resume=path, user_weight=WEIGHTS)
    assert_same(resumed, fit(make(), data, user_weight=WEIGHTS))
    for other in (None, WEIGHTS + 1, np.ones(30)):
        with pytest.raises(ValueError, match="cannot resume: user_weight is not what the file"):
            fit(make(), data, resume=path, user_weight=other)


def changed(place, value):
    weights = WEIGHTS.astype(float)
    weights[place] = value
    return weights


BAD = {
    "too few": (WEIGHTS[1:], ValueError, r"shape \(29,\), while there are 30 users"),
    "a number": (2.0, ValueError, r"shape \(\), while there are 30 users"),
    "a column": (WEIGHTS[:, None], ValueError, r"shape \(30, 1\).* 1-D array"),
    "negative": (changed(3, -1), ValueError, r"3\] is -1\.0.* try 0"),
    "missing": (changed(4, np.nan), ValueError, r"\[4\] is nan"),
    "infinite": (changed(5, np.inf), ValueError, r"\[5\] is inf"),
    "huge": (changed(6, 1e10), ValueError, r"\[6\] is 10000000000.* divide all by their mean"),
    "nobody": (np.zeros(30), ValueError, "at most 0 for all users that have interactions; try 1"),
    "tiny": (np.full(30, 1e-10), ValueError, "at most 1e-10 for all .* divide all by their mean"),
    "text": (["1"] * 30, TypeError, "not numbers"),
    "complex": (WEIGHTS + 1j, TypeError, "complex128, not numbers"),
    "objects": ([None] * 30, TypeError, "object, not numbers"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_weights_are_refused_without_a_trace(data, case):
    weights, error, message = BAD[case]
    for model in (make(), fit(make(), data)):
        before = held(model)
        with pytest.raises(error, match=f"^user_weight.*{message}"):
            fit(model, data, user_weight=weights)
        assert held(model) == before


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
