"""`TailEvaluator` against the measures of the library, and items that users have no row for."""

import math

import numpy as np
import pytest
import scipy.sparse

pytest.importorskip("pyspark", reason="no pyspark: pip install 'pyspark[connect]'")

from pyspark.ml.tuning import CrossValidator, ParamGridBuilder

from safecf.evaluation import METRICS, tail_mean
from safecf.spark import SAFER2, TailEvaluator, evaluator, training, with_unobserved
from tests.spark.local_training import sample, train

SCHEMA = "user long, item int, rating float, prediction float"


def rows_to_rank(users=17, seed=1):
    """Return rows of several users, some without one of the kinds, with ties and NaN."""
    rng = np.random.default_rng(seed)
    rows = []
    for user in range(users):
        size = int(rng.integers(3, 12))
        label = rng.integers(0, 2, size) * rng.integers(1, 6, size)
        label[:] = {0: 0, 1: 2}.get(user, label)  # only one kind of rows
        label[:2] = label[:2] if user < 2 else (0, 3)
        score = np.round(rng.normal(size=size), 1)
        score[rng.random(size) < 0.1] = np.nan
        rows += [(user, at, float(label[at]), float(score[at])) for at in range(size)]
    return rows


def brute_force(rows, metric, k):
    """Return the metric of every user by loops."""
    found = {}
    for user in sorted({row[0] for row in rows}):
        own = [(label > 0, score) for who, _, label, score in rows if who == user]
        hits = sum(positive for positive, _ in own)
        if metric == "loss":
            filled = [0 if math.isnan(score) else score for positive, score in own if positive]
            if filled:
                found[user] = np.mean([(1 - score) ** 2 for score in filled])
            continue
        if hits in (0, len(own)):
            continue
        last = [(positive, -math.inf if math.isnan(score) else score) for positive, score in own]
        if metric == "auc":
            won = [
                (one > other) + (one == other) / 2
                for positive, one in last
                if positive
                for negative, other in last
                if not negative
            ]
            found[user] = np.mean(won)
            continue
        order = sorted(range(len(own)), key=lambda at: (-last[at][1], last[at][0]))
        target = scipy.sparse.csr_matrix([[int(positive) for positive, _ in own]])
        found[user] = METRICS[metric](np.array([order]), target, k)[0]
    return found


@pytest.fixture(scope="module")
def rows():
    """Return rows of users."""
    return rows_to_rank()


@pytest.fixture(scope="module")
def predictions(spark, rows):
    """Return them as a DataFrame."""
    return spark.createDataFrame(rows, SCHEMA).cache()


@pytest.mark.parametrize("metric", ["auc", "ndcg", "recall", "loss"])
def test_metrics_and_tails(predictions, rows, metric):
    judge = TailEvaluator(metricName=metric, k=3)
    expected = brute_force(rows, metric, 3)
    found = {row.user: row.value for row in judge.perUser(predictions).collect()}
    assert found == pytest.approx(expected)
    values = np.array(list(expected.values()))
    sign = -1 if metric == "loss" else 1
    assert judge.isLargerBetter() == (sign > 0)
    for tail in (0.01, 0.4):
        want = sign * tail_mean(sign * values, tail)
        assert judge.setTail(tail).evaluate(predictions) == pytest.approx(want)


def test_tail_of_everybody_and_whole_users(predictions, rows):
    values = list(brute_force(rows, "auc", 1).values())
    judge = TailEvaluator()
    assert judge.evaluate(predictions, {judge.tail: 1.0}) == pytest.approx(np.mean(values))
    share = 3 / len(values)
    assert judge.evaluate(predictions, {judge.tail: share}) == pytest.approx(
        tail_mean(values, share)
    )


@pytest.mark.parametrize("accuracy", [10_000, 50, 3])
def test_tails_do_not_depend_on_the_accuracy(spark, monkeypatch, accuracy):
    monkeypatch.setattr(evaluator, "ACCURACY", accuracy)
    values = np.round(np.random.default_rng(0).normal(size=300), 1)
    scores = spark.createDataFrame([(float(value),) for value in values], "value double")
    for tail in (0.001, 0.333, 1.0):
        found = evaluator._lowest(scores.repartition(3), tail, tail * 300) / (tail * 300)
        assert found == pytest.approx(tail_mean(values, tail))


def test_wrong_use(spark, predictions, tmp_path):
    with pytest.raises(ValueError, match=r"tail=1.5 has to be a share of users"):
        TailEvaluator(tail=1.5).evaluate(predictions)
    with pytest.raises(ValueError, match="unknown metricName 'acu': did you mean 'auc'"):
        TailEvaluator(metricName="acu")
    with pytest.raises(TypeError, match="unknown argument of TailEvaluator 'tails'"):
        TailEvaluator(tails=0.1)
    with pytest.raises(ValueError, match=r"no user has the metric 'auc'.*with_unobserved"):
        TailEvaluator().evaluate(predictions.where("rating > 0"))
    with pytest.raises(ValueError, match="unknown labelCol 'label'"):
        TailEvaluator(labelCol="label").evaluate(predictions)
    texts = predictions.selectExpr("user", "prediction", "'much' as rating")
    with pytest.raises(TypeError, match="labelCol='rating' is of type string; cast it to a number"):
        TailEvaluator().evaluate(texts)
    path = str(tmp_path / "evaluator")
    TailEvaluator(tail=0.2, metricName="NDCG").save(path)
    assert TailEvaluator.load(path).getTail() == 0.2
    assert TailEvaluator.load(path).getMetricName() == "ndcg"


def test_names_of_columns(spark):
    data = spark.createDataFrame([(1, 2, 1), (2, 3, 1)], "User int, ITEM int, Rating int")
    found = with_unobserved(data, perUser=1)
    assert found.columns == data.columns
    assert sorted(found.collect()) == [(1, 2, 1), (1, 3, 0), (2, 2, 0), (2, 3, 1)]
    with pytest.raises(ValueError, match="userCol and itemCol name the same column 'user'"):
        with_unobserved(data, itemCol="user")


def test_unobserved_items(spark):
    everything = [(7, item, 1, "x") for item in range(30)]
    rows = [(user, item, int(rating), "x") for user, item, rating in sample(items=30)]
    rows = [(user, item // 7, rating, note) for user, item, rating, note in rows] + everything
    data = spark.createDataFrame(rows, "user long, item int, rating int, note string")
    found = with_unobserved(data, perUser=26, seed=4).cache()
    assert found.schema == data.schema
    added = found.where("rating = 0").collect()
    assert found.count() == len(added) + len(rows)
    pairs = {(row.user, row.item) for row in added}
    assert len(pairs) == len(added)
    own = {}
    for user, item, _, _ in rows:
        own.setdefault(user, set()).add(item)
    catalogue = set().union(*own.values())
    for user, items in own.items():
        new = {item for who, item in pairs if who == user}
        assert not new & items
        assert new <= catalogue
        assert len(new) == min(26, len(catalogue) - len(items))
    again = with_unobserved(data.repartition(5), perUser=26, seed=4)
    assert {(row.user, row.item) for row in again.where("rating = 0").collect()} == pairs
    other = with_unobserved(data, perUser=5, seed=5).where("rating = 0").collect()
    assert not {(row.user, row.item) for row in other} <= pairs


def test_unobserved_items_are_drawn_uniformly(spark):
    data = spark.range(3000).selectExpr("id user", "cast(id % 11 as int) item", "1.0 rating")
    drawn = with_unobserved(data, perUser=2).where("rating = 0").groupBy("item").count().collect()
    counts = np.array([row["count"] for row in drawn])
    assert counts.sum() == 6000
    # chi-square with 10 degrees of freedom: above 29.6 with probability 0.001
    assert ((counts - 6000 / 11) ** 2 / (6000 / 11)).sum() < 29.6


def test_primes():
    assert [evaluator._prime_from(low) for low in (0, 3, 4, 9, 14, 25)] == [3, 3, 5, 11, 17, 29]


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)  # the pool of threads of CrossValidator
@pytest.mark.slow
def test_cross_validation(spark, monkeypatch):
    monkeypatch.setattr(training, "train", train)
    ratings = spark.createDataFrame(sample(), "user long, item int, rating float")
    data = with_unobserved(ratings, perUser=5).cache()
    als = SAFER2(maxIter=1, seed=0)
    grid = ParamGridBuilder().addGrid(als.rank, [2, 4]).build()
    judge = TailEvaluator(tail=0.5)
    folds = CrossValidator(
        estimator=als, estimatorParamMaps=grid, evaluator=judge, numFolds=2, seed=1
    )
    model = folds.fit(data)
    assert len(model.avgMetrics) == 2
    assert all(0 < metric < 1 for metric in model.avgMetrics)
    assert model.bestModel.rank == grid[int(np.argmax(model.avgMetrics))][als.rank]
