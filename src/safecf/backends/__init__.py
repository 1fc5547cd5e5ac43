"""Backends: who carries out the verbs. A new one is one file and one line here."""

from collections.abc import Callable

from safecf.backends.base import Backend, Solved
from safecf.backends.cpu import CpuBackend
from safecf.backends.numpy_backend import NumpyBackend
from safecf.errors import choose

__all__ = ["BACKENDS", "Backend", "CpuBackend", "NumpyBackend", "Solved", "make_backend"]

BACKENDS: dict[str, Callable[[int], Backend]] = {
    "auto": CpuBackend,
    "cpu": CpuBackend,
    "numpy": lambda num_threads: NumpyBackend(),
}


def make_backend(name: str, num_threads: int = 0) -> Backend:
    """Return the backend called `name`; `num_threads` = 0 means all cores."""
    return choose("backend", name, BACKENDS)(num_threads)
