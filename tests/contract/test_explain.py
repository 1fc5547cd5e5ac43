"""`explain`: the contributions of a history add up to the score, and agree with a dense solve."""

import numpy as np
import pytest
import scipy.sparse as sp

import safecf
from safecf import Interactions, ParameterWarning
from safecf.models.als import ALSModel
from safecf.models.ease import EASE
from tests.contract.quick import only

EVERYTHING = 15
USERS = np.array([f"user {n}" for n in range(24)], dtype=object)
ITEMS = np.arange(15) * 10 + 7

explains = only(ALSModel, EASE)


def scores_of(model, history):
    """Return the scores of all items, as `recommend` has them."""
    ids, scores = model.recommend(
        0, history, N=15, filter_already_liked_items=False, recalculate_user=True
    )
    return scores[np.argsort(ids)]


@explains
def test_contributions_add_up_to_the_score(model, data):
    for user in (0, 3, 11):
        expected = scores_of(model, data[user])
        for item in range(15):
            score, found, _ = model.explain(user, data, item, N=EVERYTHING)
            assert score == pytest.approx(expected[item], rel=1e-4, abs=1e-5)
            assert sum(value for _, value in found) == pytest.approx(score, rel=1e-9, abs=1e-12)
            assert sorted(at for at, _ in found) == data[user].indices.tolist()


@only(ALSModel)
def test_contributions_are_those_of_a_dense_solve(model, data):
    """s_ij = p_j y_i' (b Y'Y + sum_j p_j y_j y_j' + ridge I)^-1 y_j."""
    loss, ridge, _, _ = model.compose()
    items, row = model.item_factors.astype(np.float64), data[3].toarray()[0].astype(np.float64)
    mass = row.sum()
    pairs = row * mass**-loss.normalisation
    total = pairs.sum() + loss.unobserved_weight * model.num_items
    system = loss.unobserved_weight * items.T @ items + items.T @ np.diag(pairs) @ items
    system += ridge.regularization * total**ridge.exponent * np.eye(items.shape[1])
    expected = items @ np.linalg.solve(system, items.T) * pairs
    for item in (0, 9):
        _, found, _ = model.explain(3, data[3], item, N=EVERYTHING)
        for other, value in found:
            assert value == pytest.approx(expected[item, other], rel=1e-9, abs=1e-12)


@only(EASE)
def test_contributions_are_the_weights_of_the_items(model, data):
    _, found, _ = model.explain(3, data[3], 9, N=EVERYTHING)
    for other, value in found:
        assert value == pytest.approx(float(data[3, other]) * model.item_weights[other, 9])


@explains
def test_the_best_come_first(model, data):
    _, whole, weights = model.explain(3, data, 1, N=EVERYTHING)
    values = [value for _, value in whole]
    assert values == sorted(values, reverse=True)
    score, few, again = model.explain(3, data, 1, user_weights=weights, N=2)
    assert few == whole[:2]
    assert score == pytest.approx(sum(values))
    assert again is weights
    for other in range(15):
        fresh = model.explain(3, data, other)[:2]
        assert model.explain(3, data, other, user_weights=weights)[:2] == fresh


@explains
def test_one_row_is_any_user(model, data):
    assert model.explain(999, data[3], 1)[:2] == model.explain(3, data, 1)[:2]


@explains
def test_no_history_explains_nothing(model, data):
    assert model.explain(4, data, 1)[:2] == (0, [])
    assert model.explain(0, sp.csr_matrix((1, 15), dtype=np.float32), 1)[:2] == (0, [])


@explains
def test_bad_questions(model, data):
    with pytest.raises(IndexError, match="itemid 15 is out of range: ids go from 0 to 14"):
        model.explain(3, data, 15)
    with pytest.raises(IndexError, match="userid 24 is out of range: ids go from 0 to 23"):
        model.explain(24, data, 1)
    with pytest.raises(ValueError, match="itemid holds 2 ids; give one"):
        model.explain(3, data, [1, 2])
    with pytest.raises(ValueError, match="14 columns"):
        model.explain(3, data[:, :14], 1)
    with pytest.raises(ValueError, match="N=0 has to be at least 1"):
        model.explain(3, data, 1, N=0)


@only(ALSModel)
def test_weights_of_something_else(model, data):
    with pytest.raises(ValueError, match="user_weights is not what explain has returned"):
        model.explain(3, data, 1, user_weights=np.eye(4))


@only(safecf.MultVAE)
def test_a_network_says_what_can_be_explained(model, data):
    with pytest.raises(NotImplementedError, match=r"no sums over .*such as SAFER2, IALS or EASE"):
        model.explain(3, data, 1)


def test_an_unfitted_model_explains_nothing(make, data):
    with pytest.raises(safecf.NotFittedError, match="is not fitted; call fit first"):
        make().explain(3, data, 1)


@explains
def test_by_ids(make, data):
    named = Interactions.from_csr(data, USERS, ITEMS)
    model = make().fit(named, show_progress=False)
    table = model.explain_frame(USERS[3], ITEMS[9], N=3, user_items=named)
    _, expected, _ = model.explain(3, data, 9, N=3)
    assert table.column_names == ["item", "contribution"]
    assert table["item"].to_pylist() == [ITEMS[at] for at, _ in expected]
    assert table["contribution"].to_pylist() == [value for _, value in expected]
    new = Interactions.from_csr(data[[3]], ["new"], [*ITEMS[:9], *range(9991, 9997)])
    with pytest.warns(ParameterWarning, match="unknown to the model and left out, such as 9992"):
        table = model.explain_frame("new", ITEMS[9], N=15, user_items=new)
    assert set(table["item"].to_pylist()) == set(ITEMS[data[3].indices]) & set(ITEMS[:9])
    with pytest.raises(KeyError, match=r"unknown user \(in user_items\) 'x'"):
        model.explain_frame("x", ITEMS[9], user_items=named)
    with pytest.raises(KeyError, match="unknown item 8"):
        model.explain_frame("user 3", 8, user_items=named)
    with pytest.raises(ValueError, match="one user and one item"):
        model.explain_frame("user 3", ITEMS[:2], user_items=named)
    with pytest.raises(TypeError, match="user_items is a csr_matrix; pass what the user has"):
        model.explain_frame("user 3", 7, user_items=data)
