"""Whole models: every class trains and answers on every backend as on the reference."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from safecf.models import MODELS
from tests.agreement.placed import FAST
from tests.reference import rotation_free

RNG = np.random.default_rng(4)
DATA = sp.csr_matrix(
    (RNG.random((60, 25)) < 0.25) * RNG.choice([0.5, 1, 2], (60, 25)), dtype=np.float32
)
QUICK = {"factors": 5, "iterations": 5, "random_state": 3}
# As many steps on both sides, so that no rounding decides about one more.
OPTIONS = {
    "IALS": {"solver": "exact"},
    "ERMMF": {"tolerance": 1e-6},
    "SAFER2": {"tolerance": 1e-6},
    "SAFER2CG": {},
    "IALSPP": {"block_size": 2},
    "SAFER2PP": {"block_size": 3},
    "CVaRMF": {},
}
NAMES = {each.name for each in FAST}


@cache
def trained(name, backend, device="cpu"):
    options = QUICK | OPTIONS[name] | {"backend": backend, "device": device}
    return MODELS[name](**options).fit(DATA, show_progress=False)


def test_every_class_with_a_backend_is_here():
    assert {name for name in MODELS if "backend" in MODELS[name]().get_params()} == set(OPTIONS)


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("backend", sorted(NAMES))
def test_models_agree(name, backend):
    device = next(str(getattr(each, "device", "cpu")) for each in FAST if each.name == backend)
    ours, twin = trained(name, backend, device), trained(name, "numpy")
    for one, other in zip(ours.history, twin.history, strict=True):
        assert one.objective == pytest.approx(other.objective, rel=1e-4)
    scores = [rotation_free(each.user_factors, each.item_factors) for each in (ours, twin)]
    np.testing.assert_allclose(*scores, rtol=0, atol=2e-3 * np.abs(scores[1]).max())
    np.testing.assert_allclose(ours.user_weights, twin.user_weights, atol=1e-3)
    for model in (ours, twin):
        np.testing.assert_array_equal(model.fold_in(DATA), model.user_factors)
    users = np.arange(60)
    found = [model.recommend(users, DATA, N=8) for model in (ours, twin)]
    np.testing.assert_allclose(found[0][1], found[1][1], atol=4e-3 * np.abs(scores[1]).max())
    assert (found[0][0] == found[1][0]).mean() > 0.95
    similar = [model.similar_items(np.arange(25), N=5)[1] for model in (ours, twin)]
    np.testing.assert_allclose(*similar, atol=1e-2)
    again = [each.recalculate_item(np.arange(25), DATA.T.tocsr()) for each in (ours, twin)]
    products = [
        each @ model.item_factors.T for each, model in zip(again, (ours, twin), strict=True)
    ]
    np.testing.assert_allclose(*products, rtol=0, atol=2e-3 * np.abs(products[1]).max())


def test_the_default_tolerance_is_close_enough():
    for backend in sorted(NAMES):
        for name in ("IALS", "SAFER2"):
            made = QUICK | {"backend": backend}
            loose = MODELS[name](**made).fit(DATA, show_progress=False)
            tight = MODELS[name](**made, solver="exact").fit(DATA, show_progress=False)
            one, other = loose.history[-1].objective, tight.history[-1].objective
            assert one == pytest.approx(other, rel=1e-3)
