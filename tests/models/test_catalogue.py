"""The catalogue: every option reaches the part that it is for."""

import io
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

from safecf import ERMMF, IALS, SAFER2, SAFER2CG
from safecf.als.kernels import KERNELS
from safecf.als.loss import Normalised, Plain, Ridge
from safecf.als.risk import Mean, SmoothedCVaR
from safecf.als.solvers import CG, Exact, SpectralCG


def test_ials():
    model = IALS(unobserved_weight=0.5, regularization=0.02, ridge_exponent=0.5, solver="exact")
    assert model._compose() == (Plain(0.5), Ridge(0.02, 0.5), Mean(1.0), Exact())


def test_erm_mf():
    model = ERMMF(unobserved_weight=0.5, regularization=0.02, tail=0.2, tolerance=1e-5)
    assert model._compose() == (Normalised(0.5), Ridge(0.02), Mean(0.2), SpectralCG(1e-5))


@pytest.mark.parametrize("kind", [SAFER2, SAFER2CG])
def test_safer2(kind):
    options = {"kernel": "logistic", "bandwidth": 0.4, "quantile_steps": 7, "quantile_sample": 0.6}
    model = kind(unobserved_weight=0.5, regularization=0.02, tail=0.2, tolerance=1e-5, **options)
    loss, ridge, risk, solver = model._compose()
    assert (loss, ridge) == (Normalised(0.5), Ridge(0.02))
    assert risk == SmoothedCVaR(0.2, KERNELS["logistic"], 0.4, steps=7, sample=0.6)
    assert solver == (SpectralCG(1e-5) if kind is SAFER2 else CG(5, 1e-5))


def test_safer2_cg_is_the_papers():
    assert SAFER2CG()._compose().solver == CG(max_iterations=5, tolerance=1e-4)
    with pytest.raises(TypeError):
        SAFER2CG(solver="exact")


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
