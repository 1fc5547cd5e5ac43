"""Training on Spark gives what one machine gives, wherever the factors are."""

from contextlib import ExitStack

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="no pyspark: pip install 'pyspark[connect]'")

from pyspark.storagelevel import StorageLevel

from safecf.als.loss import Loss
from safecf.spark import ERMMF, IALS, SAFER2, blocks, building, engine
from safecf.spark.blocks import lay_out
from tests.spark.training_data import (
    BLOCKS,
    D,
    assert_close,
    factors,
    fit_locally,
    options,
    orders,
    ratings,
    read,
    sum_popular_items,
)

CASES = [
    (IALS, {}, "held"),
    pytest.param(IALS, {}, "spread", marks=pytest.mark.slow),
    pytest.param(SAFER2, {}, "held", marks=pytest.mark.slow),
    (SAFER2, {}, "spread"),
    (SAFER2, {"ridgeInRisk": False}, "held"),
    pytest.param(SAFER2, {"ridgeInRisk": False}, "users spread", marks=pytest.mark.slow),
    pytest.param(SAFER2, {"ridgeInRisk": False}, "items spread", marks=pytest.mark.slow),
    pytest.param(SAFER2, {}, "users spread", marks=pytest.mark.slow),
    pytest.param(SAFER2, {}, "items spread", marks=pytest.mark.slow),
    pytest.param(ERMMF, {"solver": "cg", "tolerance": 1e-7}, "held", marks=pytest.mark.slow),
    pytest.param(ERMMF, {}, "users spread", marks=pytest.mark.slow),
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
    sum_popular_items(monkeypatch)
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


@pytest.mark.slow
def test_xi_by_rounds_of_sums(frame, monkeypatch, tmp_path):
    params = {"maxIter": 1, "bandwidth": 0.1, **options("users spread", monkeypatch, tmp_path)}
    collected = SAFER2(**params).fit(frame).to_local().history
    monkeypatch.setattr(engine, "COLLECTED", 100)
    rounds = SAFER2(**params).fit(frame).to_local().history
    for ours, theirs in zip(rounds, collected, strict=True):
        assert ours.xi == pytest.approx(theirs.xi, rel=1e-6)
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-6)


@pytest.mark.slow
def test_a_sample_of_losses_is_the_same_wherever_they_are(frame, monkeypatch, tmp_path):
    found = []
    for where in ("held", "users spread"):
        params = options(where, monkeypatch, tmp_path)
        model = SAFER2(maxIter=1, bandwidth=0.1, quantileSample=0.3, **params).fit(frame)
        found.append(model.to_local().history[-1])
    assert found[0].xi == pytest.approx(found[1].xi, rel=1e-5)
    whole = SAFER2(maxIter=1, bandwidth=0.1, **params).fit(frame).to_local().history[-1]
    assert found[0].xi != pytest.approx(whole.xi, rel=1e-5)


@pytest.mark.slow
def test_all_items_may_be_sent_as_equations(frame, ids, monkeypatch, tmp_path):
    """No rows are sent at all: every block gets normal equations alone."""
    params = {"maxIter": 1, "solver": "exact", **options("users spread", monkeypatch, tmp_path)}
    monkeypatch.setattr(building, "EQUATIONS", 0)
    found = []
    for hot, big in ((10**6, 10**6), (0, 10**6), (0, 0)):
        monkeypatch.setattr(building, "HOT", hot)
        monkeypatch.setattr(building, "BIG", big)
        found.append(np.vstack(factors(SAFER2(**params).fit(frame), ids)))
    for summed in found[1:]:
        np.testing.assert_allclose(summed, found[0], atol=1e-5 * np.abs(found[0]).max())


def test_pairs_of_big_items_stay_with_their_users(frame, table, monkeypatch):
    """The items' blocks are made of the others' pairs; degrees are those of all."""
    sum_popular_items(monkeypatch)
    ratings = frame.selectExpr("user", "item", "rating as confidence")
    level = StorageLevel.MEMORY_AND_DISK
    with ExitStack() as ending:
        layout = lay_out(ratings, BLOCKS, Loss(0.1), D, lambda rows: (False, True), level, ending)
        users, items = (
            blocks.parts_of(side.interactions.toArrow()).values() for side in layout[:2]
        )
    often = table.group_by("item").aggregate([("user", "count"), ("user", "count_distinct")])
    degree, big = often["user_count_distinct"].to_numpy(), often["user_count"].to_numpy() > 100
    assert sorted(np.concatenate([each.of("degree") for each in items])) == sorted(degree)
    summed = {
        kind: sum(each.of(f"{kind}_counts", of).sum() for each in users for of in range(BLOCKS[1]))
        for kind in ("hot", "big")
    }
    assert summed["big"] == degree[big].sum() > 0
    kept = sum(len(each.of("indices")) for each in items)
    assert kept + summed["hot"] == degree[~big].sum()
    assert summed["hot"] > 0
