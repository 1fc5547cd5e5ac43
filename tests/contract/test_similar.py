"""similar_items and similar_users: cosines."""

import numpy as np
import pytest

LOWEST = -np.finfo(np.float32).max
EMPTY_USER, EMPTY_ITEM = 4, 6


def cosines(factors, query):
    lengths = np.linalg.norm(factors, axis=1)
    return factors @ query / np.where(lengths > 0, lengths, 1) / np.linalg.norm(query)


@pytest.mark.parametrize("side", ["items", "users"])
def test_neighbours_have_the_same_parity(players, side):
    search = getattr(players, f"similar_{side}")
    for query in range(20):
        ids, scores = search(query, N=5)
        assert ids.shape == scores.shape == (5,)
        assert (ids % 2 == query % 2).all()
        assert (scores <= 1).all()


@pytest.mark.parametrize("side", ["item", "user"])
def test_scores_are_cosines(model, side):
    search, factors = getattr(model, f"similar_{side}s"), getattr(model, f"{side}_factors")
    empty = {"item": EMPTY_ITEM, "user": EMPTY_USER}[side]
    queries = [0, 3, 5]
    ids, scores = search(queries, N=len(factors))
    assert (ids.dtype, scores.dtype) == (np.int32, np.float32)
    for row, query in enumerate(queries):
        assert ids[row, 0] == query
        assert set(ids[row, :-1]) == set(range(len(factors))) - {empty}
        assert ids[row, -1] == -1
        assert scores[row, -1] == LOWEST
        expected = cosines(factors, factors[query])[ids[row, :-1]]
        np.testing.assert_allclose(scores[row, :-1], expected, atol=1e-5)
        one_ids, one_scores = search(query, N=4)
        np.testing.assert_array_equal(one_ids, ids[row, :4])
        np.testing.assert_allclose(one_scores, scores[row, :4], rtol=1e-6)


@pytest.mark.parametrize("side", ["item", "user"])
def test_nothing_is_like_an_empty_row(model, side):
    search = getattr(model, f"similar_{side}s")
    empty = {"item": EMPTY_ITEM, "user": EMPTY_USER}[side]
    ids, scores = search(empty, N=3)
    assert ids.tolist() == [-1, -1, -1]
    assert (scores == LOWEST).all()
    ids, _ = search([0, empty], N=3, **{f"{side}s": [0, 1, empty]})
    assert sorted(ids[0]) == [-1, 0, 1]
    assert ids[1].tolist() == [-1, -1, -1]


@pytest.mark.parametrize("side", ["items", "users"])
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


@pytest.mark.parametrize("side", ["items", "users"])
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
