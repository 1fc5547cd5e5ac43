"""Fixtures of the contract: what a test asks for says which models it runs for."""

import copy

import pytest

from safecf.models import MODELS
from tests.contract.subjects import FAMILIES, LACKING, SOME, build, learned


def pytest_configure(config):
    config.addinivalue_line("markers", "only(*names): run the test for these models only")


def pytest_generate_tests(metafunc):
    """A test that asks for `name` runs for all classes, one that asks for `family` for three."""
    marker = metafunc.definition.get_closest_marker("only")
    for fixture, names in (("name", MODELS), ("family", FAMILIES)):
        if fixture in metafunc.fixturenames:
            found = [each for each in names if marker is None or each in marker.args]
            assert found, f"there is no model for {metafunc.definition.nodeid}"
            metafunc.parametrize(fixture, [_param(each) for each in found], scope="session")


def _param(name):
    missing = [pytest.mark.skip(reason=LACKING[name])] if name in LACKING else []
    return pytest.param(name, marks=missing)


@pytest.fixture
def who(request):
    return request.getfixturevalue("family" if "family" in request.fixturenames else "name")


@pytest.fixture
def make(who):
    """Return a function that makes a quick model with these options."""
    return lambda **options: build(who, **options)


@pytest.fixture
def data():
    return SOME.copy()


@pytest.fixture
def model(who):
    """Return a model trained on `data`."""
    return copy.deepcopy(learned(who))


@pytest.fixture
def players(who):
    """Return a model trained on BOARD."""
    return copy.deepcopy(learned(who, board=True))
