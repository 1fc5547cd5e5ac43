"""Optimizers: Adam against the paper's pseudo-code, one number at a time."""

import math

import numpy as np
import pytest

from safecf.als.optimizers import OPTIMIZERS, SGD, Adam, Moments


def slow_adam(gradients, beta1=0.9, beta2=0.999, epsilon=1e-8):
    """Yield the directions for a sequence of gradients of one number."""
    m = v = 0.0
    for t, g in enumerate(gradients, start=1):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        yield m / (1 - beta1**t) / (math.sqrt(v / (1 - beta2**t)) + epsilon)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_adam_is_the_papers(dtype):
    gradients = np.random.default_rng(0).normal(size=(9, 4, 3)).astype(dtype)
    gradients[:, 1] = 0
    gradients[:, 2] *= 1e-6
    moments = None
    for epoch, gradient in enumerate(gradients, start=1):
        direction, moments = Adam().direction(gradient, moments, epoch)
        assert {direction.dtype, moments.mean.dtype, moments.square.dtype} == {np.dtype(dtype)}
        wanted = np.empty((4, 3))
        for at in np.ndindex(4, 3):
            *_, wanted[at] = slow_adam(gradients[:epoch, *at].astype(float).tolist())
        close = 1e-5 if dtype is np.float32 else 1e-12
        np.testing.assert_allclose(direction, wanted, rtol=close, atol=close)


def test_adams_first_step_is_as_long_for_every_gradient():
    gradient = np.array([[3.0, -1e-3, 0.0]])
    direction, _ = Adam().direction(gradient, None, 1)
    np.testing.assert_allclose(direction, [[1, -1, 0]], rtol=1e-4)


def test_nothing_that_adam_is_given_changes():
    gradient = np.ones((2, 2))
    before = Moments(np.full((2, 2), 0.5), np.full((2, 2), 0.25))
    Adam().direction(gradient, before, 3)
    assert (gradient == 1).all()
    assert (before.mean == 0.5).all()
    assert (before.square == 0.25).all()


def test_sgd_is_the_gradient_and_remembers_nothing():
    gradient = np.ones((2, 2))
    direction, moments = SGD().direction(gradient, None, 7)
    np.testing.assert_array_equal(direction, gradient)
    assert moments is None


def test_the_names():
    assert set(OPTIMIZERS) == {"sgd", "adam"}
