"""`explain`: the contributions of a history add up to the score, and agree with a dense solve."""

import numpy as np
import pytest
import scipy.sparse as sp

from safecf import Interactions, ParameterWarning
from tests.contract.subjects import ALS, EMPTY_USER, ITEMS, SOME, USERS, fitted, only
from tests.helpers import refused

EVERYTHING = 15
explains = only([*ALS, "EASE"])


@explains
def test_contributions_add_up_to_the_score(model, name, data):
    for user in (0, 3, 11):
        options = {"filter_already_liked_items": False, "recalculate_user": True}
        ids, scores = model.recommend(0, data[user], N=EVERYTHING, **options)
        expected = scores[np.argsort(ids)]
        for item in range(15):
            score, found, _ = model.explain(user, data, item, N=EVERYTHING)
            assert score == pytest.approx(expected[item], rel=1e-4, abs=1e-5)
            assert sum(value for _, value in found) == pytest.approx(score, rel=1e-9, abs=1e-12)
            assert sorted(at for at, _ in found) == data[user].indices.tolist()


@only(ALS)
def test_contributions_are_those_of_a_dense_solve(model, name, data):
    """s_ij = p_j y_i' (b Y'Y + sum_j p_j y_j y_j' + ridge I)^-1 y_j."""
    loss, ridge, _, _ = model.compose()
    items, row = model.item_factors.astype(np.float64), data[3].toarray()[0].astype(np.float64)
    pairs = row * row.sum() ** -loss.normalisation
    total = pairs.sum() + loss.unobserved_weight * model.num_items
    system = loss.unobserved_weight * items.T @ items + items.T @ np.diag(pairs) @ items
    system += ridge.regularization * total**ridge.exponent * np.eye(items.shape[1])
    expected = items @ np.linalg.solve(system, items.T) * pairs
    for item in (0, 9):
        _, found, _ = model.explain(3, data[3], item, N=EVERYTHING)
        for other, value in found:
            assert value == pytest.approx(expected[item, other], rel=1e-9, abs=1e-12)


@only(["EASE"])
def test_contributions_are_the_weights_of_the_items(model, family, data):
    _, found, _ = model.explain(3, data[3], 9, N=EVERYTHING)
    for other, value in found:
        assert value == pytest.approx(float(data[3, other]) * model.item_weights[other, 9])


@explains
def test_the_best_come_first(model, family, data):
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
def test_one_row_is_any_user(model, family, data):
    assert model.explain(999, data[3], 1)[:2] == model.explain(3, data, 1)[:2]
    assert model.explain(EMPTY_USER, data, 1)[:2] == (0, [])
    assert model.explain(0, sp.csr_matrix((1, 15), dtype=np.float32), 1)[:2] == (0, [])


WRONG = [
    ((3, SOME, 15), IndexError, "itemid 15 is out of range: ids go from 0 to 14"),
    ((24, SOME, 1), IndexError, "userid 24 is out of range: ids go from 0 to 23"),
    ((3, SOME, [1, 2]), ValueError, "itemid holds 2 ids; give one"),
    ((3, SOME[:, :14], 1), ValueError, "14 columns"),
    ((3, SOME, 1, None, np.int64(0)), ValueError, "N=0 has to be at least 1"),
]


@pytest.mark.parametrize(("asked", "error", "words"), WRONG, ids=[row[2] for row in WRONG])
@explains
def test_bad_questions(model, family, asked, error, words):
    with refused(error, words, unchanged=model):
        model.explain(*asked)


@only(ALS)
def test_weights_of_something_else(model, family, data):
    with refused(ValueError, "user_weights is not what explain has returned", unchanged=model):
        model.explain(3, data, 1, user_weights=np.eye(4))


@explains
def test_by_ids(make, family, data):
    named = Interactions.from_csr(data, USERS, ITEMS)
    model = fitted(make(), named)
    table = model.explain_frame(USERS[3], ITEMS[9], N=3, user_items=named)
    _, expected, _ = model.explain(3, data, 9, N=3)
    assert table.column_names == ["item", "contribution"]
    assert table["item"].to_pylist() == [ITEMS[at] for at, _ in expected]
    assert table["contribution"].to_pylist() == [value for _, value in expected]
    new = Interactions.from_csr(data[[3]], ["new"], [*ITEMS[:9], *range(9991, 9997)])
    with pytest.warns(ParameterWarning, match="unknown to the model and left out, such as 9992"):
        table = model.explain_frame("new", ITEMS[9], N=15, user_items=new)
    assert set(table["item"].to_pylist()) == set(ITEMS[data[3].indices]) & set(ITEMS[:9])
    one = USERS[3]
    for asked, error, words in (
        (("x", ITEMS[9], 3), KeyError, "unknown user (in user_items) 'x'"),
        ((one, 8, 3), KeyError, "unknown item 8"),
        ((one, ITEMS[:2], 3), ValueError, "one user and one item"),
    ):
        with pytest.raises(error) as caught:
            model.explain_frame(*asked, user_items=named)
        assert words in str(caught.value)
    with refused(TypeError, "user_items is a csr_matrix; pass what the user has"):
        model.explain_frame(one, 7, user_items=data)
