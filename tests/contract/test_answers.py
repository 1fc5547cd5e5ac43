"""What training finds, and what recommend answers: numbers of all classes."""

import io

import numpy as np
import pytest
import scipy.sparse as sp

import safecf
from safecf import ParameterWarning
from tests.contract.subjects import (
    ALS,
    BOARD,
    EMPTY_ITEM,
    EMPTY_USER,
    FACTORS,
    fitted,
    only,
)
from tests.reference import ranking

LOWEST = -np.finfo(np.float32).max
NOTHING = sp.csr_matrix((1, 15), dtype=np.float32)


def arrays_of(model):
    parts = (each if isinstance(each, tuple) else (each,) for each in vars(model).values())
    return [each for part in parts for each in part if isinstance(each, np.ndarray)]


# Training


def test_fit_returns_the_model(make, data, name):
    model = make()
    assert (model.shape, model.is_fitted) == ((0, 0), False)
    assert fitted(model, data) is model
    assert (model.shape, model.is_fitted) == ((24, 15), True)
    for array in arrays_of(model):
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert np.isfinite(array).all()


@only(FACTORS)
def test_factors(model, name):
    for factors, size in ((model.user_factors, 24), (model.item_factors, 15)):
        assert (factors.shape, factors.dtype) == ((size, 4), np.float32)
    epochs = [record.epoch for record in model.history]
    assert epochs == list(range(1, model.iterations + 1))
    assert model.history[-1].objective < model.history[0].objective
    assert np.flatnonzero(~model.user_factors.any(axis=1)).tolist() == [EMPTY_USER]
    if name in ALS:
        assert np.flatnonzero(~model.item_factors.any(axis=1)).tolist() == [EMPTY_ITEM]
        assert (model.num_users, model.num_items) == (23, 14)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (3, 3)], ids=str)
def test_tiny_data(make, name, shape):
    likes = sp.csr_matrix(np.ones(shape))
    model = fitted(make(), likes)
    ids, _ = model.recommend(0, likes[[0]], N=2, filter_already_liked_items=False)
    assert ids.shape == (min(2, shape[1]),)


@only(ALS)
def test_one_interaction(make, name):
    model = fitted(make(), sp.csr_matrix(([1.0], ([1], [2])), shape=(3, 4)))
    assert np.flatnonzero(model.user_factors.any(axis=1)).tolist() == [1]
    assert np.flatnonzero(model.item_factors.any(axis=1)).tolist() == [2]


# Recommendations


def test_recommends_what_the_neighbours_like(players, name):
    """Items of the user's parity, first of all the one that is missing."""
    for user in range(20):
        assert players.recommend(user, BOARD[user], N=1)[0].tolist() == [user]
    ids, _ = players.recommend(3, BOARD[3], N=10, filter_already_liked_items=False)
    assert set(ids) == {item for item in range(20) if item % 2 == 1}
    if name != "MultVAE":  # whose scores are not about 0 and 1
        everything = {"N": 20, "filter_already_liked_items": False}
        ids, scores = players.recommend(np.arange(20), BOARD, **everything)
        liked = ids % 2 == np.arange(20)[:, None] % 2
        assert scores[liked].min() > max(scores[~liked].max(), 0.02)


@only(FACTORS)
def test_ranks_by_dot_product(model, name, data):
    for user in np.flatnonzero(model.user_factors.any(axis=1)):
        scores = model.item_factors @ model.user_factors[user]
        expected = ranking(scores, data[user].indices.tolist())[:5]
        ids, found = model.recommend(user, data[user], N=5)
        np.testing.assert_allclose(found, scores[expected], rtol=1e-4, atol=1e-6)
        if len(set(np.round(scores, 5))) == len(scores):
            assert ids.tolist() == expected
    ids, scores = model.rank_items([0, 1], None, [3, 4])
    expected = model.user_factors[:2] @ model.item_factors.T
    np.testing.assert_allclose(scores, np.take_along_axis(expected, ids, axis=1), atol=1e-6)
    ids, found = model.recommend(0, None, items=[9, 2, 11, 2, 5], filter_already_liked_items=False)
    assert sorted(ids) == [2, 5, 9, 11]
    np.testing.assert_allclose(found, expected[0, ids], rtol=1e-4, atol=1e-6)


@only(FACTORS)
def test_ties_rank_by_item(model, family):
    model.user_factors = np.ones((3, 4), dtype=np.float32)
    model.item_factors = np.repeat([[1], [2], [1], [2], [0]], 4, axis=1).astype(np.float32)
    ids, scores = model.recommend(0, None, N=5, filter_already_liked_items=False)
    assert ids.tolist() == [1, 3, 0, 2, 4]
    assert scores.tolist() == [8, 8, 4, 4, 0]


@pytest.mark.parametrize("many", [15, 40, 10**9, 2**70])
def test_n_is_at_most_the_number_of_items(model, family, data, many):
    """And where filters leave fewer, results are padded."""
    ids, scores = model.recommend(0, data[0], N=many)
    assert ids.shape == scores.shape == (15,)
    assert model.recommend([0, 1], data[:2], N=many)[0].shape == (2, 15)
    assert model.similar_items(0, N=many)[0].shape == (15,)
    if family in FACTORS:
        assert model.similar_users(0, N=many)[0].shape == (min(many, 24),)
        assert model.recommend_factors(model.user_factors, data, N=many)[0].shape == (24, 15)
    left = 15 - data[0].nnz
    assert set(ids[:left]) == set(range(15)) - set(data[0].indices)
    assert (np.diff(scores[:left]) <= 0).all()
    assert (ids[left:] == -1).all()
    assert (scores[left:] == LOWEST).all()


def test_no_users_give_no_rows(model, family, data):
    for nobody in ([], np.array([], dtype=np.int32)):
        for again in (False, True):
            ids, scores = model.recommend(nobody, data[:0], N=3, recalculate_user=again)
            assert ids.shape == scores.shape == (0, 3)
            assert (ids.dtype, scores.dtype) == (np.int32, np.float32)


def test_filter_items_leaves_out(model, name, data):
    first, _ = model.recommend([0, 1], data[:2], N=4)
    gone = [first[0, 0], first[0, 1], first[0, 0]]
    ids, _ = model.recommend([0, 1], data[:2], N=4, filter_items=gone)
    assert not np.isin(ids, gone).any()
    assert ids[0, :2].tolist() == first[0, 2:4].tolist()
    unchanged, _ = model.recommend([0, 1], data[:2], N=4, filter_items=[])
    np.testing.assert_array_equal(unchanged, first)
    for one in (gone[0], [gone[0]]):
        ids, _ = model.recommend(0, data[0], N=15, filter_items=one)
        assert gone[0] not in ids
        assert (ids >= 0).any()


def test_items_restrict(model, name, data):
    options = {"filter_already_liked_items": False}
    everything, _ = model.recommend(0, data[0], N=15, **options)
    chosen = [9, 2, 11, 2, 5]
    ids, scores = model.recommend(0, data[0], items=chosen, **options)
    assert (ids.dtype, scores.dtype) == (np.int32, np.float32)
    assert ids.tolist() == [item for item in everything if item in chosen]
    assert (np.diff(scores) <= 0).all()
    two, _ = model.recommend(0, data[0], N=2, items=chosen, **options)
    np.testing.assert_array_equal(two, ids[:2])


def test_items_and_liked_items_together(model, name, data):
    liked = data[0].indices
    chosen = np.concatenate((liked[:2], np.setdiff1d(np.arange(15), liked)[:3]))
    ids, scores = model.recommend(0, data[0], items=chosen)
    assert ids.shape == (5,)
    assert set(ids[:3]) == set(chosen[2:])
    assert ids[3:].tolist() == [-1, -1]
    assert (scores[3:] == LOWEST).all()
    assert (model.recommend(0, data[0], items=liked)[0] == -1).all()


def test_rank_items_ranks_all_of_them(model, name, data):
    everything, expected = model.recommend(0, data[0], N=15, filter_already_liked_items=False)
    ids, scores = model.rank_items(0, data[0], list(range(12)))
    assert ids.tolist() == [item for item in everything if item < 12]
    np.testing.assert_allclose(scores, expected[everything < 12], rtol=1e-4, atol=1e-6)
    assert model.rank_items([0, 1], data[:2], [3, 4])[0].shape == (2, 2)


def test_ranks_are_places_among_all_recommendations(model, name, data):
    """Of every item that the user does not have, and 0 of the others and of those left out."""
    users, everything = np.arange(24), sp.csr_matrix(np.ones(data.shape))
    for banned in (None, [0, 8]):
        ids, _ = model.recommend(users, data, N=15, recalculate_user=True, filter_items=banned)
        expected = np.zeros(data.shape, dtype=np.int32)
        for row, best in enumerate(ids):
            left = best[best >= 0]
            expected[row, left] = 1 + np.arange(left.size)
        found = model.ranks(data, everything, banned)
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found.reshape(24, 15), expected)
    one = model.ranks(data[3], sp.csr_matrix(np.eye(1, 15, 9)))
    assert one.tolist() == [model.ranks(data, everything).reshape(24, 15)[3, 9]]
    assert model.ranks(data[:0], everything[:0]).size == 0


@only(FACTORS)
def test_any_layout_of_the_factors_will_do(model, family, data):
    users, items = np.arange(24), np.arange(15)
    _, expected = model.recommend(users, data)
    _, similar = model.similar_items(items)
    for layout in (np.asfortranarray, lambda factors: np.repeat(factors, 2, axis=1)[:, ::2]):
        model.user_factors = layout(model.user_factors)
        model.item_factors = layout(model.item_factors)
        np.testing.assert_allclose(model.recommend(users, data)[1], expected, atol=1e-6)
        np.testing.assert_allclose(model.similar_items(items)[1], similar, atol=1e-6)
        assert np.isfinite(model.fold_in(data)).all()


# Users of whom nothing is known


def shares(data):
    return (data > 0).sum(axis=0).A1 / (data.getnnz(axis=1) > 0).sum()


def by_popularity(data, left_out=()):
    return ranking(shares(data), left_out)


def test_fit_counts_the_users_of_every_item(model, name, data):
    np.testing.assert_allclose(model.item_popularity, shares(data), rtol=1e-6)
    assert model.item_popularity.dtype == np.float32


@only(ALS)
def test_users_count_by_their_weight(make, name, data):
    weights = np.arange(24.0)
    model = fitted(make(), data, user_weight=weights)
    active = data.getnnz(axis=1) > 0
    expected = weights @ (data > 0).toarray() / weights[active].sum()
    np.testing.assert_allclose(model.item_popularity, expected, rtol=1e-6)


@pytest.mark.parametrize("recalculate_user", [False, True])
def test_the_most_popular_items(model, name, data, recalculate_user):
    options = {"recalculate_user": recalculate_user}
    ids, scores = model.recommend(EMPTY_USER, NOTHING, N=15, **options)
    assert ids.tolist() == by_popularity(data)
    np.testing.assert_allclose(scores, shares(data)[ids], rtol=1e-6)
    many = [0, EMPTY_USER, 3, EMPTY_USER]
    found = model.recommend_flagged(many, data[many], N=6, **options)
    for row, user in enumerate(many):
        one_ids, one_scores = model.recommend(user, data[user], N=6, **options)
        np.testing.assert_array_equal(found.ids[row], one_ids)
        np.testing.assert_array_equal(found.scores[row], one_scores)
    assert found.popular.tolist() == [False, True, False, True]
    assert found.ids[1].tolist() == by_popularity(data)[:6]
    plain = model.recommend(many, data[many], N=6, **options)
    for ours, theirs in zip(found, plain, strict=False):
        np.testing.assert_array_equal(ours, theirs)
    assert model.recommend_flagged(EMPTY_USER, data[EMPTY_USER]).ids.shape == (1, 10)


def test_filters_and_selections_of_popular_items(model, name, data):
    first = by_popularity(data)[:2]
    ids, _ = model.recommend(EMPTY_USER, NOTHING, N=4, filter_items=first)
    assert ids.tolist() == by_popularity(data, first)[:4]
    ids, scores = model.recommend(EMPTY_USER, NOTHING, items=[9, 2, 11])
    expected = [item for item in by_popularity(data) if item in (2, 9, 11)]
    assert ids.tolist() == expected
    np.testing.assert_allclose(scores, shares(data)[ids], rtol=1e-6)
    ids, _ = model.rank_items(EMPTY_USER, NOTHING, [9, 2, 11], recalculate_user=True)
    assert ids.tolist() == expected
    ranks = model.ranks(data[[EMPTY_USER, 0]], sp.csr_matrix(np.ones((2, 15))), [1]).reshape(2, 15)
    expected = by_popularity(data, [1])
    assert ranks[0].tolist() == [0 if item == 1 else 1 + expected.index(item) for item in range(15)]
    alone = model.ranks(data[0], sp.csr_matrix(np.ones((1, 15))), [1])
    np.testing.assert_array_equal(ranks[1], alone)


@only(FACTORS)
def test_stored_users_keep_what_they_have_filtered(model, name, data):
    """The model knows no factors of the user, but the caller knows a history."""
    ids, _ = model.recommend([EMPTY_USER, 0], data[[3, 0]], N=15)
    liked = set(data[3].indices)
    assert ids[0, : 15 - len(liked)].tolist() == by_popularity(data, liked)
    assert (ids[0, 15 - len(liked) :] == -1).all()
    factors = model.fold_in(data[[EMPTY_USER, 0]])
    again, _ = model.recommend_factors(factors, data[[3, 0]], N=15)
    np.testing.assert_array_equal(again[0], ids[0])


@only([*ALS, "EASE"])
def test_an_item_that_nobody_has_tells_nothing(model, name, data):
    history = sp.csr_matrix(([1.0], ([0], [EMPTY_ITEM])), shape=(1, 15))
    ids, _ = model.recommend(99, history, N=3, recalculate_user=True)
    assert ids.tolist() == by_popularity(data, [EMPTY_ITEM])[:3]


def test_a_model_without_popularity_says_so(model, family):
    """Files of version 0.1 do not have it."""
    model.item_popularity = None
    for _ in range(2):
        with pytest.warns(ParameterWarning, match=r"first items with score 0: .*version 0\.1"):
            ids, scores = model.recommend(EMPTY_USER, NOTHING, N=3)
        assert ids.tolist() == [0, 1, 2]
        assert scores.tolist() == [0, 0, 0]
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    assert safecf.load(file).item_popularity is None
