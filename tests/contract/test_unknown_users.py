"""Users of whom nothing is known get the most popular items."""

import io

import numpy as np
import pytest
import scipy.sparse as sp

import safecf
from safecf import Interactions, ParameterWarning
from safecf.models.als import ALSModel
from safecf.models.factorization import MatrixFactorization
from tests.contract.quick import only

EMPTY_USER = 4
NOTHING = sp.csr_matrix((1, 15), dtype=np.float32)


def shares(data):
    return (data > 0).sum(axis=0).A1 / (data.getnnz(axis=1) > 0).sum()


def by_popularity(data, left_out=()):
    order = np.argsort(-shares(data), kind="stable")
    return [item for item in order if item not in left_out]


def test_fit_counts_the_users_of_every_item(model, data):
    np.testing.assert_allclose(model.item_popularity, shares(data), rtol=1e-6)
    assert model.item_popularity.dtype == np.float32


@pytest.mark.parametrize("recalculate_user", [False, True])
def test_the_most_popular_items(model, data, recalculate_user):
    options = {"recalculate_user": recalculate_user}
    ids, scores = model.recommend(EMPTY_USER, NOTHING, N=15, **options)
    assert ids.tolist() == by_popularity(data)
    np.testing.assert_allclose(scores, shares(data)[ids], rtol=1e-6)
    many = [0, EMPTY_USER, 3, EMPTY_USER]
    ids, scores = model.recommend(many, data[many], N=6, **options)
    for row, user in enumerate(many):
        one_ids, one_scores = model.recommend(user, data[user], N=6, **options)
        np.testing.assert_array_equal(ids[row], one_ids)
        np.testing.assert_array_equal(scores[row], one_scores)
    assert ids[1].tolist() == by_popularity(data)[:6]


@pytest.mark.parametrize("recalculate_user", [False, True])
def test_flags_tell_who_got_them(model, data, recalculate_user):
    many = [0, EMPTY_USER, 3]
    options = {"N": 6, "recalculate_user": recalculate_user, "filter_items": [1]}
    found = model.recommend_flagged(many, data[many], **options)
    assert found.popular.tolist() == [False, True, False]
    for ours, theirs in zip(found, model.recommend(many, data[many], **options), strict=False):
        np.testing.assert_array_equal(ours, theirs)
    assert model.recommend_flagged(EMPTY_USER, data[EMPTY_USER]).ids.shape == (1, 10)


def test_filters_and_selections_hold(model, data):
    first = by_popularity(data)[:2]
    ids, _ = model.recommend(EMPTY_USER, NOTHING, N=4, filter_items=first)
    assert ids.tolist() == by_popularity(data, first)[:4]
    ids, scores = model.recommend(EMPTY_USER, NOTHING, items=[9, 2, 11])
    assert ids.tolist() == [item for item in by_popularity(data) if item in (2, 9, 11)]
    np.testing.assert_allclose(scores, shares(data)[ids], rtol=1e-6)
    ids, _ = model.rank_items(EMPTY_USER, NOTHING, [9, 2, 11], recalculate_user=True)
    assert ids.tolist() == [item for item in by_popularity(data) if item in (2, 9, 11)]


@only(MatrixFactorization)
def test_stored_users_keep_what_they_have_filtered(model, data):
    """The model knows no factors of the user, but the caller knows a history."""
    ids, _ = model.recommend([EMPTY_USER, 0], data[[3, 0]], N=15)
    liked = set(data[3].indices)
    assert ids[0, : 15 - len(liked)].tolist() == by_popularity(data, liked)
    assert (ids[0, 15 - len(liked) :] == -1).all()
    factors = model.fold_in(data[[EMPTY_USER, 0]])
    again, _ = model.recommend_factors(factors, data[[3, 0]], N=15)
    np.testing.assert_array_equal(again[0], ids[0])


def test_an_item_that_nobody_has_tells_nothing(model, data):
    history = sp.csr_matrix(([1.0], ([0], [6])), shape=(1, 15))
    if not isinstance(model, MatrixFactorization) or not model.item_factors[6].any():
        ids, _ = model.recommend(99, history, N=3, recalculate_user=True)
        assert ids.tolist() == by_popularity(data, [6])[:3]


def test_ranks(model, data):
    everything = sp.csr_matrix(np.ones((2, 15)))
    ranks = model.ranks(data[[EMPTY_USER, 0]], everything, [1]).reshape(2, 15)
    expected = by_popularity(data, [1])
    assert ranks[0].tolist() == [0 if item == 1 else 1 + expected.index(item) for item in range(15)]
    np.testing.assert_array_equal(ranks[1], model.ranks(data[0], everything[0], [1]))


def test_files_hold_it(model, data):
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    other = safecf.load(file)
    np.testing.assert_array_equal(other.item_popularity, model.item_popularity)
    for one, two in zip(*(each.recommend(4, NOTHING) for each in (model, other)), strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_model_that_does_not_know_it_says_so(model):
    """That is a file of version 0.1."""
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


@only(ALSModel)
def test_items_that_come_later(make, data):
    model = make().fit(data, show_progress=False)
    model.partial_fit_items([17], sp.csr_matrix(np.ones((1, 24), dtype=np.float32)))
    assert len(model.item_popularity) == 18
    ids, scores = model.recommend(EMPTY_USER, NOTHING, N=1)
    assert ids.tolist() == [17]
    assert scores[0] == pytest.approx(24 / 23)
    assert model.item_popularity[15:17].tolist() == [0, 0]


@only(ALSModel)
def test_users_count_by_their_weight(make, data):
    weights = np.arange(24.0)
    model = make().fit(data, show_progress=False, user_weight=weights)
    active = data.getnnz(axis=1) > 0
    expected = weights @ (data > 0).toarray() / weights[active].sum()
    np.testing.assert_allclose(model.item_popularity, expected, rtol=1e-6)


def test_a_frame_for_new_users(make, data):
    """One with a history, and one whose only item is new."""
    items = [f"item {n}" for n in range(15)]
    model = make().fit(Interactions.from_csr(data, np.arange(24), items), show_progress=False)
    history = sp.csr_matrix([[1, 1, 0], [0, 0, 1]], dtype=np.float32)
    new = Interactions.from_csr(history, ["a", "b"], [items[3], items[5], "unheard of"])
    with pytest.warns(ParameterWarning, match="1 of 3 items in the users' histories are unknown"):
        table = model.recommend_frame(["a", "b"], N=3, user_items=new, recalculate_user=True)
    assert table["item"].to_pylist()[3:] == [items[item] for item in by_popularity(data)[:3]]
    with pytest.raises(KeyError, match="all 1 items in the users' histories are unknown"):
        model.recommend_frame("b", N=3, user_items=new, recalculate_user=True)
