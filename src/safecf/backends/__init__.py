"""Backends: providers of `safecf.als.capabilities`. A new one is a folder and a line."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from safecf.als.capabilities import CAPABILITIES
from safecf.errors import choose, shown

# More threads than cores gain nothing, and thousands of them end the process.
MOST_THREADS = 16

# By name: what makes a backend, given the number of threads; or where that is, as "module:name",
# imported when it is asked for, so that a backend may need what is not always installed.
BACKENDS: dict[str, str | Callable[[int], Any]] = {
    "auto": "safecf.backends.cpu:CpuBackend",
    "cpu": "safecf.backends.cpu:CpuBackend",
    "numpy": "safecf.backends.numpy:NumpyBackend",
    "torch": "safecf.backends.torch:TorchBackend",
}

# By module: how to install it, where that is not its name.
EXTRAS = {"torch": "'safecf[torch]'"}


def make_backend(
    name: str,
    num_threads: int = 0,
    needs: Mapping[type, str] | None = None,
    solvers: Mapping[str, str] | None = None,
    device: str = "auto",
) -> Any:
    """Return the backend called `name`; `num_threads` = 0 means all cores.

    It has at most `thread_count` of them. On a GPU, "auto" is "torch".
    `needs` are the capabilities, and `solvers` the row solvers, that it has to have, each with who
    needs it. An error says which backends have it.
    """
    if name == "auto" and device.startswith("cuda"):
        name = "torch"
    kind = find_backend(name)
    if getattr(kind, "has_devices", False):
        backend = kind(thread_count(num_threads), device)
    elif device in ("auto", "cpu"):
        backend = kind(thread_count(num_threads))
    else:
        raise ValueError(
            f"device={shown(device)}: backend={name!r} works on the CPU; try backend='torch', or "
            "leave out device"
        )
    for capability, who in (needs or {}).items():
        _require(backend, who, CAPABILITIES[capability], partial(_has_capability, capability))
    for solver, who in (solvers or {}).items():
        _require(backend, who, f"the row solver {solver!r}", partial(_has_solver, solver))
    return backend


def best_device() -> str:
    """Return "cuda" if PyTorch is installed, works, and finds a GPU, else "cpu"."""
    if find_spec("torch") is None:
        return "cpu"
    try:
        found: str = import_module("safecf.backends.torch.devices").devices_here()[-1]
    except (ImportError, OSError):  # a library of PyTorch's is missing: `safecf doctor` tells
        return "cpu"
    return found


def thread_count(num_threads: int) -> int:
    """Return the number of threads that an option means: 0 is all cores, and no more than 16.

    Where there are more cores, no more than these.

    >>> thread_count(10**9)
    16
    """
    cores = os.cpu_count() or 1
    return min(int(num_threads) or cores, max(cores, MOST_THREADS))


def _has_capability(capability: type, backend: Any) -> bool:
    return isinstance(backend, capability)


def _has_solver(solver: str, backend: Any) -> bool:
    return solver in getattr(backend, "row_solvers", ())


def _require(backend: Any, who: str, what: str, has_it: Callable[[Any], bool]) -> None:
    if has_it(backend):
        return
    others = [name for name in registered() if _can(name, has_it)]
    remedy = f"try backend={' or '.join(map(repr, others))}" if others else "no other one has it"
    raise NotImplementedError(
        f"{who} needs {what}, which backend {backend.name!r} does not have; {remedy}"
    )


def _can(name: str, has_it: Callable[[Any], bool]) -> bool:
    """Whether a backend can be made here, and has what is needed."""
    try:
        return has_it(find_backend(name)(1))
    except Exception:  # not installed, or no such device
        return False


def find_backend(name: str) -> Any:
    """Return what makes the backend called `name`, usually a class."""
    found = choose("backend", name, BACKENDS)
    if callable(found):
        return found
    if not isinstance(found, str):
        raise TypeError(
            f"backend {name!r} is registered as {shown(found)}; register a class, a function, or "
            'where it is, as "module:name"'
        )
    module, _, kind = found.partition(":")
    try:
        made = getattr(import_module(module), kind)
    except ModuleNotFoundError as problem:
        package = EXTRAS.get(problem.name or "", problem.name)
        raise ImportError(
            f"backend {name!r} needs {problem.name}, which is not installed; try pip install "
            f"{package}, or backend='auto'"
        ) from problem
    except (AttributeError, ValueError):
        made = None
    if not callable(made):
        raise ImportError(
            f"backend {name!r} is registered as {shown(found)}, where there is no class or "
            "function; register it as \"module:name\", or try backend='auto'"
        )
    return made


def registered() -> list[str]:
    """Return the names of all backends."""
    return [name for name in BACKENDS if name != "auto"]
