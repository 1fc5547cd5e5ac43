"""Params: names, defaults and checks; estimators without training."""

import inspect

import pytest

pytest.importorskip("pyspark", reason="no pyspark: pip install 'pyspark[connect]'")

from pyspark.ml.recommendation import ALS, _ALSParams
from pyspark.sql import functions as F

import safecf
from safecf.spark import ERMMF, IALS, SAFER2, estimators, training
from safecf.spark.arguments import ERMMFArguments, IALSArguments, SAFER2Arguments
from safecf.spark.params import param_name

ARGUMENTS = {IALS: IALSArguments, ERMMF: ERMMFArguments, SAFER2: SAFER2Arguments}
EVERY = pytest.mark.parametrize("kind", list(ARGUMENTS))


@EVERY
def test_has_every_param_of_als(kind):
    names = {name for name, _ in inspect.getmembers(_ALSParams, lambda each: hasattr(each, "doc"))}
    assert {"rank", "blockSize", "finalStorageLevel"} <= names  # the list is not empty
    assert names <= {param.name for param in kind().params}
    setters = {name for name in dir(ALS) if name.startswith(("get", "set")) and name[3:4].isupper()}
    assert not {name for name in setters if not hasattr(kind, name)}


@EVERY
def test_arguments_are_the_params(kind):
    assert {param.name for param in kind().params} == ARGUMENTS[kind].__optional_keys__


@EVERY
def test_defaults_are_those_of_the_local_model(kind):
    local = kind.local(random_state=0)  # as ALS's, the seed is fixed
    assert kind()._unfitted().get_params() == local.get_params()


@EVERY
def test_setters_and_getters(kind):
    estimator = kind()
    for param in estimator.params:
        value = estimator.getOrDefault(param)
        name = param.name[0].upper() + param.name[1:]
        assert getattr(estimator, f"set{name}")(value) is estimator
        assert getattr(estimator, f"get{name}")() == value
        assert estimator.isSet(param)
        assert param.doc


def test_options_reach_the_local_model():
    estimator = SAFER2(
        rank=8, maxIter=3, regParam=0.1, unobservedWeight="auto", seed=5, bandwidth=2, tail=0.2
    )
    found = estimator.setParams(kernel="logistic", solver="exact")._unfitted()
    assert repr(found) == repr(
        safecf.SAFER2(
            8,
            iterations=3,
            regularization=0.1,
            random_state=5,
            bandwidth=2.0,
            tail=0.2,
            kernel="logistic",
            solver="exact",
        )
    )


def test_names_in_camel_case():
    assert param_name("quantile_sample") == "quantileSample"
    assert param_name("iterations") == "maxIter"


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"implicitPrefs": False}, ValueError, "implicitPrefs=False: ratings are confidences"),
        ({"nonnegative": True}, ValueError, "nonnegative=True: factors of both signs"),
        ({"coldStartStrategy": "none"}, ValueError, "unknown coldStartStrategy 'none'"),
        ({"intermediateStorageLevel": "NONE"}, ValueError, "unknown intermediateStorageLevel"),
        ({"numItemBlocks": 0}, ValueError, "numItemBlocks=0 has to be at least 1; try .*=10"),
        ({"checkpointInterval": 0}, ValueError, "checkpointInterval=0 has to be at least 1"),
        ({"alpha": 0.0}, ValueError, "alpha=0 has to be a number above 0"),
        ({"broadcast": "yes"}, ValueError, "unknown broadcast 'yes'"),
        ({"regParam": "none"}, TypeError, "param \"regParam\". 'none' is neither a number nor"),
        ({"rank": 2.5}, TypeError, 'param "rank". Could not convert 2.5 to int'),
        ({"seed": 2**63}, ValueError, r"seed=9223372036854775808 has to be from -2\*\*63 to"),
        ({"rnk": 2}, TypeError, "unknown argument of SAFER2 'rnk': did you mean 'rank'"),
    ],
)
def test_refused_when_set(params, error, message):
    with pytest.raises(error, match=message):
        SAFER2(**params)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"rank": 0}, "rank=0 has to be from 1 to .*; try rank=256"),
        ({"regParam": -1.0}, r"regParam=-1.0 has to be in \[0, 1e\+15\]; try regParam='auto'"),
        ({"tail": 1.5}, "tail=1.5 has to be in"),
        ({"kernel": "gausian"}, "unknown kernel 'gausian': did you mean 'gaussian'"),
    ],
)
def test_refused_by_fit_with_the_names_of_params(params, message):
    with pytest.raises(ValueError, match=message):
        SAFER2(**params)._unfitted()


def test_accepted_as_in_als():
    estimator = SAFER2(implicitPrefs=True, nonnegative=False, coldStartStrategy="DROP", seed=None)
    assert estimator.getColdStartStrategy() == "drop"
    assert estimator.getSeed() is None
    assert estimator._unfitted().random_state is None
    for seed, state in ((-3, 2**63 - 3), (-(2**63), 0), (2**63 - 1, 2**63 - 1)):
        assert estimator.setSeed(seed).getSeed() == seed
        assert estimator._unfitted().random_state == state
    assert estimator.setNumBlocks(3).getNumUserBlocks() == estimator.getNumItemBlocks() == 3
    assert estimator.setCheckpointInterval(-1).getCheckpointInterval() == -1


@pytest.fixture
def seen(monkeypatch):
    """Catch what training would get."""
    calls = []

    def train(local, ratings, options):
        calls.append((local, ratings, options))
        raise RuntimeError("caught")

    monkeypatch.setattr(estimators.training, "train", train)
    return calls


def test_training_gets_confidences(spark, seen):
    rows = [(1, "a", 2), (1, "b", 0), (2, "a", None)]
    data = spark.createDataFrame(rows, "who int, `a.what` string, stars int")
    estimator = IALS(userCol="who", itemCol="a.what", ratingCol="stars", alpha=1.5, numUserBlocks=3)
    with pytest.raises(RuntimeError, match="caught"):
        estimator.fit(data)
    local, ratings, options = seen[0]
    assert type(local) is safecf.IALS
    assert ratings.dtypes == [("user", "int"), ("item", "string"), ("confidence", "float")]
    assert sorted(ratings.collect()) == [(1, "a", 3.0), (2, "a", None)]  # rating 0 is nowhere
    assert options.user_blocks == 3
    assert isinstance(options, training.Options)


@pytest.mark.parametrize(
    "kind",
    [
        "tinyint",
        "decimal(20,2)",
        "double",
        "boolean",
        "date",
        "timestamp",
        "timestamp_ntz",
        "binary",
        "interval day to second",
    ],
)
def test_types_of_ids(spark, seen, kind):
    data = spark.createDataFrame([], f"user {kind}, item {kind}, rating int")
    with pytest.raises(RuntimeError, match="caught"):
        IALS().fit(data)
    assert seen[0][1].dtypes == [("user", kind), ("item", kind), ("confidence", "float")]


def test_names_of_columns_in_another_case(spark, seen):
    data = spark.createDataFrame([], "User int, ITEM int, Rating int")
    with pytest.raises(RuntimeError, match="caught"):
        IALS().fit(data)
    assert seen[0][1].columns == ["user", "item", "confidence"]


def test_without_ratings_every_row_counts_alpha(spark, seen):
    data = spark.range(3).select(F.col("id").alias("user"), F.col("id").alias("item"))
    estimator = SAFER2(ratingCol="")
    with pytest.raises(RuntimeError, match="caught"):
        estimator.fit(data, {estimator.alpha: 2.0, estimator.rank: 3})
    local, ratings, _ = seen[0]
    assert local.factors == 3
    assert {row.confidence for row in ratings.collect()} == {2.0}
    assert estimator.getAlpha() == 1.0


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"userCol": "usr"}, ValueError, "unknown userCol 'usr': did you mean 'user'"),
        ({"ratingCol": "name"}, TypeError, "ratingCol='name' is of type string; cast it to float"),
        ({"itemCol": "USER"}, ValueError, "userCol and itemCol name the same column 'USER'"),
        ({"ratingCol": "item"}, ValueError, "itemCol and ratingCol name the same column 'item'"),
        ({"itemCol": "tags"}, TypeError, "itemCol='tags' is of type array<int>; ids can be"),
        ({"itemCol": "map"}, TypeError, "itemCol='map' is of type map<int,int>; ids can be"),
        ({"itemCol": "json"}, TypeError, "itemCol='json' is of type variant; ids can be"),
    ],
)
def test_columns_are_checked(spark, params, error, message):
    data = spark.createDataFrame([(1, 2, "x")], "user int, item int, name string").selectExpr(
        "*", "array(item) tags", "map(item, user) map", "parse_json('1') json", "1.0 rating"
    )
    with pytest.raises(error, match=message):
        SAFER2(**params).fit(data)


def test_a_stream_is_refused(spark):
    stream = spark.readStream.format("rate").load()
    with pytest.raises(ValueError, match=r"a stream cannot be fitted.*fit in foreachBatch"):
        SAFER2(userCol="timestamp", itemCol="value", ratingCol="").fit(stream)
