"""Files of estimators, models and pipelines."""

import json
import math

import pytest

pytest.importorskip("pyspark", reason="no pyspark: pip install 'pyspark[connect]'")

from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.feature import SQLTransformer
from pyspark.ml.recommendation import ALS

from safecf.errors import FileFormatError
from safecf.spark import ERMMF, IALS, SAFER2, IALSModel, SAFER2Model, training
from tests.spark.local_training import sample, train


@pytest.fixture(scope="module")
def ratings(spark):
    """Return a small data set."""
    return spark.createDataFrame(sample(), "user bigint, item int, rating float").cache()


@pytest.fixture(autouse=True)
def locally(monkeypatch):
    """Train by the local models."""
    monkeypatch.setattr(training, "train", train)


def values(params):
    """Return all Params that are set, and all defaults."""
    maps = params._paramMap, params._defaultParamMap
    return [{param.name: value for param, value in each.items()} for each in maps]


def test_estimator(spark, tmp_path):
    path = str(tmp_path / "estimator")
    estimator = SAFER2(rank=7, bandwidth=math.inf, userCol="inf", seed=3, checkpointDir=None)
    estimator.save(path)
    found = SAFER2.load(path)
    assert (found.uid, values(found)) == (estimator.uid, values(estimator))
    with pytest.raises(FileExistsError, match=r"estimator is there already; use write\(\).over"):
        estimator.save(path)
    estimator.setRank(8).write().overwrite().save(path)
    assert SAFER2.load(path).getRank() == 8
    with pytest.raises(
        FileFormatError, match=r"SAFER2 of safecf.spark, not a ERMMF of .* try SAFER2.load"
    ):
        ERMMF.load(path)


def test_model(spark, ratings, tmp_path):
    path = str(tmp_path / "model")
    estimator = SAFER2(rank=4, maxIter=2, bandwidth=math.inf, predictionCol="score", seed=0)
    model = estimator.fit(ratings)
    model.save(path)
    text = spark.read.text(f"{path}/metadata").first()[0]
    json.loads(text, parse_constant=pytest.fail)  # no Infinity, no NaN
    found = SAFER2Model.load(path)
    assert (found.uid, values(found)) == (model.uid, values(model))
    assert found.fitted == model.fitted
    assert found.to_local().bandwidth == math.inf
    for name in ("users", "items"):
        rows = [sorted(getattr(each, name).collect()) for each in (found, model)]
        assert rows[0] == rows[1]
    assert found.transform(ratings).count() == ratings.count()


def tree(path):
    """Return the names of all files under a folder."""
    return {str(each.relative_to(path)) for each in path.rglob("*") if each.is_file()}


def test_a_folder_of_others(spark, ratings, tmp_path):
    path = tmp_path / "als"
    ALS(rank=1, maxIter=1).fit(ratings).save(str(path))
    before = tree(path)
    model = IALS(rank=2, maxIter=1).fit(ratings)
    message = r"holds a ALSModel of pyspark\.ml\.recommendation, not a IALSModel of safecf\.spark"
    with pytest.raises(FileFormatError, match=message):
        IALSModel.load(str(path))
    with pytest.raises(FileExistsError, match="als is there already"):
        model.save(str(path))
    assert tree(path) == before
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        model.write().overwrite().save(str(path))
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert {each.name for each in path.iterdir()} == {"metadata", "users", "items"}
    assert IALSModel.load(str(path)).rank == 2


def test_a_model_does_not_overwrite_its_own_files(spark, ratings, tmp_path):
    path = tmp_path / "model"
    IALS(rank=2, maxIter=1).fit(ratings).save(str(path))
    before = tree(path)
    found = IALSModel.load(str(path))
    for table in (found.users, found.items):
        table.persist().count()
    for folder in (path, f"{path}/", tmp_path):  # the last one holds the model's folder
        with pytest.raises(ValueError, match="holds files that this very object reads"):
            found.copy().write().overwrite().save(str(folder))
    assert tree(path) == before
    for table in (found.users, found.items):
        table.unpersist()
    found.write().overwrite().save(str(tmp_path / "other"))
    assert IALSModel.load(str(tmp_path / "other")).userFactors.count() == found.users.count()


def test_a_param_of_a_newer_version(spark, tmp_path):
    path = str(tmp_path / "estimator")
    IALS(rank=2).save(path)
    text = spark.read.text(f"{path}/metadata").first()[0].replace('"rank":2', '"rnk":2')
    frame = spark.createDataFrame([(text,)], "value string")
    frame.write.mode("overwrite").text(f"{path}/metadata")
    with pytest.raises(FileFormatError, match="IALS has no Param 'rnk'; try a newer version"):
        IALS.load(path)


def test_pipelines(spark, ratings, tmp_path):
    only = SQLTransformer(statement="SELECT user, item, rating FROM __THIS__ WHERE rating > 1")
    pipeline = Pipeline(stages=[only, IALS(rank=3, maxIter=1, seed=0)])
    pipeline.save(str(tmp_path / "pipeline"))
    found = Pipeline.load(str(tmp_path / "pipeline"))
    assert found.getStages()[1].getRank() == 3
    model = found.fit(ratings)
    model.save(str(tmp_path / "model"))
    again = PipelineModel.load(str(tmp_path / "model"))
    assert isinstance(again.stages[1], IALSModel)
    assert sorted(again.transform(ratings).collect()) == sorted(model.transform(ratings).collect())


def test_a_folder_that_is_not_there(spark, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no SAFER2Model at .*nowhere; give the"):
        SAFER2Model.load(str(tmp_path / "nowhere"))
