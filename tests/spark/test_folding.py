"""Fold-in of new users, against the local models."""

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="no pyspark: pip install 'pyspark[connect]'")

from pyspark.errors import SparkRuntimeException

import safecf
from safecf.spark import ERMMFModel, IALSModel, SAFER2Model, folding
from tests.spark.local_training import sample

NEW = [
    (5, 7, 2.0),
    (5, 14, 1.0),
    (9, 999, 1.0),
    (7, 0, 4.0),
    (7, 7, 1.5),
    (7, 14, 0.0),
    (7, 28, 2.0),
]


def local_model(kind, **options):
    """Return a fitted local model."""
    user, item, rating = zip(*sample(), strict=True)
    data = {"user": list(user), "item": list(item), "rating": list(rating)}
    model = kind(6, iterations=3, random_state=0, **options)
    return model.fit(safecf.Interactions.from_frame(data, weight="rating"), show_progress=False)


@pytest.mark.parametrize(
    ("kind", "spark_kind", "options"),
    [
        (safecf.IALS, IALSModel, {"ridge_exponent": 0.7}),
        (safecf.ERMMF, ERMMFModel, {"unobserved_weight": 0.2}),
        (safecf.SAFER2, SAFER2Model, {"regularization": 0.03}),
    ],
)
def test_equal_to_the_local_model(spark, kind, spark_kind, options):
    local = local_model(kind, **options)
    model = spark_kind.from_local(local, spark).setParams(alpha=0.5)
    found = model.foldIn(spark.createDataFrame(NEW, "user int, item long, rating double"))
    assert found.dtypes == [("id", "int"), ("features", "array<float>")]
    rows = {row.id: row.features for row in found.collect()}
    known = [(user, item, 0.5 * rating) for user, item, rating in NEW if item != 999 and rating]
    user, item, weight = zip(*known, strict=True)
    data = safecf.Interactions.from_frame(
        {"user": list(user), "item": list(item), "weight": list(weight)}, weight="weight"
    )
    expected = dict(zip(data.user_ids.tolist(), local.fold_in(data), strict=True))
    assert rows.keys() == expected.keys() == {5, 7}  # user 9 has no known items
    for name, factors in expected.items():
        np.testing.assert_allclose(rows[name], factors, rtol=1e-5, atol=1e-6)


def test_training_users_and_repeated_rows(spark):
    local = local_model(safecf.SAFER2)
    model = SAFER2Model.from_local(local, spark)
    halves = [(user, item, rating / 2) for user, item, rating in sample()] * 2
    found = model.foldIn(spark.createDataFrame(halves, "user long, item long, rating double"))
    rows = {row.id: row.features for row in found.collect()}
    assert rows.keys() == set(local.user_ids.tolist())
    factors = [rows[user] for user in local.user_ids.tolist()]
    np.testing.assert_allclose(factors, local.user_factors, rtol=1e-4, atol=1e-5)
    best = model.recommendForFactors(found, 2).collect()
    assert len(best) == len(rows)
    assert {len(row.recommendations) for row in best} == {2}


@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_users_are_not_split(monkeypatch, chunk):
    monkeypatch.setattr(folding, "CHUNK", chunk)
    users = ["a"] * 3 + ["b"] * 4 + ["c"] + ["d"] * 2
    batches = [pa.RecordBatch.from_pydict({"user": users[at : at + 2]}) for at in range(0, 10, 2)]
    tables = [table["user"].to_pylist() for table in folding.whole_users(iter(batches))]
    assert [user for table in tables for user in table] == users
    assert sum(len(set(table)) for table in tables) == 4
    assert len(tables) == {1: 4, 4: 3, 100: 1}[chunk]


def test_gram_is_that_of_all_items(spark):
    local = local_model(safecf.IALS)
    model = IALSModel.from_local(local, spark)
    expected = local.item_factors.T.astype(float) @ local.item_factors
    found = folding.gram_of(model.items.repartition(3), 6)
    np.testing.assert_allclose(found, expected, atol=1e-5 * expected.max())


def test_wrong_rows_are_refused(spark):
    model = SAFER2Model.from_local(local_model(safecf.SAFER2), spark)
    message = r"^\[USER_RAISED_EXCEPTION\] foldIn: a user's id or rating is missing, or .* negative"
    rows = [(1, 7, -1.0), (1, 999, -1.0), (None, 7, 1.0), (1, 7, None), (1, 7, np.nan)]
    for row in [*rows, (1, 7, np.inf)]:  # 999 is no item of the model
        data = spark.createDataFrame([row, (1, 14, 1.0)], "user int, item int, rating double")
        with pytest.raises(SparkRuntimeException, match=message):
            model.foldIn(data).collect()
