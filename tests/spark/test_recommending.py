"""Recommendations of Spark models, against a sort of all scores."""

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="no pyspark: pip install 'pyspark[connect]'")

from pyspark.errors import SparkRuntimeException
from pyspark.ml.recommendation import ALS
from pyspark.sql import functions as F

from safecf.spark import IALSModel

FITTED = {"options": {"factors": 3}, "resolved": {}, "history": []}


def table(spark, ids, factors, kind="bigint"):
    """Return ids and factors as a DataFrame, in some order and in two partitions."""
    rows = [(each, row.tolist()) for each, row in zip(ids, factors, strict=True)]
    order = np.random.default_rng(3).permutation(len(rows))
    frame = spark.createDataFrame([rows[at] for at in order], f"id {kind}, features array<float>")
    return frame.repartition(2)


def model_of(spark, users, items, kind="bigint", names=int):
    """Return a model with these factors; ids are 10 times the rows' numbers."""
    user_ids = [names(10 * at) for at in range(len(users))]
    item_ids = [names(10 * at) for at in range(len(items))]
    return IALSModel(
        table(spark, user_ids, users, kind), table(spark, item_ids, items, kind), FITTED
    )


def expected(queries, others, k, names=int):
    """Return (id, score) of the k best by query, ties by id."""
    scores = queries @ others.T
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return {
        names(10 * at): [(names(10 * j), float(scores[at, j])) for j in row.tolist()]
        for at, row in enumerate(order)
    }


def collected(frame):
    """Return the lists by id."""
    key, lists = frame.columns
    assert lists == "recommendations"
    rows = frame.collect()
    found = {row[key]: [tuple(entry) for entry in row[lists]] for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.fixture(scope="module")
def factors():
    """Return small whole numbers, so that scores are exact and many of them tie."""
    rng = np.random.default_rng(0)
    sides = (23, 31)
    return [rng.integers(-1, 2, (size, 3)).astype(np.float32) for size in sides]


@pytest.fixture(scope="module")
def model(spark, factors):
    """Return a model with these factors."""
    return model_of(spark, *factors)


@pytest.mark.parametrize("block_size", [1000, 4])
@pytest.mark.parametrize("k", [1, 5, 100])
def test_all_users_and_items(model, factors, k, block_size):
    users, items = factors
    sized = model.copy({model.blockSize: block_size})
    assert collected(sized.recommendForAllUsers(k)) == expected(users, items, k)
    if k == 5:
        assert collected(sized.recommendForAllItems(k)) == expected(items, users, k)


def test_without_a_broadcast_the_lists_are_the_same(spark, model, factors):
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        found = model.copy({model.blockSize: 4}).recommendForAllUsers(6)
        assert "CartesianProduct" in found._jdf.queryExecution().toString()
        assert collected(found) == expected(*factors, 6)
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before)


def test_schema_is_that_of_als(spark, model):
    data = spark.createDataFrame([(0, 0, 1.0), (1, 1, 1.0)], "user int, item int, rating float")
    als = ALS(rank=1, maxIter=1, userCol="user", itemCol="item").fit(data)
    ours = model.copy()
    for side in ("Users", "Items"):
        theirs = getattr(als, f"recommendForAll{side}")(1).schema.simpleString()
        mine = getattr(ours, f"recommendForAll{side}")(1).schema.simpleString()
        assert mine == theirs.replace("user:int", "user:bigint").replace("item:int", "item:bigint")


def test_subsets(spark, model, factors):
    users, items = factors
    asked = spark.createDataFrame([(20,), (20,), (0,), (5,)], "user int")
    want = {key: value for key, value in expected(users, items, 3).items() if key in (0, 20)}
    assert collected(model.recommendForUserSubset(asked, 3)) == want
    asked = asked.withColumnRenamed("user", "thing")
    want = {key: value for key, value in expected(items, users, 2).items() if key in (0, 20)}
    named = model.copy({model.itemCol: "thing"})
    found = named.recommendForItemSubset(asked, 2)
    assert found.columns == ["thing", "recommendations"]
    assert collected(found) == want
    with pytest.raises(ValueError, match="unknown itemCol 'item'"):
        model.recommendForItemSubset(asked, 2)


def test_factors_of_other_users(spark, model, factors):
    new = spark.createDataFrame([("ann", [1.0, 0.0, 2.0])], "id string, features array<float>")
    want = expected(np.float32([[1, 0, 2]]), factors[1], 4)[0]
    assert collected(model.recommendForFactors(new, 4)) == {"ann": want}


def test_factors_that_are_not_the_models(spark, model):
    columns = "id string, features array<float>"
    odd = [1.0, float("nan"), 0.0], [1.0, float("inf"), 0.0], [1.0, None, 0.0]
    for features in ([1.0, 0.0], [1.0] * 6, None, *odd):
        new = spark.createDataFrame([("ann", features), ("bob", [1.0, 0.0, 2.0])], columns)
        message = r"^\[USER_RAISED_EXCEPTION\] recommendForFactors: .* not 3 finite numbers, as the"
        with pytest.raises(SparkRuntimeException, match=message):
            model.recommendForFactors(new, 4).collect()
    with pytest.raises(ValueError, match="unknown column of userFactors 'features': did you mean"):
        model.recommendForFactors(new.withColumnRenamed("features", "feature"), 4)
    with pytest.raises(TypeError, match="features is of type string, not array<float>"):
        model.recommendForFactors(new.withColumn("features", F.lit("1 0 2")), 4)


@pytest.mark.parametrize(
    ("kind", "names"),
    [("string", lambda at: f"{at:04}"), ("date", lambda at: np.datetime64(at, "D").item())],
)
def test_ids_of_other_types(spark, factors, kind, names):
    found = model_of(spark, *factors, kind, names).recommendForAllUsers(3)
    assert collected(found) == expected(*factors, 3, names)


def test_scores_that_are_not_numbers_are_left_out(spark):
    items = np.float32([[np.nan, 0, 0], [2, 0, 0], [1, 0, 0]])
    found = model_of(spark, np.float32([[1, 0, 0]]), items).recommendForAllUsers(3)
    assert collected(found) == {0: [(10, 2.0), (20, 1.0)]}


def test_count_is_checked(model):
    with pytest.raises(ValueError, match="numItems=0 has to be at least 1; try numItems=10"):
        model.recommendForAllUsers(0)
    with pytest.raises(TypeError, match=r"numUsers=1.5 has to be a whole number"):
        model.recommendForAllItems(1.5)
