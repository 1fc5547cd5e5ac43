"""fold_in, recalculated users and items, and partial fits."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from safecf import ParameterWarning
from safecf.models.als import ALSModel
from safecf.models.factorization import MatrixFactorization
from tests.contract.quick import assert_equal, only


@only(MatrixFactorization)
def test_stored_users_are_folded_in(model, data):
    np.testing.assert_array_equal(model.fold_in(data), model.user_factors)


def test_known_and_new_users_are_the_same(model, data):
    stored = model.recommend(np.arange(24), data, N=6)
    recalculated = model.recommend(np.arange(24), data, N=6, recalculate_user=True)
    for one, other in zip(stored, recalculated, strict=True):
        np.testing.assert_array_equal(one, other)


@only(MatrixFactorization)
def test_fold_in_does_not_depend_on_the_batch(model, data):
    whole = model.fold_in(data)
    assert whole.shape == (24, 4)
    assert whole.dtype == np.float32
    for users in ([5], [7, 3, 3], np.arange(10, 24)):
        assert_equal(model, model.fold_in(data[users]), whole[users])
    assert model.fold_in(data[:0]).shape == (0, 4)
    assert not model.fold_in(sp.csr_matrix((2, 15))).any()


@only(MatrixFactorization)
def test_fold_in_refuses_what_does_not_fit(model, data):
    with pytest.raises(ValueError, match="14 columns"):
        model.fold_in(data[:, :14])
    with pytest.raises(ValueError, match="transposed"):
        model.fold_in(data.T.tocsr())
    with pytest.raises(ValueError, match="sparse"):
        model.fold_in(data.toarray())
    with pytest.warns(ParameterWarning, match="tocsr"):
        model.fold_in(data.tocoo())


@only(MatrixFactorization)
def test_recalculate_user(model, data):
    assert_equal(model, model.recalculate_user(3, data[3]), model.user_factors[3])
    np.testing.assert_array_equal(
        model.recalculate_user([3, 1], data[[3, 1]]), model.fold_in(data[[3, 1]])
    )
    assert_equal(model, model.recalculate_user(999, data[3]), model.user_factors[3])
    with pytest.raises(ValueError, match="1 row for every user"):
        model.recalculate_user(3, data)
    ids, _ = model.recommend(999, data[3], recalculate_user=True)
    np.testing.assert_array_equal(ids, model.recommend(3, data[3])[0])


@only(ALSModel)
def test_recalculate_item(model, data):
    item_users = data.T.tocsr()
    factors = model.recalculate_item(np.arange(15), item_users)
    assert factors.shape == (15, 4)
    assert factors.dtype == np.float32
    assert not factors[6].any()
    lengths = np.linalg.norm(factors, axis=1) * np.linalg.norm(model.item_factors, axis=1)
    cosine = np.sum(factors * model.item_factors, axis=1)[lengths > 0] / lengths[lengths > 0]
    assert (cosine > 0.9).all()
    np.testing.assert_array_equal(model.recalculate_item(3, item_users[3]), factors[3])
    with pytest.raises(ValueError, match="1 row for every item"):
        model.recalculate_item(3, item_users)
    with pytest.raises(ValueError, match="users"):
        model.recalculate_item(3, data[0])


@only(ALSModel)
def test_fold_in_follows_the_items(model, data):
    before = model.fold_in(data)
    model.partial_fit_items([0], data.T.tocsr()[3])
    changed = model.fold_in(data)
    assert not np.array_equal(before, changed)
    model.item_factors = model.item_factors * 2
    assert not np.array_equal(model.fold_in(data), changed)


@only(MatrixFactorization)
def test_partial_fit_users(players, checkerboard):
    kept = players.user_factors[1:].copy()
    players.partial_fit_users([0], checkerboard[1])
    np.testing.assert_array_equal(players.user_factors[0], players.user_factors[1])
    np.testing.assert_array_equal(players.user_factors[1:], kept)
    ids, _ = players.recommend(0, checkerboard[1], N=1)
    assert ids.tolist() == [1]

    players.partial_fit_users([30, 25], checkerboard[[1, 2]])
    assert players.user_factors.shape == (31, 4)
    assert players.user_factors.flags.c_contiguous
    assert np.flatnonzero(players.user_factors.any(axis=1)).tolist() == [*range(20), 25, 30]
    assert players.recommend(30, checkerboard[1], N=1)[0].tolist() == [1]
    assert players.recommend(25, checkerboard[2], N=1)[0].tolist() == [2]
    assert set(players.similar_users(30, users=[1, 2, 4, 30], N=2)[0]) == {1, 30}
    with pytest.raises(IndexError, match="0 to 30"):
        players.recommend(31, checkerboard[0])


@only(ALSModel)
def test_partial_fit_items(players, checkerboard):
    players.partial_fit_users([30], checkerboard[1])
    players.partial_fit_items([25], checkerboard[1])
    assert players.item_factors.shape == (26, 4)
    assert np.flatnonzero(players.item_factors.any(axis=1)).tolist() == [*range(20), 25]
    for user_items in (
        checkerboard[1],
        sp.csr_matrix((checkerboard[1].data, checkerboard[1].indices, [0, 9]), shape=(1, 26)),
    ):
        ids, _ = players.recommend(1, user_items, N=2)
        assert set(ids) == {1, 25}
    ids, _ = players.similar_items(25, N=5)
    assert (ids % 2 == 1).all()
    assert players.recommend(1, checkerboard[1], N=2, items=[25, 0])[0].tolist() == [25, 0]
    assert players.fold_in(checkerboard).shape == (20, 4)
    with pytest.raises(ValueError, match="27 columns"):
        players.fold_in(sp.csr_matrix((1, 27)))
    with pytest.raises(ValueError, match="19 columns"):
        players.fold_in(sp.csr_matrix((1, 19)))


@only(ALSModel)
def test_users_without_history_so_far_count_when_items_come(model, data):
    """A partial fit gives them the mean weight; known users keep theirs."""
    weights = model.user_weights.copy()
    tail = getattr(model, "tail", 1.0)
    assert weights[4] == 0
    model.partial_fit_users([4, 0, 30], data[[1, 2, 3]])
    assert model.user_weights[[4, 30]].tolist() == [tail, tail]
    np.testing.assert_array_equal(np.delete(model.user_weights[:24], 4), np.delete(weights, 4))
    np.testing.assert_array_equal(model.user_mass[[4, 0, 30]], data[[1, 2, 3]].sum(axis=1).A1)
    assert len(model.user_weights) == len(model.user_mass) == len(model.user_factors) == 31
    audience = sp.csr_matrix(([1.0], ([0], [30])), shape=(1, 31))
    assert model.recalculate_item([0], audience).any()


@only(MatrixFactorization)
def test_partial_fits_of_nobody(model, data, snapshot):
    held = snapshot(model)
    model.partial_fit_users([], data[:0])
    assert snapshot(model) == held


@only(ALSModel)
def test_partial_fits_of_nothing(model, data, snapshot):
    held = snapshot(model)
    model.partial_fit_items([], data.T.tocsr()[:0])
    assert snapshot(model) == held


@only(MatrixFactorization)
def test_bad_users_leave_no_trace(model, data, snapshot):
    held = snapshot(model)
    check_bad_partial_fits(model.partial_fit_users, data, "user")
    assert snapshot(model) == held


@only(ALSModel)
def test_bad_items_leave_no_trace(model, data, snapshot):
    held = snapshot(model)
    check_bad_partial_fits(model.partial_fit_items, data.T.tocsr(), "item")
    assert snapshot(model) == held


def check_bad_partial_fits(fit, rows, side):
    with pytest.raises(IndexError, match="-1"):
        fit([0, -1], rows[:2])
    with pytest.raises(ValueError, match="3 more than once"):
        fit([3, 1, 3], rows[:3])
    with pytest.raises(ValueError, match=f"1 row for every {side}"):
        fit([0, 1], rows[:1])
    with pytest.raises(IndexError, match="not integers"):
        fit([0.5], rows[:1])
    with pytest.raises(ValueError, match="columns"):
        fit([0], rows[:1, :3])
    with pytest.raises(ValueError, match="sparse"):
        fit([0], rows[:1].toarray())
    with pytest.raises(ValueError, match="nan"):
        fit([0], rows[:1] * np.nan)
    with pytest.raises(ValueError, match=f"{side}ids go up to 12,345, .*not original ids, and new"):
        fit([12_345], rows[:1])


@only(ALSModel)
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_an_unpickled_model_can_be_changed_after_a_search(model, data, protocol):
    other = pickle.loads(pickle.dumps(model, protocol))
    other.recommend(0, data[0])
    other.similar_users(0)
    other.partial_fit_items([0], data.T.tocsr()[[1]])
    other.partial_fit_users([0], data[[1]])
    np.testing.assert_allclose(
        other.item_factors[0], model.recalculate_item(0, data.T.tocsr()[[1]])
    )
