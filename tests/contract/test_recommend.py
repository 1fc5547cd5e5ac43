"""recommend and rank_items: what comes out, in which shape, and what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp

from safecf import EASE, NotFittedError, ParameterWarning
from safecf.models import queries
from safecf.models.als import ALSModel
from safecf.models.factorization import MatrixFactorization
from tests.contract.quick import only
from tests.problems import N_DIMENSIONAL

LOWEST = -np.finfo(np.float32).max


def ranking(scores, excluded=()):
    """Return all columns, best first, ties by index."""
    order = np.argsort(-scores, kind="stable")
    return [column for column in order if column not in set(excluded)]


def test_recommends_what_the_neighbours_like(players, checkerboard):
    for user in range(checkerboard.shape[0]):
        ids, _ = players.recommend(user, checkerboard[user], N=1)
        assert ids.tolist() == [user]


@only(ALSModel, EASE)
def test_observed_pairs_score_above_the_others(players, checkerboard):
    everything = {"N": 20, "filter_already_liked_items": False}
    ids, scores = players.recommend(np.arange(20), checkerboard, **everything)
    liked = ids % 2 == np.arange(20)[:, None] % 2
    assert scores[liked].min() > max(scores[~liked].max(), 0.02)


def test_recommends_liked_items_unless_filtered(players, checkerboard):
    user = 3
    ids, _ = players.recommend(user, checkerboard[user], N=10, filter_already_liked_items=False)
    assert set(ids) == {item for item in range(20) if item % 2 == 1}


@only(MatrixFactorization)
def test_ranks_by_dot_product(model, data):
    for user in np.flatnonzero(model.user_factors.any(axis=1)):
        scores = model.item_factors @ model.user_factors[user]
        expected = ranking(scores, data[user].indices)[:5]
        ids, found = model.recommend(user, data[user], N=5)
        np.testing.assert_allclose(found, scores[expected], rtol=1e-4, atol=1e-6)
        if len(set(np.round(scores, 5))) == len(scores):
            assert ids.tolist() == expected


def test_one_user_gives_vectors_and_many_give_matrices(model, data):
    users = [3, 0, 3]
    ids, scores = model.recommend(users, data[users], N=4)
    assert ids.shape == scores.shape == (3, 4)
    for row, user in enumerate(users):
        one_ids, one_scores = model.recommend(user, data[user], N=4)
        assert one_ids.shape == one_scores.shape == (4,)
        np.testing.assert_array_equal(ids[row], one_ids)
        np.testing.assert_allclose(scores[row], one_scores, rtol=1e-6)
    assert ids.dtype == np.int32
    assert scores.dtype == np.float32


@pytest.mark.parametrize(
    "one", [2, np.int64(2), np.uint8(2), np.array(2)], ids=["int", "int64", "uint8", "0-d"]
)
def test_any_kind_of_integer_is_an_id(model, data, one):
    expected, _ = model.recommend(2, data[2])
    ids, _ = model.recommend(one, data[2])
    np.testing.assert_array_equal(ids, expected)


@pytest.mark.parametrize("kind", [list, tuple, np.array, lambda ids: range(ids[0], ids[-1] + 1)])
def test_any_kind_of_sequence_holds_ids(model, data, kind):
    expected, _ = model.recommend([1, 2, 3], data[1:4])
    ids, _ = model.recommend(kind([1, 2, 3]), data[1:4])
    np.testing.assert_array_equal(ids, expected)


@pytest.mark.parametrize("nobody", [[], np.array([], dtype=np.int32)])
def test_no_users_give_no_rows(model, data, nobody):
    for recalculate_user in (False, True):
        ids, scores = model.recommend(nobody, data[:0], N=3, recalculate_user=recalculate_user)
        assert ids.shape == scores.shape == (0, 3)
        assert (ids.dtype, scores.dtype) == (np.int32, np.float32)


@pytest.mark.parametrize("many", [15, 40, 10**9, 2**70])
def test_n_is_at_most_the_number_of_items(model, data, many):
    """And where filters leave fewer, results are padded."""
    liked = data[0].nnz
    ids, scores = model.recommend(0, data[0], N=many)
    assert ids.shape == scores.shape == (15,)
    assert model.recommend([0, 1], data[:2], N=many)[0].shape == (2, 15)
    assert model.similar_items(0, N=many)[0].shape == (15,)
    if isinstance(model, MatrixFactorization):
        assert model.similar_users(0, N=many)[0].shape == (min(many, 24),)
        assert model.recommend_factors(model.user_factors, data, N=many)[0].shape == (24, 15)
    left = data.shape[1] - liked
    assert set(ids[:left]) == set(range(data.shape[1])) - set(data[0].indices)
    assert (np.diff(scores[:left]) <= 0).all()
    assert (ids[left:] == -1).all()
    assert (scores[left:] == LOWEST).all()


@only(MatrixFactorization)
def test_ties_rank_by_item(model, data):
    model.user_factors = np.ones((3, 4), dtype=np.float32)
    model.item_factors = np.repeat([[1], [2], [1], [2], [0]], 4, axis=1).astype(np.float32)
    ids, scores = model.recommend(0, None, N=5, filter_already_liked_items=False)
    assert ids.tolist() == [1, 3, 0, 2, 4]
    assert scores.tolist() == [8, 8, 4, 4, 0]


def test_filter_items_leaves_out(model, data):
    first, _ = model.recommend([0, 1], data[:2], N=4)
    gone = [first[0, 0], first[0, 1], first[0, 0]]
    ids, _ = model.recommend([0, 1], data[:2], N=4, filter_items=gone)
    assert not np.isin(ids, gone).any()
    assert ids[0, :2].tolist() == first[0, 2:4].tolist()
    unchanged, _ = model.recommend([0, 1], data[:2], N=4, filter_items=[])
    np.testing.assert_array_equal(unchanged, first)


def test_items_restrict(model, data):
    options = {"filter_already_liked_items": False}
    everything, _ = model.recommend(0, data[0], N=15, **options)
    chosen = [9, 2, 11, 2, 5]
    ids, scores = model.recommend(0, data[0], items=chosen, **options)
    assert (ids.dtype, scores.dtype) == (np.int32, np.float32)
    assert ids.tolist() == [item for item in everything if item in chosen]
    assert (np.diff(scores) <= 0).all()
    two, _ = model.recommend(0, data[0], N=2, items=chosen, **options)
    np.testing.assert_array_equal(two, ids[:2])


@only(MatrixFactorization)
def test_items_without_histories(model, data):
    scores = model.item_factors @ model.user_factors[0]
    chosen = [9, 2, 11, 2, 5]
    ids, found = model.recommend(0, None, items=chosen, filter_already_liked_items=False)
    assert sorted(ids) == [2, 5, 9, 11]
    np.testing.assert_allclose(found, scores[ids], rtol=1e-4, atol=1e-6)


def test_items_and_liked_items_together(model, data):
    liked = data[0].indices
    chosen = np.concatenate((liked[:2], np.setdiff1d(np.arange(15), liked)[:3]))
    ids, scores = model.recommend(0, data[0], items=chosen)
    assert ids.shape == (5,)
    assert set(ids[:3]) == set(chosen[2:])
    assert ids[3:].tolist() == [-1, -1]
    assert (scores[3:] == LOWEST).all()
    none_left, _ = model.recommend(0, data[0], items=liked)
    assert (none_left == -1).all()


@only(MatrixFactorization)
def test_items_gathers_only_the_selected_rows(model, data, monkeypatch):
    seen = []
    backend = type(model._make_backend({}))

    def index(self, factors):
        seen.append(factors.shape)
        return original(self, factors)

    original = backend.index
    monkeypatch.setattr(backend, "index", index)
    model.recommend(0, data[0], items=[1, 2, 3])
    model.similar_items(0, items=[1, 2, 3])
    assert seen == [(3, 4), (3, 4)]


def test_rank_items_ranks_all_of_them(model, data):
    chosen = list(range(12))
    ids, scores = model.rank_items(0, data[0], chosen)
    assert sorted(ids) == chosen
    _, expected = model.recommend(0, data[0], N=15, filter_already_liked_items=False)
    assert np.isin(scores.round(4), expected.round(4)).all()
    ids, _ = model.rank_items([0, 1], data[:2], [3, 4])
    assert ids.shape == (2, 2)
    with pytest.raises(IndexError, match=r"99 .*0 to 14"):
        model.rank_items(0, data[0], [1, 99])
    with pytest.raises(ValueError, match="items is empty"):
        model.rank_items(0, data[0], [])


@only(MatrixFactorization)
def test_rank_items_without_histories(model):
    ids, scores = model.rank_items([0, 1], None, [3, 4])
    expected = model.user_factors[:2] @ model.item_factors.T
    np.testing.assert_allclose(scores, np.take_along_axis(expected, ids, axis=1), atol=1e-6)


def test_ranks_are_places_among_all_recommendations(model, data):
    """Of every item that the user does not have, and 0 of the others and of those left out."""
    users, (count, num_items) = np.arange(data.shape[0]), data.shape
    everything = sp.csr_matrix(np.ones(data.shape))
    for banned in (None, [0, 8]):
        ids, _ = model.recommend(
            users, data, N=num_items, recalculate_user=True, filter_items=banned
        )
        expected = np.zeros(data.shape, dtype=np.int32)
        for row, best in enumerate(ids):
            left = best[best >= 0]
            expected[row, left] = 1 + np.arange(left.size)
        found = model.ranks(data, everything, banned)
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found.reshape(count, num_items), expected)
    one = model.ranks(data[3], sp.csr_matrix(np.eye(1, num_items, 9)))
    assert one.tolist() == [model.ranks(data, everything).reshape(count, num_items)[3, 9]]
    assert model.ranks(data[:0], everything[:0]).size == 0
    with pytest.raises(ValueError, match="must contain 1 row for every user"):
        model.ranks(data, everything[:3])


@pytest.mark.parametrize("bad", [24, 1000, -1, [0, 24], [0, -1], 2**40])
def test_unknown_users_are_refused(model, bad):
    wrong = np.ravel(bad)[-1]
    with pytest.raises(IndexError, match=rf"userid {wrong} is out of range: ids go from 0 to 23"):
        model.recommend(bad, None, filter_already_liked_items=False)


@pytest.mark.parametrize("bad", [0.0, [0.0, 1.0], "a", True, [True, False], None, [None]])
def test_ids_that_are_no_integers_are_refused(model, bad):
    with pytest.raises(IndexError, match="userid holds values of type"):
        model.recommend(bad, None, filter_already_liked_items=False)


def test_bad_requests_are_refused(model, data):
    with pytest.raises(ValueError, match="exclude each other"):
        model.recommend(0, data[0], items=[1, 2], filter_items=np.array([1]))
    with pytest.raises(ValueError, match="items is empty"):
        model.recommend(0, data[0], items=[])
    for wrong in (15, -1):
        with pytest.raises(IndexError, match=f"items {wrong} is out of range"):
            model.recommend(0, data[0], items=[0, wrong])
        with pytest.raises(IndexError, match=f"filter_items {wrong} is out of range"):
            model.recommend(0, data[0], filter_items=[0, wrong])
    for wrong in (0, -3):
        with pytest.raises(ValueError, match="N="):
            model.recommend(0, data[0], N=wrong)
    for wrong in (2.0, "3", None, True):
        with pytest.raises(TypeError, match="N="):
            model.recommend(0, data[0], N=wrong)
    with pytest.raises(ValueError, match="2 dimensions"):
        model.recommend([[0, 1]], data[:2])


@pytest.mark.parametrize("recalculate_user", [False, True])
def test_user_items_that_do_not_fit_are_refused(model, data, recalculate_user):
    def ask(userid, user_items):
        return model.recommend(userid, user_items, recalculate_user=recalculate_user)

    for nothing in (None, data.toarray()[:1], [[0, 1]]):
        with pytest.raises(ValueError, match="user_items has to be a sparse matrix"):
            ask(0, nothing)
    if N_DIMENSIONAL:
        with pytest.raises(ValueError, match="3-D"):
            ask(0, sp.coo_array(np.ones((1, 15, 2))))
    with pytest.raises(ValueError, match="must contain 1 row for every user in userids"):
        ask(0, data)
    with pytest.raises(ValueError, match="must contain 1 row for every user in userids"):
        ask([0, 1], data[0])
    with pytest.raises(ValueError, match="14 columns, while the model knows 15 items"):
        ask(0, data[0, :14])
    with pytest.raises(ValueError, match="16 columns"):
        ask(0, sp.hstack([data[0], [[1]]]).tocsr())
    with pytest.raises(ValueError, match="transposed"):
        ask(np.arange(24), data.T.tocsr())
    with pytest.raises(ValueError, match="nan"):
        ask(0, data[0] * np.nan)


def test_sparse_formats(model, data):
    expected, _ = model.recommend(0, data[0], recalculate_user=True)
    rows = sp.csr_array(data)
    one_dimensional = [rows[0]] if N_DIMENSIONAL else []
    for row in (rows[[0]], *one_dimensional, data[0].astype(np.float64)):
        ids, _ = model.recommend(0, row, recalculate_user=True)
        np.testing.assert_array_equal(ids, expected)
    for other in (data[0].tocoo(), data[0].tolil(), data[0].tocsc()):
        with pytest.warns(ParameterWarning, match="tocsr"):
            ids, _ = model.recommend(0, other, recalculate_user=True)
        np.testing.assert_array_equal(ids, expected)


def test_before_fit(make, data):
    model = make()
    calls = [
        lambda: model.recommend(0, data[0]),
        lambda: model.rank_items(0, data[0], [1]),
        lambda: model.similar_items(0),
        lambda: model.similar_users(0),
        lambda: model.save("nowhere"),
    ]
    for call in calls:
        with pytest.raises(NotFittedError, match="call fit first"):
            call()


@only(MatrixFactorization)
def test_factors_before_fit(make, data):
    model = make()
    calls = [
        lambda: model.fold_in(data),
        lambda: model.recalculate_user(0, data[0]),
        lambda: model.recalculate_item(0, data.T.tocsr()[0]),
        lambda: model.partial_fit_users([0], data[0]),
        lambda: model.partial_fit_items([0], data.T.tocsr()[0]),
    ]
    for call in calls:
        with pytest.raises(NotFittedError, match="call fit first"):
            call()
    assert model.user_factors is None
    assert model.item_factors is None
    assert model.history == []


def test_one_item_may_be_filtered_by_its_number(model, data):
    first = model.recommend(0, data[0], N=3)[0][0]
    for found in (
        model.recommend(0, data[0], N=15, filter_items=first)[0],
        model.recommend([0], data[0], N=15, filter_items=[first])[0][0],
    ):
        assert first not in found
        assert (found >= 0).any()


@pytest.mark.parametrize("options", [{}, {"filter_items": [0, 3]}, {"items": [1, 2, 9]}])
@pytest.mark.parametrize("recalculate_user", [False, True])
def test_everybody_at_once(model, data, monkeypatch, options, recalculate_user):
    """The ids are those of `recommend`, however many users are answered at a time."""
    options = {**options, "recalculate_user": recalculate_user}
    whole = model.recommend_all(data, N=4, **options)
    expected, _ = model.recommend(np.arange(24), data, N=4, **options)
    np.testing.assert_array_equal(whole, expected)
    monkeypatch.setattr(queries, "ROWS", 5)
    np.testing.assert_array_equal(model.recommend_all(data, N=4, **options), expected)
    some = model.recommend_all(data[20:], N=4, users_items_offset=20, **options)
    np.testing.assert_array_equal(some, expected[20:])


def test_everybody_at_once_refuses_what_does_not_fit(model, data):
    with pytest.raises(ValueError, match="14 columns"):
        model.recommend_all(data[:, :14])
    with pytest.raises(IndexError, match="userid 24 is out of range"):
        model.recommend_all(data, users_items_offset=1)
    assert model.recommend_all(data[:0], N=3).shape == (0, 3)
