"""Models for the contract: which there are, quick and repeatable ones, and how they compare."""

import inspect

import numpy as np
import pytest

from safecf.als.sweeps import capability_for, row_solvers_for
from safecf.models import MODELS, Recommender
from safecf.models.factorization import MatrixFactorization
from tests.installed import backend_kinds

SIDES = {"items": Recommender, "users": MatrixFactorization}  # who can be asked for similar ones
LIBRARIES = {"MultVAE": "torch"}  # what training needs, where that is an extra

QUICK = {"factors": 4, "iterations": 3, "random_state": 3}
OWN = {
    "EASE": {"regularization": 0.5},
    "MultVAE": {"step_size": 0.03, "batch_size": 5, "beta": 0.01, "device": "cpu"},
}
# Enough to learn the checkerboard and the data.
LEARNED = {
    "CVaRMF": {"iterations": 300, "optimizer": "adam", "step_size": 0.03},
    "MultVAE": {"iterations": 60},
}


def only(*kinds):
    """Run a test for models of these classes only: those that have what it is about."""
    return pytest.mark.only.with_args(*kinds)


def options_of(name):
    return inspect.signature(MODELS[name]).parameters


def subjects(kinds):
    """Return (name, backend) of all models of these kinds; None where there is no such option."""
    return [
        (name, backend)
        for name, model in MODELS.items()
        if issubclass(model, kinds)
        for backend in (backends_of(name) if "backend" in options_of(name) else (None,))
    ]


def backends_of(name):
    """Return the registered backends that have what the model needs."""
    solver = MODELS[name]().make_solver()
    needed = capability_for(solver)
    return [
        each
        for each, make in backend_kinds().items()
        if isinstance(backend := make(1), needed)
        and {"exact", *row_solvers_for(solver)} <= set(backend.row_solvers)
    ]


def quick_options(name, backend):
    known = {option: value for option, value in QUICK.items() if option in options_of(name)}
    return known | OWN.get(name, {}) | ({} if backend is None else {"backend": backend})


def assert_equal(model, actual, expected):
    """The same bits, if the backend gives a row the same whatever is beside it; else nearly so."""
    backend = backend_kinds().get(getattr(model, "backend", None))
    if getattr(backend, "same_bits", True):
        np.testing.assert_array_equal(actual, expected)
    else:
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)


def fitted(model, matrix):
    return model.fit(matrix, show_progress=False)


def arrays_of(model):
    """Return all arrays that training has found, by name."""
    found = {}
    for key, value in vars(model).items():
        if isinstance(value, np.ndarray):
            found[key] = value
        elif isinstance(value, tuple):
            parts = enumerate(value)
            found |= {f"{key}.{at}": part for at, part in parts if isinstance(part, np.ndarray)}
    return found


def assert_same(one, other):
    arrays, others = arrays_of(one), arrays_of(other)
    assert arrays
    assert arrays.keys() == others.keys()
    for key, array in arrays.items():
        np.testing.assert_array_equal(array, others[key], err_msg=key)
    assert getattr(one, "history", None) == getattr(other, "history", None)
