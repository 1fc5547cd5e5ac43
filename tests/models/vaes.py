"""Quick Mult-VAEs for the tests; imported only where torch is."""

import numpy as np

from safecf import Interactions, MultVAE

OPTIONS = {"factors": 4, "iterations": 5, "batch_size": 7, "step_size": 0.02, "device": "cpu"}
OPTIONS |= {"num_threads": 1}  # more only wait for each other on so little data


def make(**options):
    return MultVAE(**({"random_state": 1} | OPTIONS | options))


def fit(model, data, **rest):
    return model.fit(data, show_progress=False, **rest)


def trainer_of(data, **options):
    model = make(**options)
    return model._make_trainer(Interactions.from_csr(data).users, 1)


def assert_same(one, other):
    np.testing.assert_array_equal(one.user_factors, other.user_factors)
    np.testing.assert_array_equal(one.item_factors, other.item_factors)
    for mine, theirs in zip(one.encoder, other.encoder, strict=True):
        np.testing.assert_array_equal(mine, theirs)
