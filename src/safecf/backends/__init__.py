"""Backends: who carries out the verbs of `safecf.als.backend`. A new one is a folder and a line."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from safecf.als.backend import CAPABILITIES
from safecf.errors import choose

# By name: what makes a backend, given the number of threads; or where that is, as "module:name",
# imported when it is asked for, so that a backend may need what is not always installed.
BACKENDS: dict[str, str | Callable[[int], Any]] = {
    "auto": "safecf.backends.cpu:CpuBackend",
    "cpu": "safecf.backends.cpu:CpuBackend",
    "numpy": "safecf.backends.numpy:NumpyBackend",
}


def make_backend(name: str, num_threads: int = 0, needs: Mapping[type, str] | None = None) -> Any:
    """Return the backend called `name`; `num_threads` = 0 means all cores.

    `needs` are the capabilities that it has to have, and who needs each: an error says which
    backends have it.
    """
    backend = find_backend(name)(num_threads)
    for capability, who in (needs or {}).items():
        if not isinstance(backend, capability):
            able = [each for each in registered() if isinstance(find_backend(each)(0), capability)]
            raise NotImplementedError(
                f"{who} needs {CAPABILITIES[capability]}, which backend {backend.name!r} does not "
                f"have; try backend={' or '.join(map(repr, able))}"
            )
    return backend


def find_backend(name: str) -> Any:
    """Return what makes the backend called `name`, usually a class."""
    found = choose("backend", name, BACKENDS)
    if not isinstance(found, str):
        return found
    module, kind = found.split(":")
    return getattr(import_module(module), kind)


def registered() -> list[str]:
    """Return the names of all backends."""
    return [name for name in BACKENDS if name != "auto"]
