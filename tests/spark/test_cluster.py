"""Models on a cluster with executors of their own."""

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="no pyspark: pip install 'pyspark[connect]'")

import safecf
from safecf.spark import IALSModel
from tests.spark.local_training import sample


@pytest.mark.slow
def test_answers_of_executors(cluster):
    user, item, rating = zip(*sample(), strict=True)
    data = {"user": list(user), "item": list(item), "rating": list(rating)}
    local = safecf.IALS(4, iterations=1, random_state=0)
    local.fit(safecf.Interactions.from_frame(data, weight="rating"), show_progress=False)
    model = IALSModel.from_local(local, cluster).setBlockSize(9)
    ratings = cluster.createDataFrame(sample(), "user long, item int, rating float").repartition(2)
    folded = {row.id: row.features for row in model.foldIn(ratings).collect()}
    factors = [folded[name] for name in local.user_ids.tolist()]
    np.testing.assert_allclose(factors, local.user_factors, rtol=1e-4, atol=1e-5)
    lists = {row.user: row.recommendations for row in model.recommendForAllUsers(2).collect()}
    scores = np.sort(local.user_factors @ local.item_factors.T)[:, ::-1][:, :2]
    found = [[entry.rating for entry in lists[name]] for name in local.user_ids.tolist()]
    np.testing.assert_allclose(found, scores, rtol=1e-5)
