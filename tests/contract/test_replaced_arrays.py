"""Arrays that the caller has replaced: other values are taken, and nonsense is refused."""

import numpy as np
import pytest

from safecf import EASE
from safecf.models.als import ALSModel
from safecf.models.factorization import MatrixFactorization
from tests.contract.quick import only

BAD = {
    "doubles": lambda factors: factors.astype(np.float64),
    "integers": lambda factors: factors.astype(np.int32),
    "one row": lambda factors: factors[0],
    "a list": lambda factors: factors.tolist(),
    "no columns": lambda factors: factors[:, :0],
    "objects": lambda factors: factors.astype(object),
}


@only(MatrixFactorization)
@pytest.mark.parametrize("case", BAD)
def test_factors_of_another_kind_are_refused(model, data, case):
    for name in ("user_factors", "item_factors"):
        before = getattr(model, name)
        setattr(model, name, BAD[case](before))
        for ask in (
            lambda: model.recommend(0, data[0]),
            lambda: model.fold_in(data),
            lambda: model.similar_items(0),
            lambda: model.similar_users(0),
            lambda: model.partial_fit_users([0], data[0]),
        ):
            with pytest.raises(
                ValueError, match=rf"{name} is .*\[.*\]; assign a matrix of float32"
            ):
                ask()
        setattr(model, name, before)


@only(MatrixFactorization)
def test_factors_of_different_lengths_are_refused(model, data):
    model.item_factors = np.ones((15, 7), dtype=np.float32)
    for ask in (lambda: model.recommend(0, data[0]), lambda: model.fold_in(data)):
        with pytest.raises(ValueError, match="user_factors has 4 columns, and item_factors 7"):
            ask()


@only(MatrixFactorization)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_users_whose_factors_are_no_numbers_are_named(model, data, value):
    factors = model.user_factors.copy()
    factors[3, 1] = value
    model.user_factors = factors
    with pytest.raises(ValueError, match="user_factors hold NaN or infinity for user 3; fit again"):
        model.recommend([2, 3], data[[2, 3]])
    assert (model.recommend(2, data[2])[0] >= 0).any()
    assert (model.recommend(3, data[3], recalculate_user=True)[0] >= 0).any()


@only(MatrixFactorization)
def test_any_layout_of_the_factors_will_do(model, data):
    users, items = np.arange(24), np.arange(15)
    _, expected = model.recommend(users, data)
    _, similar = model.similar_items(items)
    for layout in (np.asfortranarray, lambda factors: np.repeat(factors, 2, axis=1)[:, ::2]):
        model.user_factors = layout(model.user_factors)
        model.item_factors = layout(model.item_factors)
        np.testing.assert_allclose(model.recommend(users, data)[1], expected, atol=1e-6)
        np.testing.assert_allclose(model.similar_items(items)[1], similar, atol=1e-6)
        assert np.isfinite(model.fold_in(data)).all()


@only(ALSModel)
def test_items_need_a_weight_for_every_user(model, data):
    model.user_factors = np.ones((30, 4), dtype=np.float32)
    audience = data.T.tocsr()[:1]
    audience.resize(1, 30)
    with pytest.raises(ValueError, match="user_factors has 30 rows, and user_weights 24"):
        model.recalculate_item([0], audience)


@only(EASE)
def test_weights_of_another_shape_are_refused(model, data):
    for wrong in (np.ones((3, 3), dtype=np.float32), np.ones((15, 14), dtype=np.float32)):
        model.item_weights = wrong
        with pytest.raises(ValueError, match=r"item_weights has shape .* knows 15 items"):
            model.recommend(0, data[0])
    model.item_weights = np.ones((15, 15))
    with pytest.raises(ValueError, match=r"item_weights is float64\[15, 15\]; assign"):
        model.similar_items(0)
