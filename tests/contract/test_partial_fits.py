"""Fold-in and partial fits: what the model says with newer users, items and histories."""

import numpy as np
import pytest
import scipy.sparse as sp

from tests.contract.subjects import (
    ALS,
    BOARD,
    EMPTY_ITEM,
    EMPTY_USER,
    FACTORS,
    fitted,
    only,
)

NOTHING = sp.csr_matrix((1, 15), dtype=np.float32)


@only(ALS)
def test_recalculate_item(model, name, data):
    audience = data.T.tocsr()
    factors = model.recalculate_item(np.arange(15), audience)
    assert (factors.shape, factors.dtype) == ((15, 4), np.float32)
    assert not factors[EMPTY_ITEM].any()
    lengths = np.linalg.norm(factors, axis=1) * np.linalg.norm(model.item_factors, axis=1)
    cosine = np.sum(factors * model.item_factors, axis=1)[lengths > 0] / lengths[lengths > 0]
    assert (cosine > 0.9).all()
    np.testing.assert_array_equal(model.recalculate_item(3, audience[3]), factors[3])
    asked = {"N": 3, "recalculate_item": True}
    ids, scores = model.similar_items([0, 3, 8], item_users=audience[[0, 3, 8]], **asked)
    assert ids[:, 0].tolist() == [0, 3, 8]
    assert (scores[:, 0] > 0.9).all()
    one, _ = model.similar_items(0, item_users=audience[0], **asked)
    np.testing.assert_array_equal(one, ids[0])


@only(ALS)
def test_fold_in_follows_the_items(model, name, data):
    before = model.fold_in(data)
    model.partial_fit_items([0], data.T.tocsr()[3])
    changed = model.fold_in(data)
    assert not np.array_equal(before, changed)
    model.item_factors = model.item_factors * 2
    assert not np.array_equal(model.fold_in(data), changed)


@only(FACTORS)
def test_partial_fit_users(players, name):
    kept = players.user_factors[1:].copy()
    players.partial_fit_users([0], BOARD[1])
    np.testing.assert_array_equal(players.user_factors[0], players.user_factors[1])
    np.testing.assert_array_equal(players.user_factors[1:], kept)
    assert players.recommend(0, BOARD[1], N=1)[0].tolist() == [1]
    players.partial_fit_users([30, 25], BOARD[[1, 2]])
    assert players.user_factors.shape == (31, 4)
    assert players.user_factors.flags.c_contiguous
    assert np.flatnonzero(players.user_factors.any(axis=1)).tolist() == [*range(20), 25, 30]
    assert players.recommend(30, BOARD[1], N=1)[0].tolist() == [1]
    assert players.recommend(25, BOARD[2], N=1)[0].tolist() == [2]
    assert set(players.similar_users(30, users=[1, 2, 4, 30], N=2)[0]) == {1, 30}
    with pytest.raises(IndexError, match="0 to 30"):
        players.recommend(31, BOARD[0])


@only(ALS)
def test_partial_fit_items(players, name):
    players.partial_fit_users([30], BOARD[1])
    players.partial_fit_items([25], BOARD[1])
    assert players.item_factors.shape == (26, 4)
    assert np.flatnonzero(players.item_factors.any(axis=1)).tolist() == [*range(20), 25]
    wider = sp.csr_matrix((BOARD[1].data, BOARD[1].indices, [0, 9]), shape=(1, 26))
    for user_items in (BOARD[1], wider):
        assert set(players.recommend(1, user_items, N=2)[0]) == {1, 25}
    assert (players.similar_items(25, N=5)[0] % 2 == 1).all()
    assert players.recommend(1, BOARD[1], N=2, items=[25, 0])[0].tolist() == [25, 0]
    assert players.fold_in(BOARD).shape == (20, 4)
    for columns in (27, 19):
        with pytest.raises(ValueError, match=f"{columns} columns"):
            players.fold_in(sp.csr_matrix((1, columns)))


@only(ALS)
def test_users_without_history_so_far_count_when_items_come(model, name, data):
    """A partial fit gives them the mean weight; known users keep theirs."""
    weights = model.user_weights.copy()
    tail = getattr(model, "tail", 1.0)
    assert weights[EMPTY_USER] == 0
    model.partial_fit_users([4, 0, 30], data[[1, 2, 3]])
    assert model.user_weights[[4, 30]].tolist() == [tail, tail]
    np.testing.assert_array_equal(np.delete(model.user_weights[:24], 4), np.delete(weights, 4))
    np.testing.assert_array_equal(model.user_mass[[4, 0, 30]], data[[1, 2, 3]].sum(axis=1).A1)
    assert len(model.user_weights) == len(model.user_mass) == len(model.user_factors) == 31
    audience = sp.csr_matrix(([1.0], ([0], [30])), shape=(1, 31))
    assert model.recalculate_item([0], audience).any()


@only(ALS)
def test_items_that_come_later_are_popular(make, family, data):
    model = fitted(make(), data)
    model.partial_fit_items([17], sp.csr_matrix(np.ones((1, 24), dtype=np.float32)))
    assert len(model.item_popularity) == 18
    ids, scores = model.recommend(EMPTY_USER, NOTHING, N=1)
    assert ids.tolist() == [17]
    assert scores[0] == pytest.approx(24 / 23)
    assert model.item_popularity[15:17].tolist() == [0, 0]
