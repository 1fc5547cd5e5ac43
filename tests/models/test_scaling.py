"""Options that scale themselves: what "auto" becomes, and where it is kept."""

import io

import numpy as np
import pytest
import scipy.sparse

import safecf
from safecf import ERMMF, IALS, SAFER2, SAFER2CG, SAFER2PP, NotFittedError
from tests.helpers import refused
from tests.models.saved import load, saved
from tests.reference import rotation_free

# The numbers that docs/defaults.md gives.
UNOBSERVED, SCARCITY, LEAST_RIDGE, LARGEST_RIDGE, RELATIVE_BANDWIDTH = 15, 8, 0.005, 0.02, 1.5
OPTIONS = {"factors": 6, "iterations": 5, "random_state": 0}


def interactions(weighted=True):
    """Users 3 and 7 and item 5 have no interactions."""
    rng = np.random.default_rng(0)
    matrix = scipy.sparse.random(50, 30, 0.2, format="lil", random_state=1)
    matrix[[3, 7]] = 0
    matrix[:, 5] = 0
    matrix = matrix.tocsr()
    matrix.eliminate_zeros()
    matrix.data = rng.uniform(0.5, 4.0, matrix.nnz) if weighted else np.ones(matrix.nnz)
    return matrix.astype(np.float32)


def fitted(model, matrix, **options):
    return model.fit(matrix, show_progress=False, **options)


@pytest.mark.parametrize(
    ("model", "rho"),
    [(IALS(**OPTIONS), 0), (ERMMF(**OPTIONS), 1), (SAFER2(normalisation=0.4, **OPTIONS), 0.4)],
    ids=["plain", "normalised", "in between"],
)
@pytest.mark.parametrize("counted", [False, True])
def test_the_unobserved_pairs_of_an_average_user_weigh_a_constant(model, rho, counted):
    matrix = interactions()
    counts = np.arange(50) % 4 if counted else np.ones(50)
    fitted(model, matrix, user_weight=counts if counted else None)
    mass = np.asarray(matrix.sum(axis=1)).ravel()
    counts = np.where(mass > 0, counts, 0)
    observed = np.average(mass ** (1 - rho), weights=counts)
    items = np.count_nonzero(matrix[counts > 0].getnnz(axis=0))
    squares = np.asarray(matrix.power(2).sum(axis=1)).ravel()
    carrying = np.divide(mass**2, squares, where=squares > 0, out=np.zeros(50))
    even = (counts @ carrying) / (counts @ matrix.getnnz(axis=1))
    assert even < 0.9
    expected = UNOBSERVED * even * observed
    assert model.resolved["unobserved_weight"] * items == pytest.approx(expected)


def test_equal_confidences_are_even():
    matrix = interactions(weighted=False)
    ones, twos = (fitted(SAFER2(**OPTIONS), scale * matrix) for scale in (1, 2))
    items = np.count_nonzero(matrix.getnnz(axis=0))
    for model in (ones, twos):
        assert model.resolved["unobserved_weight"] * items == pytest.approx(UNOBSERVED)


def test_extreme_confidences_have_finite_weights():
    matrix = interactions()
    matrix.data = np.geomspace(1e-18, 1e12, matrix.nnz).astype(np.float32)
    model = fitted(SAFER2(**OPTIONS), matrix)
    assert 0 < model.resolved["unobserved_weight"] < 1


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize(("users", "density", "between"), [(900, 0.2, True), (50, 0.1, False)])
def test_the_ridge_grows_where_there_are_few_or_short_histories(users, density, between, counted):
    matrix = scipy.sparse.random(users, 300, density, format="csr", random_state=1)
    counts = np.arange(users) % 4 if counted else np.ones(users)
    model = SAFER2(factors=4, iterations=1, random_state=0)
    fitted(model, matrix, user_weight=counts if counted else None)
    length = matrix.getnnz(axis=1)
    typical = np.average(length, weights=counts * length)
    expected = SCARCITY / typical / counts.sum() ** (1 / 3)
    assert (LEAST_RIDGE < expected < LARGEST_RIDGE) == between
    assert model.resolved["regularization"] == pytest.approx(min(expected, LARGEST_RIDGE))


@pytest.mark.parametrize("kind", [IALS, ERMMF, SAFER2, SAFER2CG, SAFER2PP])
def test_the_unit_of_confidences_does_not_matter(kind):
    """Hours or minutes: the losses of iALS grow by a constant, and nothing else changes."""
    hours = interactions()
    once, again = (fitted(kind(**OPTIONS), scale * hours) for scale in (1, 60))
    found, expected = (
        rotation_free(each.user_factors, each.item_factors) for each in (again, once)
    )
    np.testing.assert_allclose(found, expected, atol=2e-3)
    assert np.abs(expected).max() > 0.1


@pytest.mark.parametrize("kind", [SAFER2, SAFER2CG, SAFER2PP])
def test_the_bandwidth_follows_the_spread_of_the_losses(kind):
    matrix, options = interactions(), dict(OPTIONS)
    if kind is SAFER2:
        options["tolerance"] = 1e-6  # else the losses of training are those of items in bfloat16
    model = fitted(kind(**options), matrix)
    users = safecf.Interactions.from_csr(matrix).users
    seen = []

    def look(epoch, seconds, objective):
        losses = model.user_losses(users, model.user_factors)[users.row_mass() > 0]
        seen.append(RELATIVE_BANDWIDTH * losses.std())

    model.fit(matrix, show_progress=False, callback=look)
    assert [record.bandwidth for record in model.history] == pytest.approx(seen, rel=1e-3)
    assert model.resolved["bandwidth"] == model.history[-1].bandwidth
    assert "bandwidth" not in fitted(kind(bandwidth=0.1, **OPTIONS), matrix).resolved


def test_the_first_epoch_has_equal_weights():
    model = fitted(SAFER2(factors=6, iterations=1, random_state=0), interactions())
    assert set(model.user_weights.tolist()) == {0.0, model.tail}


def test_values_are_shown_and_loaded():
    model = fitted(SAFER2(**OPTIONS), interactions())
    b, h = model.resolved["unobserved_weight"], model.resolved["bandwidth"]
    assert f"unobserved_weight='auto: {b:.3g}'" in repr(model)
    assert f"bandwidth='auto: {h:.3g}'" in repr(model)
    losses, again = np.linspace(0, 1, 7), load(saved(model))
    assert again.resolved == model.resolved
    np.testing.assert_array_equal(again.training_weights(losses), model.training_weights(losses))
    model.bandwidth = 0.2
    assert "bandwidth='auto" not in repr(model)
    assert "bandwidth=0.2" in repr(model)


def test_one_huge_confidence_changes_that_user_alone():
    """In float32 the squares of the others would be zero."""
    matrix = interactions(weighted=False)
    matrix.data[0] = 1e12
    found = fitted(ERMMF(**OPTIONS), matrix).resolved["unobserved_weight"]
    items, carried = np.count_nonzero(matrix.getnnz(axis=0)), matrix.getnnz(axis=1)[0] - 1
    assert found * items == pytest.approx(UNOBSERVED * (1 - carried / matrix.nnz))


def test_a_bandwidth_that_became_auto_is_that_of_the_losses():
    model = fitted(SAFER2(bandwidth=0.01, **OPTIONS), interactions())
    model.bandwidth, losses = "auto", np.linspace(0.2, 0.5, 9)
    weights = model.training_weights(losses)
    model.bandwidth = RELATIVE_BANDWIDTH * losses.std()
    np.testing.assert_allclose(weights, model.training_weights(losses), rtol=1e-12)


def test_without_a_fit_there_is_no_value():
    with refused(NotFittedError, 'is "auto"', "call fit"):
        SAFER2().compose()
    model = fitted(SAFER2(**OPTIONS, unobserved_weight=0.1), interactions())
    model.unobserved_weight = "auto"
    for use in (lambda: model.fold_in(interactions()), lambda: model.save(io.BytesIO())):
        with refused(NotFittedError, 'unobserved_weight is "auto"', "call fit"):
            use()


def test_users_without_spread_count_the_same():
    matrix = scipy.sparse.csr_matrix(np.ones((6, 3), dtype=np.float32))
    model = fitted(SAFER2(**OPTIONS), matrix)
    assert model.resolved["bandwidth"] == np.inf
    assert load(saved(model)).resolved == model.resolved
