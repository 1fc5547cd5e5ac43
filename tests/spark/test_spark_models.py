"""Models: transform, factors, and the way from and to local models."""

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="no pyspark: pip install 'pyspark[connect]'")


import safecf
from safecf.spark import ERMMF, IALS, SAFER2, IALSModel, SAFER2Model, training
from tests.spark.local_training import sample, train

SCHEMA = "user bigint, item int, rating float"


@pytest.fixture(scope="module")
def ratings(spark):
    """Return a small data set."""
    return spark.createDataFrame(sample(), SCHEMA).cache()


@pytest.fixture(scope="module")
def model(spark, ratings):
    """Return a model of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "train", train)
        return SAFER2(rank=6, maxIter=3, seed=1, blockSize=7).fit(ratings)


@pytest.fixture(scope="module")
def local(model):
    """Return the same as a local model."""
    return model.to_local()


@pytest.fixture
def locally(monkeypatch):
    """Train by the local models."""
    monkeypatch.setattr(training, "train", train)


def scores(local, users, items):
    """Return x_u.y_i of the local model, NaN where one is unknown."""
    rows = {name: at for at, name in enumerate(local.user_ids.tolist())}
    columns = {name: at for at, name in enumerate(local.item_ids.tolist())}
    table = local.user_factors.astype(float) @ local.item_factors.T.astype(float)
    known = [(rows.get(user), columns.get(item)) for user, item in zip(users, items, strict=True)]
    return [np.nan if None in pair else table[pair] for pair in known]


def test_factors_and_rank(model, local):
    assert model.rank == 6
    assert model.userFactors.dtypes == [("id", "bigint"), ("features", "array<float>")]
    assert model.itemFactors.dtypes[1] == ("features", "array<float>")
    assert model.userFactors.count() == len(local.user_factors)
    assert [epoch.epoch for epoch in model.history] == [1, 2, 3]
    assert set(model.resolved) == {"regularization", "unobserved_weight", "bandwidth"}


def test_params_come_from_the_estimator(spark, ratings, locally):
    estimator = IALS(rank=3, maxIter=1, predictionCol="score", alpha=2.0, blockSize=5)
    model = estimator.fit(ratings, {estimator.predictionCol: "p"})
    assert isinstance(model, IALSModel)
    assert (model.getPredictionCol(), model.getAlpha(), model.getBlockSize()) == ("p", 2.0, 5)
    assert model.uid == estimator.uid
    assert "rank" not in {param.name for param in model.params}
    several = dict(estimator.fitMultiple(ratings, [{estimator.rank: 2}, {estimator.rank: 4}]))
    assert [several[0].rank, several[1].rank] == [2, 4]


@pytest.mark.parametrize(
    ("kind", "params", "cancels"),
    [
        (SAFER2, {}, True),
        (ERMMF, {}, True),
        (IALS, {}, True),
        (IALS, {"unobservedWeight": 1.0}, False),
    ],
)
def test_where_alpha_cancels_out(ratings, locally, kind, params, cancels):
    found = []
    for alpha in (1.0, 40.0):
        options = {"alpha": alpha, "solver": "exact", **params}
        local = kind(rank=4, maxIter=3, **options).fit(ratings).to_local()
        found.append(local.user_factors @ local.item_factors.T)
    assert np.abs(found[0]).max() > 0.1  # something was learned
    assert np.allclose(*found, rtol=1e-3, atol=1e-3) == cancels


def test_transform(spark, model, local):
    pairs = [(100, 7), (101, 14), (139, 0), (5, 7), (100, 8), (5, 8), (None, 7)]
    data = spark.createDataFrame(
        [(*pair, "x") for pair in pairs], "user long, item long, `a.b` string"
    )
    found = model.transform(data)
    assert found.dtypes == [*data.dtypes, ("prediction", "float")]
    rows = {(row.user, row.item): row.prediction for row in found.collect()}
    expected = scores(local, *zip(*pairs, strict=True))
    np.testing.assert_allclose([rows[pair] for pair in pairs], expected, rtol=1e-5)
    assert np.isnan(expected).sum() == 4

    dropped = model.copy({model.coldStartStrategy: "drop"}).transform(data)
    assert {(row.user, row.item) for row in dropped.collect()} == set(pairs[:3])
    assert model.getColdStartStrategy() == "nan"


def test_transform_of_all_pairs(model, local):
    users = model.userFactors.selectExpr("id as user")
    pairs = users.crossJoin(model.itemFactors.selectExpr("id as item"))
    rows = sorted(model.transform(pairs).collect())
    found = np.reshape([row.prediction for row in rows], (len(local.user_ids), -1))
    np.testing.assert_allclose(found, local.user_factors @ local.item_factors.T, atol=1e-6)


def test_transform_refuses(spark, model):
    data = spark.createDataFrame([(1, "7")], "user long, item string")
    with pytest.raises(TypeError, match=r"itemCol='item' is of type string, .* trained on bigint"):
        model.transform(data)
    rounded = spark.createDataFrame([(2.0**53, 7)], "user double, item int")
    with pytest.raises(TypeError, match=r"userCol='user' is of type double, .* trained on bigint"):
        model.transform(rounded)  # 2^53 and 2^53 + 1 are one double
    with pytest.raises(ValueError, match="there is a column 'user' already; set another"):
        model.copy({model.predictionCol: "user"}).transform(data)
    with pytest.raises(TypeError, match="unknown argument of SAFER2Model 'rank'"):
        model.copy().setParams(rank=3)
    with pytest.raises(ValueError, match="unknown userCol 'users': did you mean 'user'"):
        model.copy({model.userCol: "users"}).transform(data)


def test_names_are_compared_as_spark_does(spark, model):
    data = spark.createDataFrame([(100, 7, 5.0)], "User long, ITEM long, Prediction double")
    with pytest.raises(ValueError, match="there is a column 'prediction' already; set another"):
        model.transform(data)
    renamed = data.withColumnRenamed("Prediction", "rating")
    found = model.transform(renamed)
    assert found.columns == ["User", "ITEM", "rating", "prediction"]
    assert len(model.foldIn(renamed).collect()) == 1
    assert model.recommendForUserSubset(renamed, 2).columns == ["user", "recommendations"]
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        named = model.copy({model.userCol: "User", model.itemCol: "ITEM"})
        row = named.transform(data).first()
        assert row["Prediction"] == 5.0 != row["prediction"]
        with pytest.raises(ValueError, match="unknown userCol 'user': did you mean 'User'"):
            model.transform(renamed)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_names_of_results_that_are_taken(model):
    for names, method in (
        ({"itemCol": "Rating"}, model.recommendForAllUsers),
        ({"userCol": "recommendations"}, model.recommendForAllUsers),
        ({"userCol": "rating"}, model.recommendForAllItems),
    ):
        named = model.copy().setParams(**names)
        with pytest.raises(ValueError, match=r"the result would have two columns '.*': rename"):
            getattr(named, method.__name__)(3)


def test_predictions_in_a_column_with_a_dot(spark, model):
    data = spark.createDataFrame([(100, 7), (5, 7)], "user long, item long")
    named = model.copy({model.predictionCol: "a.b", model.coldStartStrategy: "drop"})
    assert [row.user for row in named.transform(data).collect()] == [100]


def test_ids_of_another_kind_than_the_models(spark, model):
    for kind in ("boolean", "date", "binary"):
        data = spark.createDataFrame([(100, None)], f"user long, item {kind}")
        with pytest.raises(TypeError, match=rf"itemCol='item' is of type {kind}, .* on bigint"):
            model.transform(data)
        with pytest.raises(TypeError, match=rf"itemCol='item' is of type {kind}, .* on bigint"):
            model.recommendForItemSubset(data, 2)
    data = spark.createDataFrame([], "user struct<a:int>, item int, rating int")
    for method in (model.transform, model.foldIn):
        with pytest.raises(TypeError, match=r"userCol='user' is of type struct<a:int>; ids can be"):
            method(data)


def test_texts_as_ids(spark, locally):
    data = spark.createDataFrame(
        [(f"u{user}", f"i{item}", rating) for user, item, rating in sample()],
        "user string, item string, rating float",
    )
    model = ERMMF(rank=4, maxIter=2, seed=0).fit(data)
    assert {row.id for row in model.userFactors.collect()} == set(model.to_local().user_ids)
    found = model.transform(data).collect()
    pairs = [(row.user, row.item) for row in found]
    assert len(found) == data.count()
    np.testing.assert_allclose(
        [row.prediction for row in found],
        scores(model.to_local(), *zip(*pairs, strict=True)),
        rtol=1e-4,
    )


def same(one, other):
    """Assert that two local models are equal."""
    assert repr(one) == repr(other)
    for name in ("user_factors", "item_factors", "user_weights", "user_mass", "item_popularity"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.user_ids.tolist() == other.user_ids.tolist()
    assert one.item_ids.tolist() == other.item_ids.tolist()
    assert one.history == other.history
    assert (one.seed, one.num_users, one.num_items) == (
        other.seed,
        other.num_users,
        other.num_items,
    )


@pytest.mark.parametrize("ids", ["numbers", "texts"])
def test_from_local_and_back(spark, ids, monkeypatch):
    monkeypatch.setattr("safecf.spark.local.ROWS", 7)  # factors in several pieces
    frame = {"user": [], "item": [], "rating": []}
    for row in sorted(sample()):
        for name, value in zip(frame, row, strict=True):
            frame[name].append(value if ids == "numbers" or name == "rating" else f"{value:04}")
    data = safecf.Interactions.from_frame(frame, weight="rating")
    order = np.argsort(data.item_ids)
    matrix = data.to_csr()[:, order]
    data = safecf.Interactions.from_csr(matrix, data.user_ids, data.item_ids[order])
    local = safecf.SAFER2(5, iterations=2, bandwidth=np.inf, random_state=np.random.default_rng(0))
    local.fit(data, show_progress=False)
    model = SAFER2Model.from_local(local, spark)
    back = model.to_local()
    local.random_state = local.seed
    same(local, back)
    np.testing.assert_array_equal(local.recommend(3, matrix[3])[0], back.recommend(3, matrix[3])[0])
    with pytest.raises(TypeError, match="this is a SAFER2, not a IALS; try SAFER2Model"):
        IALSModel.from_local(local, spark)


def test_counts_and_numbers_for_ids(spark):
    matrix = safecf.Interactions.from_frame({"user": [0, 0, 1], "item": [0, 1, 0]}).to_csr()
    local = safecf.IALS(2, iterations=1, random_state=0)
    local.fit(matrix, show_progress=False, user_weight=[2.0, 5.0])
    back = IALSModel.from_local(local, spark).to_local()
    assert back.user_counts.tolist() == [2.0, 5.0]
    assert back.user_ids.tolist() == [0, 1]
    local.partial_fit_users([2], matrix[0])
    local.user_ids = back.user_ids
    with pytest.raises(ValueError, match="user_ids has 2 ids, and there are 3 rows"):
        IALSModel.from_local(local, spark)


def test_ids_that_local_models_do_not_have(model, spark):
    users = model.users.selectExpr("cast(id as double) id", "features", "weight", "mass")
    with pytest.raises(TypeError, match=r"ids of users are of type double, .* cast userCol"):
        SAFER2Model(users, model.items, model.fitted).to_local()


def test_unpersist(spark, ratings):
    ratings.count()
    before = spark.sparkContext._jsc.getPersistentRDDs().size()
    params = {"maxIter": 1, "numUserBlocks": 1, "numItemBlocks": 1}
    model = IALS(rank=2, **params).fit(ratings)
    frames = model.users, model.items
    assert [frame.storageLevel.useMemory for frame in frames] == [True, True]
    rows = sorted(model.userFactors.collect())
    assert model.unpersist(blocking=True) is model
    assert [frame.storageLevel.useMemory for frame in frames] == [False, False]
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == before
    assert sorted(model.userFactors.collect()) == rows  # computed again
