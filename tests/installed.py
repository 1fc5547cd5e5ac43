"""The backends whose libraries are installed here."""

import os
from contextlib import suppress

import pytest

from safecf.backends import best_device, find_backend, registered

with suppress(ImportError):
    import torch

    torch.set_num_threads(1)  # tests run in several processes

# Where Triton's kernels run.
KERNEL_DEVICE = "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "cuda"

# What tests of the PyTorch backend are run on.
GPU = pytest.mark.skipif(best_device() != "cuda", reason="PyTorch finds no GPU here")
DEVICES = ["cpu", pytest.param("cuda", marks=GPU)]


def backend_kinds():
    """Return what makes a backend, by name; `tests/backends/test_torch.py` says what is missing."""
    found = {}
    for name in registered():
        try:
            found[name] = find_backend(name)
        except ImportError:
            continue
    return found
