"""The contract: what every model in the catalogue promises, on every backend."""

import copy
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from safecf.models import MODELS

BACKENDS = ("numpy", "cpu")


def make_checkerboard(size=20):
    """User u likes all items of the same parity, but for item u."""
    rows, columns = np.indices((size, size))
    likes = (rows + columns) % 2 == 0
    np.fill_diagonal(likes, False)
    return sp.csr_matrix(likes, dtype=np.float32)


def make_data():
    """24 users, the 5th with no items, x 15 items, the 7th with no users; some weights."""
    rng = np.random.default_rng(7)
    likes = rng.random((24, 15)) < 0.3
    likes[:, 6] = likes[4] = False
    likes[likes.sum(axis=1) == 0, 0] = True
    likes[4] = False
    return sp.csr_matrix(likes * rng.choice([1, 2, 0.5], size=likes.shape), dtype=np.float32)


@cache
def _trained(name, backend, data):
    options = {"factors": 4, "iterations": 8, "random_state": 3, "backend": backend}
    return MODELS[name](**options).fit(data(), show_progress=False)


@pytest.fixture(params=MODELS)
def name(request):
    return request.param


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.fixture
def make(name, backend):
    """Return a function that makes a model: quick and repeatable, unless told otherwise."""

    def build(**options):
        defaults = {"factors": 4, "iterations": 3, "random_state": 3, "backend": backend}
        return MODELS[name](**(defaults | options))

    return build


@pytest.fixture
def checkerboard():
    return make_checkerboard()


@pytest.fixture
def data():
    return make_data()


@pytest.fixture
def players(name, backend):
    """Return a model trained on the checkerboard."""
    return copy.deepcopy(_trained(name, backend, make_checkerboard))


@pytest.fixture
def model(name, backend):
    """Return a model trained on `data`."""
    return copy.deepcopy(_trained(name, backend, make_data))


@pytest.fixture
def snapshot():
    """Return a function that shows everything a model holds, to be compared before and after."""

    def show(model):
        held = {key: value for key, value in vars(model).items() if key != "_cache"}
        return {
            key: value.tobytes() if isinstance(value, np.ndarray) else copy.deepcopy(value)
            for key, value in held.items()
        }

    return show
