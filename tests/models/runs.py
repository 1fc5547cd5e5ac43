"""Small runs: a model, its training, and what is compared of it."""

import numpy as np

from safecf import SAFER2, CVaRMF

OPTIONS = {"factors": 4, "iterations": 5, "backend": "cpu"}


def make(**options):
    return SAFER2(**({"random_state": 1, "quantile_sample": 0.5} | OPTIONS | options))


def make_cvar(optimizer="adam", **options):
    step_size = {"sgd": 0.4, "adam": 0.05}[optimizer]
    chosen = {"random_state": 1, "optimizer": optimizer, "step_size": step_size}
    return CVaRMF(**OPTIONS | chosen | options)


def fit(model, data, **rest):
    return model.fit(data, show_progress=False, **rest)


def assert_same(one, other):
    np.testing.assert_array_equal(one.user_factors, other.user_factors)
    np.testing.assert_array_equal(one.item_factors, other.item_factors)
    np.testing.assert_array_equal(one.user_weights, other.user_weights)
    assert one.history == other.history
    assert one.seed == other.seed
