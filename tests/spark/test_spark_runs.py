"""What training makes of bad data, of checkpoints and of the session."""

import os
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="no pyspark: pip install 'pyspark[connect]'")

from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import safecf
from safecf.errors import ChangedDataError
from safecf.spark import IALS, SAFER2, blocks, session, training
from tests.spark.training_data import options, read


@pytest.fixture(scope="module")
def frame(spark, tmp_path_factory):
    return read(spark, tmp_path_factory.mktemp("ratings"))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"rating": "-1.0"}, "2,500 rows of the data set have a negative rating"),
        ({"rating": "double('nan')"}, "2,500 rows of the data set have no rating"),
        ({"user": "cast(null as string)"}, "2,500 rows of the data set have no user"),
        ({"rating": "0.0"}, "no row with a rating above 0"),
        ({"rating": "1e13D"}, r"2,500 rows of .* have a rating \(times alpha\) above 1e\+12"),
        ({"rating": "1e-50D"}, "2,500 rows of the data set have a rating too small for float32"),
    ],
    ids=["negative", "nan", "null", "zero", "huge", "tiny"],
)
def test_bad_ratings(frame, change, problem):
    with pytest.raises(ValueError, match=problem):
        IALS(rank=2, maxIter=1).fit(
            frame.withColumns({name: F.expr(text) for name, text in change.items()})
        )


def test_ids_that_spark_and_bytes_compare_differently(spark):
    collated = spark.createDataFrame([("a", 1, 1.0)], "user string, item int, rating float")
    collated = collated.withColumn("user", F.collate("user", "UTF8_LCASE"))
    with pytest.raises(
        TypeError, match="has the collation UTF8_LCASE; ids are compared byte by byte"
    ):
        IALS(rank=2).fit(collated)
    nan = spark.createDataFrame([(float("nan"), 1, 1.0)], "user double, item int, rating float")
    with pytest.raises(ValueError, match="1 rows of the data set have no user"):
        IALS(rank=2).fit(nan)


@pytest.mark.slow
def test_columns_whose_names_differ_by_case(spark):
    both = spark.createDataFrame(
        [(1, 1, 1.0, 9.0)], "user int, item int, rating float, Rating float"
    )
    with pytest.raises(ValueError, match="ratingCol='rating' may be any of the columns"):
        IALS(rank=2).fit(both)
    before = spark.conf.get("spark.sql.caseSensitive")
    try:
        spark.sql("set spark.sql.caseSensitive=TRUE")
        model = IALS(rank=2, maxIter=1).fit(both)
        assert model.to_local().user_mass.tolist() == [1.0]
    finally:
        spark.conf.set("spark.sql.caseSensitive", before)


def test_both_sides_spread_need_a_folder(frame):
    with pytest.raises(ValueError, match="set checkpointDir"):
        IALS(rank=2, maxIter=1, broadcast="never").fit(frame)


def test_errors_of_tasks_are_plain(frame):
    """They name the row by its id, and options by their Params."""
    many = IALS(rank=30, maxIter=1, seed=0, regParam=0.0, unobservedWeight=0.0, numUserBlocks=2)
    with pytest.raises(
        safecf.errors.SolveError, match=r"^user 'user \d+': .* not positive definite .* regParam,"
    ):
        many.fit(frame)
    huge = frame.withColumn("rating", F.lit(1e12))
    with pytest.raises(
        safecf.errors.SolveError, match=r"^the ridge of a row is .* lower regParam,"
    ):
        IALS(rank=2, maxIter=1, seed=0, ridgeExponent=3.0, unobservedWeight=1.0).fit(huge)
    broken = F.udf(lambda _: int("regularization"), "float")
    with pytest.raises(PythonException, match="base 10: 'regularization'"):
        many.fit(frame.withColumn("rating", broken("rating")))


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"unobservedWeight": 100.0}, "nothing was learned.* lower regParam .* or raise maxIter"),
        ({"bandwidth": 1e-6}, "weights have only gone .* raise bandwidth or maxIter"),
    ],
)
def test_training_that_learns_little_warns(frame, params, problem):
    with pytest.warns(safecf.errors.ConvergenceWarning, match=problem):
        SAFER2(rank=4, maxIter=1, seed=0, numUserBlocks=2, numItemBlocks=2, **params).fit(frame)


def test_whose_factors_the_driver_holds(monkeypatch):
    monkeypatch.setattr(training, "HELD", 4 * 8 * 100)  # of 100 rows

    def holds(broadcast, *rows):
        return training.Options(broadcast=broadcast).holds(8, rows)

    assert holds("auto", 101, 100) == (False, True)
    assert holds("always", 101, 102) == (True, False)
    assert holds("always", 101, 101) == (False, True)
    assert holds("always", 100, 99) == (True, True)
    assert holds("never", 1, 1) == (False, False)


@pytest.mark.slow
def test_goes_on_from_a_checkpoint(frame, monkeypatch, tmp_path):
    params = {"solver": "exact", **options("users spread", monkeypatch, tmp_path)}
    whole = SAFER2(maxIter=3, **params).fit(frame).to_local()
    params |= {"checkpointDir": str(tmp_path), "checkpointInterval": 1}
    shorter = SAFER2(maxIter=1, **params).fit(frame)
    before = shorter.to_local().user_factors
    checkpoint = training._Run._checkpoint

    def die(run, gram):
        checkpoint(run, gram)
        if run.epoch == 2:
            raise RuntimeError("the driver died")

    with monkeypatch.context() as dying:
        dying.setattr(training._Run, "_checkpoint", die)
        with pytest.raises(RuntimeError, match="the driver died"):
            SAFER2(maxIter=3, **params).fit(frame)
    ends = []
    monkeypatch.setattr(training._Run, "_checkpoint", lambda run, gram: ends.append(run.epoch))
    went_on = SAFER2(maxIter=3, **params).fit(frame).to_local()
    assert ends == [3]  # one epoch was left
    next(tmp_path.glob("*/000002-*/users/*.parquet")).unlink()
    again = SAFER2(maxIter=3, **params).fit(frame).to_local()
    assert ends == [3, 2, 3]  # the older checkpoint is whole
    np.testing.assert_array_equal(again.user_factors, whole.user_factors)
    np.testing.assert_array_equal(went_on.user_factors, whole.user_factors)
    assert [each.objective for each in went_on.history] == [
        each.objective for each in whole.history
    ]
    shorter.unpersist()  # it reads its own checkpoint, and not that of the longer training
    np.testing.assert_array_equal(shorter.to_local().user_factors, before)


@pytest.mark.slow
def test_trainings_share_a_folder(frame, monkeypatch, tmp_path):
    """Other data, or other options, are another training."""
    params = options("held", monkeypatch, tmp_path) | {"maxIter": 1, "checkpointInterval": 1}
    others = [
        (frame, {}),
        (frame.withColumn("item", F.expr("50 - item")), {}),
        (frame, {"tail": 0.5}),
        (frame, {"checkpointInterval": -1}),
    ]
    for data, more in others:
        fresh = SAFER2(**params | more).fit(data).to_local()
        with_folder = SAFER2(**params | more, checkpointDir=str(tmp_path)).fit(data).to_local()
        np.testing.assert_array_equal(with_folder.item_factors, fresh.item_factors)
    assert len(list(tmp_path.glob("safecf-*"))) == 3  # one training writes none


@pytest.mark.slow
def test_another_seed_is_another_training(frame, monkeypatch, tmp_path):
    params = options("held", monkeypatch, tmp_path) | {"maxIter": 1, "checkpointInterval": 1}
    params |= {"seed": None, "checkpointDir": str(tmp_path)}
    found = [IALS(**params).fit(frame).to_local().item_factors for _ in range(2)]
    assert np.abs(found[0] - found[1]).max() > 1e-3


def test_data_that_changes(spark, monkeypatch):
    """It is read once; where it is read again, what is missing then is noticed."""
    coin = F.udf(lambda: os.urandom(1)[0] < 128, "boolean").asNondeterministic()
    once = spark.range(300).selectExpr("id as user", "id % 40 as item", "1.0 as rating")
    changing = once.where(coin())
    estimator = IALS(rank=2, maxIter=1, seed=0)
    assert estimator.fit(changing).to_local().user_mass.min() > 0
    monkeypatch.setattr(blocks, "_kept", lambda frame, level, until: frame)
    with pytest.raises(ChangedDataError, match="it has other ids"):
        estimator.fit(changing)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["held", "users spread", "spread"])
def test_factors_are_lost_and_the_data_has_changed(spark, where, monkeypatch, tmp_path):
    """What Spark has lost, it computes again: with other data, no id gets factors of others."""
    path = tmp_path / "ratings.csv"

    def write(user, step):
        rows = (f"{user + pair % 90},{10 + pair * step % 41},1\n" for pair in range(600))
        path.write_text("".join(rows))  # always of the same size, as Spark has listed it

    write(user=100, step=1)
    frame = spark.read.csv(str(path), "user int, item int, rating float")
    params = {"maxIter": 1, **options(where, monkeypatch, tmp_path)}
    model = SAFER2(**params).fit(frame)
    before = model.to_local().user_factors
    model.unpersist()
    np.testing.assert_array_equal(model.to_local().user_factors, before)
    model.userFactors.coalesce(1).union(model.userFactors).toArrow()  # blocks are no partitions
    write(user=101, step=1)
    with pytest.raises(PythonException, match=r"the data set has changed .* it has other ids"):
        model.userFactors.toArrow()
    with pytest.raises(PythonException, match="it has other ids"):
        model.userFactors.limit(1).toArrow()
    if where != "held":  # the driver has no factors that could be given again
        write(user=100, step=2)
        with pytest.raises(PythonException, match="it has other interactions"):
            model.userFactors.toArrow()


def test_a_folder_that_cannot_be_written_to(frame, tmp_path):
    (tmp_path / "file").touch()
    folder = str(tmp_path / "file" / "checkpoints")
    with pytest.raises(ValueError, match=r"^checkpointDir='.*' cannot be written to: .*; set it"):
        IALS(rank=2, maxIter=1, checkpointDir=folder).fit(frame)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["held", "users spread"])
def test_nothing_stays_cached_of_a_fit_that_fails(spark, frame, where, monkeypatch, tmp_path):
    manager = spark._jsparkSession.sharedState().cacheManager()
    spark.catalog.clearCache()
    params = options(where, monkeypatch, tmp_path) | {"rank": 60, "maxIter": 1}
    if where == "users spread":
        monkeypatch.setattr(training, "HELD", 60 * 60 * 4)  # 50 items, 150 users
    with pytest.raises(safecf.errors.SolveError, match="not positive definite"):
        IALS(**params, solver="exact", regParam=0.0, unobservedWeight=0.0).fit(frame)
    assert manager.isEmpty()
    count = type(frame).count

    def interrupted(table):
        if "share" in table.columns:
            raise KeyboardInterrupt
        return count(table)

    monkeypatch.setattr(type(frame), "count", interrupted)
    with pytest.raises(KeyboardInterrupt):
        IALS(**params).fit(frame)
    monkeypatch.undo()
    assert manager.isEmpty()
    frame.persist()


def test_trainings_at_a_time_restore_the_session(spark):
    names = "spark.sql.adaptive.enabled", "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = [spark.conf.get(name) for name in names]
    same = SparkSession(spark.sparkContext, spark._jsparkSession)
    with ExitStack() as first:
        first.enter_context(session.plain_plans(spark))
        with session.plain_plans(same):
            first.close()
            assert spark.conf.get(names[0]) == "false"
    assert [spark.conf.get(name) for name in names] == before


@pytest.mark.slow
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
    assert np.isfinite(model.history[0].objective)
