"""Training on Spark gives what one machine gives, wherever the factors are."""

import os
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="no pyspark: pip install 'pyspark[connect]'")

from pyspark.sql import functions as F

import safecf
from safecf.models.history import unpack_history
from safecf.spark import ERMMF, IALS, SAFER2, blocks, building, engine, training
from tests.spark.training_data import BLOCKS, fit_locally, orders, ratings, read, scores

D = 8
CLOSE = 1e-4
CASES = [
    (IALS, {}, "held"),
    (SAFER2, {}, "held"),
    (SAFER2, {}, "users spread"),
    (SAFER2, {}, "spread"),
    (SAFER2, {"ridgeInRisk": False}, "users spread"),
    (ERMMF, {"solver": "cg", "tolerance": 1e-7}, "held"),
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


def options(where, monkeypatch, tmp_path):
    """Return the Params that bring the factors there."""
    params = {"numUserBlocks": BLOCKS[0], "numItemBlocks": BLOCKS[1], "rank": D, "seed": 5}
    if where == "users spread":
        monkeypatch.setattr(training, "HELD", 60 * D * 4)  # 50 items, 150 users
    elif where == "spread":
        params |= {"broadcast": "never", "checkpointDir": str(tmp_path)}
    return params


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
    expected = local.user_factors @ local.item_factors.T
    found = scores(model, ids)
    assert np.linalg.norm(found - expected) <= CLOSE * np.linalg.norm(expected)
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
        found.append(scores(SAFER2(**params).fit(frame), ids))
    np.testing.assert_allclose(*found, atol=1e-5 * np.abs(found[1]).max())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"rating": "-1.0"}, "2,500 rows of the data set have a negative rating"),
        ({"rating": "double('nan')"}, "2,500 rows of the data set have no rating"),
        ({"user": "cast(null as string)"}, "2,500 rows of the data set have no user"),
        ({"rating": "0.0"}, "no row with a rating above 0"),
    ],
    ids=["negative", "nan", "null", "zero"],
)
def test_bad_ratings(frame, change, problem):
    with pytest.raises(ValueError, match=problem):
        IALS(rank=2, maxIter=1).fit(
            frame.withColumns({name: F.expr(text) for name, text in change.items()})
        )


def test_both_sides_spread_need_a_folder(frame):
    with pytest.raises(ValueError, match="set checkpointDir"):
        IALS(rank=2, maxIter=1, broadcast="never").fit(frame)


def test_errors_of_tasks_are_plain(frame):
    huge = frame.withColumn("rating", F.lit(1e30))
    with pytest.raises(safecf.errors.SolveError, match=r"beyond float32|not positive definite"):
        IALS(rank=2, maxIter=1, seed=0, regParam=0.1, unobservedWeight=1.0).fit(huge)


def test_goes_on_from_a_checkpoint(frame, monkeypatch, tmp_path):
    params = {"solver": "exact", **options("users spread", monkeypatch, tmp_path)}
    whole = SAFER2(maxIter=2, **params).fit(frame).to_local()
    params |= {"checkpointDir": str(tmp_path), "checkpointInterval": 1}
    SAFER2(maxIter=1, **params).fit(frame)
    went_on = SAFER2(maxIter=2, **params).fit(frame).to_local()
    np.testing.assert_array_equal(went_on.user_factors, whole.user_factors)
    assert [each.objective for each in went_on.history] == [
        each.objective for each in whole.history
    ]
    shorter = SAFER2(maxIter=1, **params).fit(frame).to_local()
    assert len(shorter.history) == 1
    assert shorter.history[0].objective == whole.history[0].objective


def test_trainings_share_a_folder(frame, monkeypatch, tmp_path):
    """Other data, or other options, are another training."""
    params = options("held", monkeypatch, tmp_path) | {"maxIter": 1, "checkpointInterval": 1}
    others = [
        (frame, {}),
        (frame.withColumn("item", F.expr("50 - item")), {}),
        (frame, {"tail": 0.5}),
    ]
    for data, more in others:
        fresh = SAFER2(**params, **more).fit(data).to_local()
        with_folder = SAFER2(**params, **more, checkpointDir=str(tmp_path)).fit(data).to_local()
        np.testing.assert_array_equal(with_folder.item_factors, fresh.item_factors)
    assert len(list(tmp_path.iterdir())) == len(others)


def test_data_that_changes(spark, monkeypatch):
    """It is read once; where it is read again, what is missing then is noticed."""
    coin = F.udf(lambda: os.urandom(1)[0] < 128, "boolean").asNondeterministic()
    once = spark.range(300).selectExpr("id as user", "id % 40 as item", "1.0 as rating")
    changing = once.where(coin())
    estimator = IALS(rank=2, maxIter=1, seed=0)
    assert estimator.fit(changing).to_local().user_mass.min() > 0
    monkeypatch.setattr(blocks, "_kept", lambda frame, level, until: frame)
    with pytest.raises(ValueError, match="has changed while it was read"):
        estimator.fit(changing)


def test_trainings_at_a_time_restore_the_session(spark):
    names = "spark.sql.adaptive.enabled", "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = [spark.conf.get(name) for name in names]
    with ExitStack() as first:
        first.enter_context(engine.plain_plans(spark))
        with engine.plain_plans(spark):
            first.close()
            assert spark.conf.get(names[0]) == "false"
    assert [spark.conf.get(name) for name in names] == before


def test_nothing_stays_cached_but_the_model(spark, frame, monkeypatch, tmp_path):
    params = options("users spread", monkeypatch, tmp_path) | {"maxIter": 2}
    frame.count()  # it is cached itself
    context = spark.sparkContext._jsc
    before, views = set(context.getPersistentRDDs()), spark.catalog.listTables()
    model = SAFER2(**params).fit(frame)
    kept = set(context.getPersistentRDDs()) - before
    assert len(kept) == 2  # users and items
    assert spark.catalog.listTables() == views
    model.userFactors.count()


def test_more_blocks_than_rows(spark):
    tiny = spark.createDataFrame(
        pa.table({"user": [1, 1, 2], "item": [1, 2, 2], "rating": [1.0, 1.0, 1.0]})
    )
    model = SAFER2(rank=2, maxIter=1, seed=0).fit(tiny)
    assert model.userFactors.count() == 2
    record = unpack_history({"history": [vars(model.to_local().history[0])]}, training.Epoch)
    assert np.isfinite(record[0].objective)
