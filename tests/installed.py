"""The backends whose libraries are installed here."""

from contextlib import suppress

from safecf.backends import find_backend, registered

with suppress(ImportError):
    import torch

    torch.set_num_threads(1)  # tests run in several processes


def backend_kinds():
    """Return what makes a backend, by name; `tests/backends/test_torch.py` says what is missing."""
    found = {}
    for name in registered():
        try:
            found[name] = find_backend(name)
        except ImportError:
            continue
    return found
