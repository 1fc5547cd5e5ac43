"""The contract: what every model in the catalogue promises, on every backend that it has."""

import copy
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from safecf.models import MODELS, Recommender
from tests.contract.quick import LEARNED, LIBRARIES, SIDES, quick_options, subjects


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "only(*kinds): run the test for models of these classes only"
    )


def pytest_generate_tests(metafunc):
    """Run every test that has a model, for all models that it is about."""
    if "subject" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("only")
    found = subjects(marker.args if marker else (Recommender,))
    assert found, f"there is no model for {metafunc.definition.nodeid}"
    if "side" in metafunc.fixturenames:
        pairs = [
            (subject, side)
            for subject in found
            for side, able in SIDES.items()
            if issubclass(MODELS[subject[0]], able)
        ]
        metafunc.parametrize(("subject", "side"), pairs, ids=[_named(*pair) for pair in pairs])
    else:
        metafunc.parametrize("subject", found, ids=[_named(subject) for subject in found])


def _named(subject, *more):
    return "-".join([*filter(None, subject), *more])


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
    options = quick_options(name, backend)
    if "iterations" in options:
        options["iterations"] = 8
    return MODELS[name](**(options | LEARNED.get(name, {}))).fit(data(), show_progress=False)


@pytest.fixture
def name(subject):
    model, _ = subject
    if model in LIBRARIES:
        pytest.importorskip(LIBRARIES[model], reason=f"{model} needs {LIBRARIES[model]}")
    return model


@pytest.fixture
def backend(subject):
    return subject[1]


@pytest.fixture
def make(name, backend):
    """Return a function that makes a model: quick and repeatable, unless told otherwise."""

    def build(**options):
        return MODELS[name](**(quick_options(name, backend) | options))

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


def _shown(value):
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if isinstance(value, tuple):
        return tuple(map(_shown, value))
    return copy.deepcopy(value)


@pytest.fixture
def snapshot():
    """Return a function that shows everything a model holds, to be compared before and after."""

    def show(model):
        return {key: _shown(value) for key, value in vars(model).items() if key[0] != "_"}

    return show
