"""Files that version 0.1 wrote still load, and answer as they did."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import safecf
from safecf import SAFER2, Interactions
from safecf.als.solvers import SOLVERS, Exact
from safecf.models import MODELS

FILES = Path(__file__).parent / "v0_1"
EXPECTED = json.loads((FILES / "expected.json").read_text())


def data():
    """Return what the models in the files were trained on."""
    rng = np.random.default_rng(3)
    likes = rng.random((12, 8)) < 0.4
    likes[likes.sum(axis=1) == 0, 0] = True
    return sp.csr_matrix(likes * rng.choice([1.0, 2.0], likes.shape), dtype=np.float32)


def named(matrix):
    users = np.array([f"user {user}" for user in range(12)], dtype=object)
    return Interactions.from_csr(matrix, users, np.arange(100, 108))


@pytest.mark.parametrize("name", MODELS)
def test_models_answer_as_they_did(name):
    if name not in EXPECTED:
        pytest.skip(f"{name} is younger than version 0.1")
    model, matrix = safecf.load(FILES / name), data()
    assert type(model).__name__ == name
    ids, scores = model.recommend(np.arange(12), matrix, N=3)
    np.testing.assert_array_equal(ids, EXPECTED[name]["ids"])
    np.testing.assert_allclose(scores, EXPECTED[name]["scores"], atol=2e-4)
    frame = model.recommend_frame(["user 3"], N=2, user_items=named(matrix))
    assert set(frame["user"].to_pylist()) == {"user 3"}
    assert set(frame["item"].to_pylist()) <= set(range(100, 108))


def test_groups_and_history_are_there():
    model = safecf.load(FILES / "SAFER2")
    assert set(model.group_weights) == {"a", "b", "c"}
    assert [record.epoch for record in model.history] == [1, 2, 3]
    assert model.history[-1].seconds["quantile"] > 0


def test_a_checkpoint_is_gone_on_from(monkeypatch):
    """With exact rows: those that stop at a tolerance leave 2 % of a score open on this data."""
    monkeypatch.setitem(SOLVERS, "auto", lambda tolerance: Exact())
    model = SAFER2(3, bandwidth=0.3, random_state=0, iterations=4, ridge_in_risk=False)
    model.regularization = model.unobserved_weight = 0.004  # the defaults of version 0.1
    model.fit(named(data()), show_progress=False, resume=FILES / "checkpoint")
    assert [record.epoch for record in model.history] == [1, 2, 3, 4]
    scores = model.user_factors @ model.item_factors.T
    np.testing.assert_allclose(scores, EXPECTED["checkpoint"]["scores"], atol=2e-4)
