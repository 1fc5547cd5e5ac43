"""The same through Spark Connect."""

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="no pyspark: pip install 'pyspark[connect]'")
pytest.importorskip("grpc", reason="no grpcio: pip install 'pyspark[connect]'")

from pyspark.ml import Pipeline, PipelineModel

import safecf
from safecf.spark import (
    ERMMF,
    IALS,
    SAFER2,
    SAFER2Model,
    TailEvaluator,
    training,
    with_unobserved,
)
from tests.spark.local_training import sample, train
from tests.spark.training_data import (
    assert_close,
    fit_locally,
    options,
    orders,
    ratings,
    read,
    sum_popular_items,
)

pytestmark = pytest.mark.slow  # it starts two more sessions

SCHEMA = "user long, item int, rating float"


@pytest.fixture(scope="module")
def local():
    """Return a local model."""
    user, item, rating = zip(*sample(), strict=True)
    data = {"user": list(user), "item": list(item), "rating": list(rating)}
    model = safecf.SAFER2(4, iterations=2, bandwidth=np.inf, random_state=0)
    return model.fit(safecf.Interactions.from_frame(data, weight="rating"), show_progress=False)


@pytest.fixture(scope="module")
def saved(sessions, local, tmp_path_factory):
    """Save it in a session that is not of Spark Connect."""
    path = str(tmp_path_factory.mktemp("connect") / "model")
    SAFER2Model.from_local(local, sessions.get("classic")).save(path)
    return path


@pytest.fixture(scope="module")
def remote(saved, connect):
    """Return a session of Spark Connect, started after the other one."""
    assert type(connect).__module__.startswith("pyspark.sql.connect")
    return connect


@pytest.fixture(scope="module")
def model(remote, saved):
    """Return the model that the other session has saved."""
    return SAFER2Model.load(saved)


def test_loaded_and_saved_again(remote, model, local, tmp_path):
    path = str(tmp_path / "model")
    model.save(path)
    (tmp_path / "model" / "foreign").mkdir()
    with pytest.raises(FileExistsError, match="model is there already"):
        model.save(path)
    model.write().overwrite().save(path)
    assert {each.name for each in (tmp_path / "model").iterdir()} == {"metadata", "users", "items"}
    with pytest.raises(ValueError, match="holds files that this very object reads"):
        SAFER2Model.load(path).write().overwrite().save(path)
    found = SAFER2Model.load(path).to_local()
    order = np.argsort(local.user_ids)
    np.testing.assert_array_equal(found.user_factors, local.user_factors[order])
    assert found.bandwidth == np.inf
    again = SAFER2Model.from_local(local, remote).to_local()
    np.testing.assert_array_equal(again.user_factors, found.user_factors)


def test_transform_and_evaluate(remote, model, local):
    ratings = remote.createDataFrame(sample(), SCHEMA)
    data = with_unobserved(ratings, perUser=4)
    found = model.transform(data)
    rows = found.collect()
    assert len(rows) == ratings.count() + 4 * len(local.user_ids)
    users = {name: at for at, name in enumerate(local.user_ids.tolist())}
    items = {name: at for at, name in enumerate(local.item_ids.tolist())}
    table = local.user_factors @ local.item_factors.T
    expected = [table[users[row.user], items[row.item]] for row in rows]
    np.testing.assert_allclose([row.prediction for row in rows], expected, rtol=1e-4, atol=1e-6)
    assert 0 < TailEvaluator().evaluate(found) < 1
    unknown = remote.createDataFrame([(1, 1)], "user long, item int")
    assert model.copy({model.coldStartStrategy: "drop"}).transform(unknown).count() == 0


def test_recommendations_and_fold_in(remote, model, local):
    ratings = remote.createDataFrame(sample(), SCHEMA)
    folded = {row.id: row.features for row in model.foldIn(ratings).collect()}
    factors = [folded[user] for user in local.user_ids.tolist()]
    np.testing.assert_allclose(factors, local.user_factors, rtol=1e-4, atol=1e-5)
    lists = model.recommendForAllUsers(3).collect()
    scores = dict(zip(local.user_ids.tolist(), local.user_factors, strict=True))
    for row in lists:
        best = np.sort(scores[row.user] @ local.item_factors.T)[::-1][:3]
        np.testing.assert_allclose([entry.rating for entry in row.recommendations], best, rtol=1e-5)
    assert len(lists) == len(local.user_ids)


def test_pipeline(remote, monkeypatch, tmp_path):
    monkeypatch.setattr(training, "train", train)
    ratings = remote.createDataFrame(sample(), SCHEMA)
    pipeline = Pipeline(stages=[IALS(rank=2, maxIter=1, seed=0)])
    pipeline.save(str(tmp_path / "pipeline"))
    found = Pipeline.load(str(tmp_path / "pipeline")).fit(ratings)
    found.save(str(tmp_path / "model"))
    again = PipelineModel.load(str(tmp_path / "model"))
    assert sorted(again.transform(ratings).collect()) == sorted(found.transform(ratings).collect())


@pytest.mark.parametrize(
    ("kind", "where"),
    [(IALS, "held"), (ERMMF, "users spread"), (SAFER2, "users spread"), (SAFER2, "spread")],
)
def test_training(remote, kind, where, monkeypatch, tmp_path):
    table = ratings()
    frame = read(remote, tmp_path)
    ids = orders(frame)
    sum_popular_items(monkeypatch)
    params = {"maxIter": 5, "solver": "exact", **options(where, monkeypatch, tmp_path)}
    local = fit_locally(kind(**params)._unfitted(), table, ids)
    assert_close(kind(**params).fit(frame), local, ids)
