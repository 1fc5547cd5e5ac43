"""Similar users and items: cosines, selections, and those of whom nothing is known."""

import numpy as np
import pytest

from tests.contract.subjects import (
    EMPTY_ITEM,
    EMPTY_USER,
    FACTORS,
    only,
)
from tests.reference import cosines

LOWEST = -np.finfo(np.float32).max


def test_neighbours_have_the_same_parity(players, name):
    for side in ("items", "users") if name in FACTORS else ("items",):
        for query in range(20):
            ids, scores = getattr(players, f"similar_{side}")(query, N=5)
            assert ids.shape == scores.shape == (5,)
            assert (ids % 2 == query % 2).all()
            assert (scores <= 1).all()


def test_items_are_most_like_themselves(model, name):
    ids, scores = model.similar_items([0, 3, 5], N=15)
    assert ids[:, 0].tolist() == [0, 3, 5]
    np.testing.assert_allclose(scores[:, 0], 1, rtol=1e-6)
    assert (ids.dtype, scores.dtype) == (np.int32, np.float32)
    assert (np.diff(scores) <= 0).all()
    one_ids, one_scores = model.similar_items(3, N=4)
    np.testing.assert_array_equal(one_ids, ids[1, :4])
    np.testing.assert_allclose(one_scores, scores[1, :4], rtol=1e-6)


@pytest.mark.parametrize("side", ["users", "items"])
@only(FACTORS)
def test_scores_are_cosines(model, name, side):
    search, factors = getattr(model, f"similar_{side}"), getattr(model, f"{side[:-1]}_factors")
    there = np.flatnonzero(factors.any(axis=1))
    ids, scores = search([0, 3, 5], N=len(factors))
    assert (ids.dtype, scores.dtype) == (np.int32, np.float32)
    for row, query in enumerate([0, 3, 5]):
        assert ids[row, 0] == query
        assert sorted(ids[row, : there.size]) == there.tolist()
        assert (ids[row, there.size :] == -1).all()
        assert (scores[row, there.size :] == LOWEST).all()
        expected = cosines(factors, factors[query])[ids[row, : there.size]]
        np.testing.assert_allclose(scores[row, : there.size], expected, atol=1e-5)
        one_ids, one_scores = search(query, N=4)
        np.testing.assert_array_equal(one_ids, ids[row, :4])
        np.testing.assert_allclose(one_scores, scores[row, :4], rtol=1e-6)


@pytest.mark.parametrize("side", ["users", "items"])
def test_selections_of_similar_ones(model, family, side):
    if side == "users" and family not in FACTORS:
        pytest.skip(f"{family} stores nothing of the users")
    search = getattr(model, f"similar_{side}")
    everything, _ = search(0, N=10)
    ids, _ = search(0, N=10, **{f"filter_{side}": everything[1:3]})
    assert ids[:8].tolist() == [everything[0], *everything[3:]]
    ids, _ = search(0, N=10, **{side: [5, 0, 1, 5]})
    assert ids.dtype == np.int32
    assert ids.tolist() == [found for found in search(0, N=30)[0] if found in (0, 1, 5)]
    ids, scores = search([], N=2)
    assert ids.shape == scores.shape == (0, 2)


@pytest.mark.parametrize(("side", "empty"), [("users", EMPTY_USER), ("items", EMPTY_ITEM)])
def test_nothing_is_like_an_empty_one(model, name, side, empty):
    if (side == "users" and name == "EASE") or (side == "items" and name == "MultVAE"):
        pytest.skip("stores no users, or learns something of every item")
    search = getattr(model, f"similar_{side}")
    assert empty not in search(0, N=30)[0]
    ids, scores = search(empty, N=3)
    assert ids.tolist() == [-1, -1, -1]
    assert (scores == LOWEST).all()
    ids, _ = search([0, empty], N=3, **{side: [0, 1, empty]})
    assert sorted(ids[0]) == [-1, 0, 1]
    assert ids[1].tolist() == [-1, -1, -1]


@only(FACTORS)
def test_an_item_is_the_first_of_its_own_among_equals(model, family):
    model.item_factors = np.ones_like(model.item_factors)  # their dot products do not round
    for item in (0, 5, 14):
        ids, scores = model.similar_items(item, N=3)
        assert ids.tolist() == [item, *[other for other in (0, 1, 2) if other != item][:2]]
        assert scores[0] == 1
    assert model.similar_items([5, 14], N=2, items=[3, 14])[0].tolist() == [[3, 14], [14, 3]]
    assert model.similar_items(5, N=2, filter_items=[5])[0].tolist() == [0, 1]
    model.item_factors = np.where(np.arange(15)[:, None] == 3, np.nan, model.item_factors)
    assert (model.similar_items(3)[0] == -1).all()
    assert 3 not in model.similar_items(0, N=15)[0]
