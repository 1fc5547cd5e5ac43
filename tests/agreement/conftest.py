"""Every registered backend but the twin, each in all of its variants, such as instruction sets."""

import pytest

from safecf.als.capabilities import Blocks, Gradients, HalfSteps, Search
from tests.agreement.placed import TWIN, variants_of
from tests.installed import backend_kinds

NEEDS = {
    "test_gradients": Gradients,
    "test_subspace": Blocks,
    "test_search": Search,
}


def fast_backends():
    kinds = backend_kinds()
    return [each for name in kinds if name != TWIN.name for each in variants_of(kinds[name])]


@pytest.fixture(params=fast_backends(), ids=repr)
def native(request):
    """Return a backend, if it has what the test's module is about."""
    needed = NEEDS.get(request.module.__name__.rpartition(".")[2], HalfSteps)
    if not isinstance(request.param, needed):
        pytest.skip(f"{request.param!r} has no {needed.__name__}")
    solver = request.node.callspec.params.get("solver")
    if solver is not None and solver.name not in request.param.row_solvers:
        pytest.skip(f"{request.param!r} has no solver {solver.name!r}")
    return request.param
