"""Single-threaded BLAS, for reproducible results."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from safecf.errors import SolveError

_lock = threading.Lock()
_inside = 0
_limit: Any = None
if hasattr(os, "register_at_fork"):  # no child is born while another thread holds the lock
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def _take_control() -> None:
    """Let this thread set the limit: threadpoolctl grants that to one thread of the process."""
    for library in _controller().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Run numpy's and scipy's linear algebra on one thread while the context lasts.

    The limit is the whole process's: the first thread to come in sets it, the last one to leave
    restores what was there.
    """
    global _inside, _limit  # noqa: PLW0603 - what they count is the process's, too
    with _lock:
        if _inside == 0:
            _take_control()
            _limit = _controller().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _take_control()
                _limit.restore_original_limits()
                _take_control()


def eigenbasis(gram: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the eigenvalues of G, and its eigenvectors in columns.

    The lowest one is negative by rounding alone: those that are as small are raised to its size.
    """
    if not np.isfinite(gram).all():
        raise SolveError.of_gramian()
    with single_threaded_blas():
        values, basis = scipy.linalg.eigh(np.asarray(gram, dtype=np.float64))
    return np.maximum(values, max(-values[0], 0)), basis
