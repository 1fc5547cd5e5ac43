"""Every registered backend but the twin, each in all of its variants, such as instruction sets."""

import pytest

from safecf.als.capabilities import Blocks, Gradients, HalfSteps, Search
from safecf.backends import find_backend, registered
from tests.agreement.placed import TWIN

NEEDS = {
    "test_gradients": Gradients,
    "test_subspace": Blocks,
    "test_search": Search,
}


def fast_backends():
    kinds = [find_backend(name) for name in registered() if name != TWIN.name]
    return [each for kind in kinds for each in variants_of(kind)]


def variants_of(kind):
    """Return a backend in all the ways in which it may run here, if it has several."""
    return kind.variants(num_threads=2) if hasattr(kind, "variants") else [kind(2)]


@pytest.fixture(params=fast_backends(), ids=repr)
def native(request):
    """Return a backend, if it has what the test's module is about."""
    needed = NEEDS.get(request.module.__name__.rpartition(".")[2], HalfSteps)
    if not isinstance(request.param, needed):
        pytest.skip(f"{request.param!r} has no {needed.__name__}")
    return request.param
