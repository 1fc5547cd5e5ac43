"""similar_items and similar_users: of factorizations, by cosine."""

import numpy as np
import pytest

from safecf import EASE
from safecf.models.als import ALSModel
from safecf.models.factorization import MatrixFactorization
from tests.contract.quick import only

LOWEST = -np.finfo(np.float32).max
EMPTY_USER, EMPTY_ITEM = 4, 6


def cosines(factors, query):
    lengths = np.linalg.norm(factors, axis=1)
    return factors @ query / np.where(lengths > 0, lengths, 1) / np.linalg.norm(query)


def test_neighbours_have_the_same_parity(players, side):
    search = getattr(players, f"similar_{side}")
    for query in range(20):
        ids, scores = search(query, N=5)
        assert ids.shape == scores.shape == (5,)
        assert (ids % 2 == query % 2).all()
        assert (scores <= 1).all()


@only(MatrixFactorization)
def test_scores_are_cosines(model, side):
    search, factors = getattr(model, f"similar_{side}"), getattr(model, f"{side[:-1]}_factors")
    there = np.flatnonzero(factors.any(axis=1))
    queries = [0, 3, 5]
    ids, scores = search(queries, N=len(factors))
    assert (ids.dtype, scores.dtype) == (np.int32, np.float32)
    for row, query in enumerate(queries):
        assert ids[row, 0] == query
        assert sorted(ids[row, : there.size]) == there.tolist()
        assert (ids[row, there.size :] == -1).all()
        assert (scores[row, there.size :] == LOWEST).all()
        expected = cosines(factors, factors[query])[ids[row, : there.size]]
        np.testing.assert_allclose(scores[row, : there.size], expected, atol=1e-5)
        one_ids, one_scores = search(query, N=4)
        np.testing.assert_array_equal(one_ids, ids[row, :4])
        np.testing.assert_allclose(one_scores, scores[row, :4], rtol=1e-6)


@only(MatrixFactorization)
def test_nobody_is_like_an_empty_user(model):
    check_emptiness(model, "users", EMPTY_USER)


@only(ALSModel, EASE)
def test_nothing_is_like_an_empty_item(model):
    check_emptiness(model, "items", EMPTY_ITEM)


def check_emptiness(model, side, empty):
    search = getattr(model, f"similar_{side}")
    assert empty not in search(0, N=30)[0]
    ids, scores = search(empty, N=3)
    assert ids.tolist() == [-1, -1, -1]
    assert (scores == LOWEST).all()
    ids, _ = search([0, empty], N=3, **{side: [0, 1, empty]})
    assert sorted(ids[0]) == [-1, 0, 1]
    assert ids[1].tolist() == [-1, -1, -1]


def test_items_are_most_like_themselves(model):
    ids, scores = model.similar_items([0, 3, 5], N=15)
    assert ids[:, 0].tolist() == [0, 3, 5]
    np.testing.assert_allclose(scores[:, 0], 1, rtol=1e-6)
    assert (ids.dtype, scores.dtype) == (np.int32, np.float32)
    assert (np.diff(scores) <= 0).all()
    assert (scores <= 1).all()
    one_ids, one_scores = model.similar_items(3, N=4)
    np.testing.assert_array_equal(one_ids, ids[1, :4])
    np.testing.assert_allclose(one_scores, scores[1, :4], rtol=1e-6)


def test_selections(model, side):
    search = getattr(model, f"similar_{side}")
    everything, _ = search(0, N=10)
    ids, _ = search(0, N=10, **{f"filter_{side}": everything[1:3]})
    assert ids[:8].tolist() == [everything[0], *everything[3:]]
    ids, _ = search(0, N=10, **{side: [5, 0, 1, 5]})
    assert ids.dtype == np.int32
    assert ids.tolist() == [found for found in search(0, N=30)[0] if found in (0, 1, 5)]
    with pytest.raises(ValueError, match="exclude each other"):
        search(0, **{side: [1], f"filter_{side}": [2]})
    with pytest.raises(ValueError, match=f"{side} is empty"):
        search(0, **{side: []})
    for name in (side, f"filter_{side}"):
        for wrong in (-1, 100):
            with pytest.raises(IndexError, match=f"{name} {wrong} is out of range"):
                search(0, **{name: [0, wrong]})


def test_bad_queries(model, side):
    search = getattr(model, f"similar_{side}")
    for wrong in (-1, 100, [0, 100]):
        with pytest.raises(IndexError, match="out of range"):
            search(wrong)
    for wrong in (0.0, "a", [True]):
        with pytest.raises(IndexError, match="not integers"):
            search(wrong)
    with pytest.raises(ValueError, match="N=0"):
        search(0, N=0)
    ids, scores = search([], N=2)
    assert ids.shape == scores.shape == (0, 2)


@only(ALSModel)
def test_recalculated_items(model, data):
    item_users = data.T.tocsr()
    queries = [0, 3, 8]
    ids, scores = model.similar_items(
        queries, N=3, recalculate_item=True, item_users=item_users[queries]
    )
    assert ids[:, 0].tolist() == queries
    assert (scores[:, 0] > 0.9).all()
    one, _ = model.similar_items(0, N=3, recalculate_item=True, item_users=item_users[0])
    np.testing.assert_array_equal(one, ids[0])
    with pytest.raises(ValueError, match="item_users has to be a sparse matrix"):
        model.similar_items(0, recalculate_item=True)
    with pytest.raises(ValueError, match="must contain 1 row for every item in itemids"):
        model.similar_items(0, recalculate_item=True, item_users=item_users)
    with pytest.raises(ValueError, match="15 columns, while the model knows 24 users"):
        model.similar_items(0, recalculate_item=True, item_users=data[0])


@only(MatrixFactorization)
def test_similarities_follow_the_factors(model, data):
    model.similar_users(0)
    model.similar_items(0)
    model.partial_fit_users([0], data[9])
    ids, scores = model.similar_users(0, N=2)
    assert set(ids) == {0, 9}
    np.testing.assert_allclose(scores, 1, rtol=1e-6)
    model.fit(data[:10], show_progress=False)
    ids, _ = model.similar_users(0, N=24)
    assert ids.max() == 9


@only(MatrixFactorization)
def test_an_item_whose_factors_are_no_numbers_has_no_similar_ones(model):
    factors = model.item_factors.copy()
    factors[3, 0] = np.nan
    model.item_factors = factors
    assert (model.similar_items(3)[0] == -1).all()
    assert 3 not in model.similar_items(0, N=15)[0]


@only(MatrixFactorization)
def test_an_item_is_the_first_of_its_own_among_equals(model):
    model.item_factors = np.ones_like(model.item_factors)  # their dot products do not round
    for item in (0, 5, 14):
        ids, scores = model.similar_items(item, N=3)
        assert ids.tolist() == [item, *[other for other in (0, 1, 2) if other != item][:2]]
        assert scores[0] == 1
    ids, _ = model.similar_items([5, 14], N=2, items=[3, 14])
    assert ids.tolist() == [[3, 14], [14, 3]]
    ids, _ = model.similar_items(5, N=2, filter_items=[5])
    assert ids.tolist() == [0, 1]
