"""The catalogue: every option reaches the part that it is for."""

import numpy as np
import pytest
import scipy.sparse

from safecf import ERMMF, IALS, SAFER2, SAFER2CG, SAFER2PP, CVaRMF
from safecf.als.kernels import KERNELS
from safecf.als.loss import Loss, Ridge
from safecf.als.optimizers import SGD, Adam
from safecf.als.risk import CVaR, Mean, SmoothedCVaR
from safecf.als.solvers import CG, Exact, Gradient, SpectralCG
from tests.reference import rotation_free

COMMON = {"unobserved_weight": 0.5, "regularization": 0.02}
SMOOTH = {"kernel": "logistic", "bandwidth": 0.4, "quantile_steps": 7, "quantile_sample": 0.6}
NORMALISED = Loss(0.5, 0.8)
PARTS = {
    "IALS": (
        IALS(ridge_exponent=0.5, solver="exact", **COMMON),
        (Loss(0.5, 0.0), Ridge(0.02, 0.5), Mean(1.0), Exact()),
    ),
    "ERMMF": (
        ERMMF(tail=0.2, tolerance=1e-5, normalisation=0.8, **COMMON),
        (NORMALISED, Ridge(0.02, in_risk=True), Mean(0.2), SpectralCG(1e-5)),
    ),
    "ERMMF, ridge apart": (
        ERMMF(tail=0.2, ridge_in_risk=False, **COMMON),
        (Loss(0.5), Ridge(0.02), Mean(0.2), SpectralCG(ERMMF().tolerance)),
    ),
    **{
        kind.__name__: (
            kind(tail=0.2, tolerance=1e-5, normalisation=0.8, **COMMON, **SMOOTH),
            (
                NORMALISED,
                Ridge(0.02, in_risk=True),
                SmoothedCVaR(0.2, KERNELS["logistic"], 0.4, steps=7, sample=0.6),
                solver,
            ),
        )
        for kind, solver in ((SAFER2, SpectralCG(1e-5)), (SAFER2CG, CG(5, 1e-5)))
    },
    **{
        f"CVaRMF, {name}": (
            CVaRMF(tail=0.2, step_size=0.7, optimizer=name, normalisation=0.8, **COMMON),
            (NORMALISED, Ridge(0.02), CVaR(0.2), Gradient(0.7, optimizer)),
        )
        for name, optimizer in (("sgd", SGD()), ("adam", Adam()))
    },
}


@pytest.mark.parametrize("case", PARTS)
def test_every_option_reaches_its_part(case):
    model, parts = PARTS[case]
    assert model.compose() == parts


def test_blocks_and_normalisation_of_safer2pp():
    model = SAFER2PP(normalisation=0.8, block_size=3, **COMMON)
    assert model.compose().loss == NORMALISED
    assert model.compose().solver.block_size == 3


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
