"""fold_in and partial fits of `Interactions`: users and items are found by their original ids."""

import io

import numpy as np
import pyarrow.compute as pc
import pytest
import scipy.sparse as sp

import safecf
from safecf import Interactions, MultVAE, ParameterWarning
from safecf.models.als import ALSModel
from safecf.models.factorization import MatrixFactorization
from tests.contract.quick import only

USERS = np.array([f"user {n}" for n in range(24)][::-1], dtype=object)
ITEMS = np.arange(15) * 10 + 7
BACKWARDS = np.arange(15)[::-1]


@pytest.fixture
def named(make, data):
    return make().fit(Interactions.from_csr(data, USERS, ITEMS), show_progress=False)


def reloaded(model):
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    return safecf.load(file)


@only(MatrixFactorization)
def test_fold_in_finds_the_items(named, data):
    given = Interactions.from_csr(data[:5][:, BACKWARDS], None, ITEMS[BACKWARDS])
    np.testing.assert_array_equal(named.fold_in(given), named.fold_in(data[:5]))
    some = Interactions.from_csr(data[:5], None, [*ITEMS[:12], 1, 2, 3])
    with pytest.warns(ParameterWarning, match="items in the users' histories are unknown to the"):
        found = named.fold_in(some)
    without = data[:5].multiply(np.arange(15) < 12).tocsr()
    np.testing.assert_array_equal(found, named.fold_in(without))
    with pytest.raises(
        KeyError, match="items in the users' histories are unknown to the model, such as"
    ):
        named.fold_in(Interactions.from_csr(data[:5], None, ITEMS + 1))
    with pytest.raises(TypeError, match="user_items has no item ids, while the model was trained"):
        named.fold_in(Interactions.from_csr(data))


@only(MatrixFactorization)
def test_users_are_replaced_and_added(named, data):
    before = named.user_factors.copy()
    given = Interactions.from_csr(
        data[[7, 8, 9]][:, BACKWARDS], ["new", USERS[3], "newer"], ITEMS[BACKWARDS]
    )
    named.recommend_frame(USERS[:2], filter_already_liked_items=False)  # looks ids up
    named.partial_fit_users(given)
    assert named.user_ids.tolist() == [*USERS, "new", "newer"]
    expected = np.vstack([before, before[[7, 9]]])
    expected[3] = before[8]
    np.testing.assert_array_equal(named.user_factors, expected)
    everybody = sp.vstack([data, data[[7, 9]]]).tocsr()
    histories = Interactions.from_csr(everybody, named.user_ids, ITEMS)
    for model in (named, reloaded(named)):
        added, known = (
            model.recommend_frame(user, user_items=histories).drop(["user"])
            for user in ("newer", USERS[9])
        )
        assert added.equals(known)


@only(ALSModel)
def test_items_are_replaced_and_added(named, data):
    audience = data.T.tocsr()
    matrix = audience[[2, 3, 5]].T.tocsr()[::-1]
    given = Interactions.from_csr(matrix, USERS[::-1], [1, ITEMS[0], 2])
    factors = named.recalculate_item([0, 1, 2], audience[[2, 3, 5]])
    shares = named.item_popularity.copy()
    named.partial_fit_items(given)
    assert named.item_ids.tolist() == [*ITEMS, 1, 2]
    np.testing.assert_array_equal(named.item_factors[[15, 0, 16]], factors)
    np.testing.assert_array_equal(named.item_popularity[[15, 0, 16]], shares[[2, 3, 5]])
    for model in (named, reloaded(named)):
        table = model.recommend_frame(USERS[1], 17, filter_already_liked_items=False)
        assert set(table["item"].to_pylist()) == {*ITEMS.tolist(), 1, 2}
        assert 2 in model.similar_items_frame(1, N=17)["similar"].to_pylist()


@only(ALSModel)
def test_unknown_users_of_items_are_left_out(named, data):
    few = Interactions.from_csr(sp.csr_matrix([[1], [2], [3]]), [*USERS[:2], "nobody"], [1])
    audience = sp.csr_matrix(([1.0, 2.0], [0, 1], [0, 2]), shape=(1, 24))
    expected = named.recalculate_item(0, audience)
    with pytest.warns(ParameterWarning, match="1 of 3 users of the items are unknown .* 'nobody'"):
        named.partial_fit_items(few)
    np.testing.assert_array_equal(named.item_factors[15], expected)
    before, shares = named.item_factors.copy(), named.item_popularity.copy()
    nobody = Interactions.from_csr(sp.csr_matrix([[1], [2], [3]]), ["a", "b", "c"], [7])
    with pytest.warns(ParameterWarning, match="3 of 3 users of the items .* stay as they were"):
        named.partial_fit_items(nobody)
    np.testing.assert_array_equal(named.item_factors, before)
    np.testing.assert_array_equal(named.item_popularity, shares)
    numbers = Interactions.from_csr(sp.csr_matrix([[1], [2], [3]]), [1, 2, 3], [7])
    with pytest.raises(KeyError, match=r"they are integers, while those .* are strings; convert"):
        named.partial_fit_items(numbers)


@only(MatrixFactorization)
@pytest.mark.parametrize("others", [0, 1, 2])
def test_known_users_of_unknown_items_stay_as_they_were(named, data, others):
    """Whether they are alone, with a new user who is cold then, or with one of known items."""
    before = named.user_factors.copy()
    rows = sp.csr_matrix([[1, 0], [1, 0], [0, 1]])[[*range(1 + others)]]
    given = Interactions.from_csr(rows, [USERS[3], "cold", "new"][: 1 + others], [1, ITEMS[0]])
    with pytest.warns(ParameterWarning, match="whom the model knows stay as they were"):
        named.partial_fit_users(given)
    np.testing.assert_array_equal(named.user_factors[:24], before)
    assert named.user_ids.tolist() == [*USERS, "cold", "new"][: 24 + others]
    table = named.recommend_frame(named.user_ids[24:], filter_already_liked_items=False)
    first = table.filter(pc.equal(table["rank"], 1))
    assert first["popular"].to_pylist() == [True, False][:others]


@only(MatrixFactorization)
def test_without_ids_users_are_row_numbers(make, data):
    model = make().fit(data, show_progress=False)
    before = model.user_factors.copy()
    model.partial_fit_users(Interactions.from_csr(data[[5, 6]]))
    np.testing.assert_array_equal(model.user_factors[:2], before[[5, 6]])
    model.partial_fit_users(Interactions.from_csr(data[[7, 8]], [24, 1]))
    np.testing.assert_array_equal(model.user_factors[[24, 1]], before[[7, 8]])
    assert model.user_ids is None


@only(MatrixFactorization)
def test_what_cannot_be_joined_leaves_no_trace(named, data, snapshot):
    held = snapshot(named)
    good = Interactions.from_csr(data, USERS, ITEMS)
    with pytest.raises(TypeError, match=r"ids of users are integers, .* are strings; convert them"):
        named.partial_fit_users(Interactions.from_csr(data, np.arange(24), ITEMS))
    with pytest.raises(TypeError, match="user_items has no user ids"):
        named.partial_fit_users(Interactions.from_csr(data, None, ITEMS))
    texts = [str(each) for each in ITEMS]
    with pytest.raises(KeyError, match=r"they are strings, while those .* are integers; convert"):
        named.partial_fit_users(Interactions.from_csr(data, USERS, texts))
    with pytest.raises(TypeError, match="or an Interactions alone; leave the matrix out"):
        named.partial_fit_users(good, data)
    with pytest.raises(ValueError, match="user_items has to be a sparse matrix"):
        named.partial_fit_users([1, 2])
    assert snapshot(named) == held


@only(MatrixFactorization)
def test_users_without_an_id_need_one_first(named, data):
    named.partial_fit_users([24], data[0])
    new = Interactions.from_csr(data[:1], ["new"], ITEMS)
    with pytest.raises(ValueError, match=r"1 users have no id, .* append their ids to model\.user"):
        named.partial_fit_users(new)
    named.user_ids = np.append(named.user_ids, "late")
    named.partial_fit_users(new)
    assert named.user_ids.tolist() == [*USERS, "late", "new"]


@only(MultVAE)
def test_a_network_takes_no_items(named, data):
    with pytest.raises(NotImplementedError, match="MultVAE cannot compute an item from its users"):
        named.partial_fit_items(Interactions.from_csr(data, USERS, ITEMS))
