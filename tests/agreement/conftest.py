"""Every backend but the reference, in each of its instruction sets or devices.

SAFECF_DEVICE=cuda leaves those that work on that device; with `-m "slow or not slow"` their wide
factors are compared, too.
"""

import pytest

from safecf.als.capabilities import CAPABILITIES
from tests.agreement.placed import FAST, FOR_A_GPU


def pytest_generate_tests(metafunc):
    """Run a test that asks for `native` for all backends with the capability its module `NEEDS`."""
    if "native" in metafunc.fixturenames:
        needed = getattr(metafunc.module, "NEEDS", "half-steps")
        [kind] = [kind for kind, name in CAPABILITIES.items() if name == needed]
        found = [each for each in FAST if isinstance(each, kind)]
        metafunc.parametrize("native", found, ids=repr, scope="session")


def pytest_runtest_setup(item):
    asked = item.callspec.params if hasattr(item, "callspec") else {}
    native, solver = asked.get("native"), asked.get("solver")
    if native is not None and solver is not None and solver.name not in native.row_solvers:
        pytest.skip(f"{native!r} has no solver {solver.name!r}")
    if asked.get("d") in FOR_A_GPU and "cuda" not in repr(native):
        pytest.skip("factors that wide are for a GPU")
