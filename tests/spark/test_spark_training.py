"""Training on Spark gives what one machine gives, wherever the factors are."""

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="no pyspark: pip install 'pyspark[connect]'")

from safecf.spark import ERMMF, IALS, SAFER2, building, engine
from tests.long import LONG
from tests.spark.training_data import (
    assert_close,
    factors,
    fit_locally,
    options,
    orders,
    ratings,
    read,
)

CASES = [
    (IALS, {}, "held"),
    pytest.param(IALS, {}, "spread", marks=LONG),
    pytest.param(SAFER2, {}, "held", marks=LONG),
    (SAFER2, {}, "spread"),
    (SAFER2, {"ridgeInRisk": False}, "users spread"),
    pytest.param(SAFER2, {}, "users spread", marks=LONG),
    pytest.param(SAFER2, {}, "items spread", marks=LONG),
    pytest.param(ERMMF, {"solver": "cg", "tolerance": 1e-7}, "held", marks=LONG),
    (ERMMF, {}, "users spread"),
]


@pytest.fixture(scope="module")
def table():
    return ratings()


@pytest.fixture(scope="module")
def frame(spark, tmp_path_factory):
    return read(spark, tmp_path_factory.mktemp("ratings"))


@pytest.fixture(scope="module")
def ids(frame):
    return orders(frame)


@pytest.mark.parametrize(
    ("kind", "more", "where"), CASES, ids=lambda each: getattr(each, "__name__", str(each))
)
def test_agrees_with_one_machine(frame, table, ids, kind, more, where, monkeypatch, tmp_path):
    monkeypatch.setattr(building, "HOT", 2)  # a popular item has more than 16 users in a block
    monkeypatch.setattr(building, "EQUATIONS", 0)
    params = {"maxIter": 5, "solver": "exact", **more, **options(where, monkeypatch, tmp_path)}
    estimator = kind(**params)
    model = estimator.fit(frame)
    local = fit_locally(estimator._unfitted(), table, ids)
    assert_close(model, local, ids)
    history = model.to_local().history
    assert len(history) == len(local.history) == 5
    for ours, theirs in zip(history, local.history, strict=True):
        names = [name for name, value in vars(ours).items() if isinstance(value, float)]
        assert [getattr(ours, name) for name in names] == pytest.approx(
            [getattr(theirs, name) for name in names], rel=1e-3, abs=1e-6
        )
    back = model.to_local()
    np.testing.assert_allclose(np.sort(back.user_weights), np.sort(local.user_weights), rtol=1e-3)
    np.testing.assert_allclose(np.sort(back.user_mass), np.sort(local.user_mass))
    assert back.resolved == pytest.approx(local.resolved, rel=1e-4)


def test_rough_solves_have_the_same_objective(frame, table, ids):
    estimator = SAFER2(rank=32, maxIter=3, seed=1, numUserBlocks=3, numItemBlocks=2)
    history = estimator.fit(frame).to_local().history
    local = fit_locally(estimator._unfitted(), table, ids)
    assert history[-1].objective == pytest.approx(local.history[-1].objective, rel=1e-3)


def test_xi_by_rounds_of_sums(frame, monkeypatch, tmp_path):
    params = {"maxIter": 1, "bandwidth": 0.1, **options("users spread", monkeypatch, tmp_path)}
    collected = SAFER2(**params).fit(frame).to_local().history
    monkeypatch.setattr(engine, "COLLECTED", 100)
    rounds = SAFER2(**params).fit(frame).to_local().history
    for ours, theirs in zip(rounds, collected, strict=True):
        assert ours.xi == pytest.approx(theirs.xi, rel=1e-6)
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-6)


@LONG
def test_a_sample_of_losses_is_the_same_wherever_they_are(frame, monkeypatch, tmp_path):
    found = []
    for where in ("held", "users spread"):
        params = options(where, monkeypatch, tmp_path)
        model = SAFER2(maxIter=1, bandwidth=0.1, quantileSample=0.3, **params).fit(frame)
        found.append(model.to_local().history[-1])
    assert found[0].xi == pytest.approx(found[1].xi, rel=1e-5)
    whole = SAFER2(maxIter=1, bandwidth=0.1, **params).fit(frame).to_local().history[-1]
    assert found[0].xi != pytest.approx(whole.xi, rel=1e-5)


def test_all_rows_may_be_hot(frame, ids, monkeypatch, tmp_path):
    """No rows are sent at all: every block gets normal equations alone."""
    params = {"maxIter": 1, "solver": "exact", **options("users spread", monkeypatch, tmp_path)}
    found = []
    monkeypatch.setattr(building, "EQUATIONS", 0)
    for hot in (0, 1000):
        monkeypatch.setattr(building, "HOT", hot)
        found.append(np.vstack(factors(SAFER2(**params).fit(frame), ids)))
    np.testing.assert_allclose(*found, atol=1e-5 * np.abs(found[1]).max())
