"""Fold-in against the objective itself, written out: its gradient vanishes."""

import numpy as np
import pytest
import scipy.sparse

from safecf import ERMMF, IALS, SAFER2, SAFER2CG
from tests.reference import gradient

OPTIONS = {"factors": 4, "iterations": 5, "random_state": 0, "backend": "numpy"}
MODELS = [IALS(**OPTIONS), ERMMF(**OPTIONS), SAFER2(**OPTIONS, bandwidth=0.3), SAFER2CG(**OPTIONS)]


def interactions(users=30, items=20):
    matrix = scipy.sparse.random(users, items, 0.3, format="csr", random_state=1)
    matrix.data = np.round(1 + 2 * matrix.data, 2)
    return matrix


def parts(model, matrix):
    """a_u, b, lambda, alpha, |U| and |V|, by their definitions."""
    mass = np.asarray(matrix.sum(axis=1)).ravel()
    plain = isinstance(model, IALS)
    pair_weight = np.where(mass > 0, 1.0, 0.0) if plain else 1 / np.where(mass > 0, mass, 1)
    alpha = 1.0 if plain else model.tail
    b, lam = (model.resolved[name] for name in ("unobserved_weight", "regularization"))
    return mass, pair_weight, b, lam, alpha


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_folded_in_user_minimises_the_users_own_objective(model):
    matrix = interactions()
    model.fit(matrix, show_progress=False)
    new = interactions(users=6)[3:]
    mass, pair_weight, b, lam, _ = parts(model, new)
    confidence, y = new.toarray(), model.item_factors.astype(np.float64)
    num_items = np.count_nonzero(matrix.getnnz(axis=0))
    ridge = lam * (pair_weight * mass + b * num_items)

    def objective(x):
        scores = x @ y.T
        error = (confidence * (1 - scores) ** 2).sum(axis=1)
        losses = pair_weight / 2 * error + b / 2 * (scores**2).sum(axis=1)
        return (losses + ridge / 2 * (x**2).sum(axis=1)).sum()

    factors = model.fold_in(new).astype(np.float64)
    assert np.abs(factors).max() > 0.1
    np.testing.assert_allclose(gradient(objective, factors), 0, atol=1e-5)


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_recalculated_item_minimises_the_weighted_objective(model, counted):
    matrix = interactions()
    counts = np.arange(30) % 4 if counted else np.ones(30)
    model.fit(matrix, show_progress=False, user_weight=counts if counted else None)
    mass, pair_weight, b, lam, alpha = parts(model, matrix)
    confidence, x, weight = matrix.toarray(), model.user_factors, model.user_weights
    x, pair_weight = x.astype(np.float64), counts * pair_weight
    ridge = lam * (confidence.T @ pair_weight + b * alpha * counts[mass > 0].sum())

    def objective(y):
        scores = x @ y.T
        pairs = (weight * pair_weight)[:, None] * confidence
        error = (pairs * (1 - scores) ** 2).sum() / 2
        unobserved = b / 2 * ((counts * weight)[:, None] * scores**2).sum()
        return error + unobserved + (ridge / 2 * (y**2).sum(axis=1)).sum()

    factors = model.recalculate_item(np.arange(20), matrix.T.tocsr()).astype(np.float64)
    assert np.abs(factors).max() > 0.1
    np.testing.assert_allclose(gradient(objective, factors), 0, atol=2e-5)


@pytest.mark.parametrize("use", ["recommend", "similar_items", "fold_in"])
def test_factors_that_were_used_are_replaced_not_written_into(use):
    """What is kept of them would no longer belong to them."""
    matrix = interactions()
    model = IALS(**OPTIONS).fit(matrix, show_progress=False)
    asked = {"recommend": (0, matrix[0]), "similar_items": (3,), "fold_in": (matrix[:1],)}
    getattr(model, use)(*asked[use])
    with pytest.raises(ValueError, match="read-only"):
        model.item_factors[7] = 100
