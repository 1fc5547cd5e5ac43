"""Linear algebra whose bits do not depend on the number of threads."""

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

from safecf import _core
from safecf.errors import SolveError

# Up to this many factors LAPACK on one thread is as fast as the native solver.
LAPACK_FACTORS = 128

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


def eigenbasis(
    gram: NDArray[Any], execution: _core.Execution | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the eigenvalues of G = Q diag(values) Q', ascending, and its eigenvectors Q.

    With an `execution`, large matrices are solved natively on its threads, whose number changes no
    bit; all others by LAPACK on one thread. The lowest eigenvalue is negative by rounding alone:
    those that are as small are raised to its size.
    """
    if not np.isfinite(gram).all():
        raise SolveError.of_gramian()
    double = np.ascontiguousarray(gram, dtype=np.float64)
    if execution is None or len(double) <= LAPACK_FACTORS:
        with single_threaded_blas():
            values, basis = scipy.linalg.eigh(double)
    else:
        values, basis = np.empty(len(double)), np.empty_like(double)
        _core.eigen(double, values, basis, execution)
    return np.maximum(values, max(-values[0], 0)), basis
