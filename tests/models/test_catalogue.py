"""The catalogue: every option reaches the part that it is for."""

import io
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

from safecf import ERMMF, IALS, SAFER2, SAFER2CG, SAFER2PP, CVaRMF
from safecf.als.kernels import KERNELS
from safecf.als.loss import Loss, Ridge
from safecf.als.optimizers import SGD, Adam
from safecf.als.risk import CVaR, Mean, SmoothedCVaR
from safecf.als.solvers import CG, Exact, Gradient, SpectralCG
from tests.problems import rotation_free


def test_ials():
    model = IALS(unobserved_weight=0.5, regularization=0.02, ridge_exponent=0.5, solver="exact")
    assert model.compose() == (Loss(0.5, 0.0), Ridge(0.02, 0.5), Mean(1.0), Exact())


def test_erm_mf():
    model = ERMMF(unobserved_weight=0.5, regularization=0.02, tail=0.2, tolerance=1e-5)
    ridge = Ridge(0.02, in_risk=True)
    assert model.compose() == (Loss(0.5), ridge, Mean(0.2), SpectralCG(1e-5))
    model.ridge_in_risk = False
    assert model.compose().ridge == Ridge(0.02)


@pytest.mark.parametrize("kind", [SAFER2, SAFER2CG])
def test_safer2(kind):
    options = {"kernel": "logistic", "bandwidth": 0.4, "quantile_steps": 7, "quantile_sample": 0.6}
    model = kind(unobserved_weight=0.5, regularization=0.02, tail=0.2, tolerance=1e-5, **options)
    loss, ridge, risk, solver = model.compose()
    assert (loss, ridge) == (Loss(0.5), Ridge(0.02, in_risk=True))
    assert risk == SmoothedCVaR(0.2, KERNELS["logistic"], 0.4, steps=7, sample=0.6)
    assert solver == (SpectralCG(1e-5) if kind is SAFER2 else CG(5, 1e-5))


@pytest.mark.parametrize(("name", "optimizer"), [("sgd", SGD()), ("adam", Adam())])
def test_cvar_mf(name, optimizer):
    model = CVaRMF(
        unobserved_weight=0.5, regularization=0.02, tail=0.2, step_size=0.7, optimizer=name
    )
    parts = Loss(0.5), Ridge(0.02), CVaR(0.2), Gradient(0.7, optimizer)
    assert model.compose() == parts
    with pytest.raises(TypeError, match="unexpected keyword argument 'solver'"):
        CVaRMF(solver="exact")


def test_safer2_cg_is_the_papers():
    assert SAFER2CG().make_solver() == CG(max_iterations=5, tolerance=1e-4)
    with pytest.raises(TypeError, match="unexpected keyword argument 'solver'"):
        SAFER2CG(solver="exact")


@pytest.mark.parametrize("kind", [ERMMF, SAFER2, SAFER2CG, SAFER2PP, CVaRMF])
def test_the_normalisation_reaches_the_model(kind):
    model = kind(normalisation=0.8, unobserved_weight=0.5, regularization=0.1)
    assert model.compose().loss == Loss(0.5, 0.8)
    assert kind(unobserved_weight=0.5, regularization=0.1).compose().loss == Loss(0.5, 1.0)


@pytest.mark.parametrize("solver", ["exact", "cg", "spectral-cg"])
@pytest.mark.parametrize(("backend", "close"), [("numpy", 1e-6), ("cpu", 1e-4)])
def test_safer2_without_normalisation_and_everybody_in_the_tail_is_ials(solver, backend, close):
    matrix = scipy.sparse.random(60, 40, 0.2, format="csr", random_state=0)
    common = {"regularization": 0.02, "unobserved_weight": 0.1, "tolerance": 1e-6}
    common |= {"solver": solver, "backend": backend, "iterations": 6, "random_state": 0}
    ials = IALS(5, **common).fit(matrix, show_progress=False)
    for bandwidth in (0.3, 5.0):
        safer = SAFER2(5, normalisation=0, tail=1, bandwidth=bandwidth, **common)
        safer.fit(matrix, show_progress=False)
        found, expected = (
            rotation_free(each.user_factors, each.item_factors) for each in (safer, ials)
        )
        np.testing.assert_allclose(found, expected, atol=close)
        np.testing.assert_allclose(safer.user_weights, 1, rtol=1e-12)


def test_a_plain_tail_is_of_users_with_long_histories():
    """Losses that are not normalised grow with the history, so the tail is of other users."""
    rng = np.random.default_rng(0)
    matrix = scipy.sparse.csr_matrix(rng.random((200, 60)) < rng.uniform(0.05, 0.5, (200, 1)))
    options = {"iterations": 10, "random_state": 0}
    plain = SAFER2(4, normalisation=0, bandwidth=3, unobserved_weight=0.1, **options)
    normalised = SAFER2(4, bandwidth=0.15, unobserved_weight=0.004, **options)
    lengths = matrix.getnnz(axis=1)

    def follows_length(model):
        model.fit(matrix, show_progress=False)
        return np.corrcoef(lengths, model.user_weights)[0, 1]

    assert follows_length(plain) > 0.9
    assert follows_length(plain) > follows_length(normalised) + 0.1


@pytest.mark.parametrize("kind", [ERMMF, SAFER2])
@pytest.mark.parametrize("tail", [1, np.float32(0.3), Fraction(1, 3)], ids=repr)
def test_numbers_of_any_type_train_save_and_load(kind, tail):
    matrix = scipy.sparse.random(40, 30, 0.2, format="csr", random_state=0)
    model = kind(4, iterations=2, tail=tail, random_state=0).fit(matrix, show_progress=False)
    same = kind(4, iterations=2, tail=float(tail), random_state=0).fit(matrix, show_progress=False)
    np.testing.assert_array_equal(model.item_factors, same.item_factors)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    np.testing.assert_array_equal(kind.load(file).item_factors, model.item_factors)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("regularization", 1e16, r"\[0, 1e\+15\]"),
        ("unobserved_weight", np.inf, r"\[0, 1e\+15\]"),
        ("tail", 1e-7, r"\[1e-06, 1\]"),
        ("quantile_sample", 0, r"\[1e-06, 1\]"),
        ("bandwidth", 5e-324, r"\[1e-30, inf\]"),
        ("init_std", 1e4, r"\[1e-06, 1000\]"),
        ("quantile_steps", 1001, "from 1 to 1000"),
    ],
)
def test_values_beyond_any_use_are_refused(name, value, allowed):
    with pytest.raises(ValueError, match=rf"^{name}=.* has to be (in )?{allowed}; try {name}="):
        SAFER2(**{name: value}).fit(np.eye(3), show_progress=False)


def test_the_ends_of_options_train(recwarn):
    data = scipy.sparse.csr_matrix([[1.0, 1, 0], [0, 1, 1], [1, 0, 0]])
    for end in ({"tail": 1e-6}, {"bandwidth": 1e-30}, {"quantile_steps": 1000}, {"init_std": 1e-6}):
        model = SAFER2(2, iterations=3, random_state=0, **end).fit(data, show_progress=False)
        assert np.isfinite(model.item_factors).all()
        assert np.isfinite([record.objective for record in model.history]).all()
