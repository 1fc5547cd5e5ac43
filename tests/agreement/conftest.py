"""The native backend, once with the kernels of every instruction set that the machine has."""

import pytest

from safecf import _core
from safecf.backends import CpuBackend


@pytest.fixture(params=_core.isas())
def native(request):
    return CpuBackend(num_threads=2, isa=request.param)
