"""The eigensolver of Gramians beside LAPACK's on one thread."""

import numpy as np
import scipy.linalg
import threadpoolctl
from numpy.typing import NDArray

from benchmarks.floors import best
from benchmarks.harness import Found, Row, Size
from reproduction.store import cores
from safecf import _core

Matrix = NDArray[np.float64]
DRIVERS = ("evr", "evd")  # relatively robust representations; divide and conquer


def measure(size: Size, factors: list[int], threads: list[int]) -> Found:
    """Time Gramians of random factors: LAPACK on one thread, ours on 1 to all cores."""
    counts = [each for each in threads if each <= cores()]
    yield "setting", {"threads": counts}
    for d in sorted({size.factors(each) for each in factors}):
        gram = _gramian(d)
        row: Row = {"factors": d}
        with threadpoolctl.threadpool_limits(1, "blas"):
            for driver in DRIVERS:
                row[driver] = best(lambda: scipy.linalg.eigh(gram, driver=driver), 3)  # noqa: B023
        row["threads"] = {f"n{n}": best(lambda: _native(gram, n)) for n in counts}  # noqa: B023
        values, basis = _native(gram, counts[-1])
        residual = np.linalg.norm(gram @ basis - basis * values) / np.linalg.norm(gram)
        orthogonal = np.linalg.norm(basis.T @ basis - np.eye(d))
        row |= {"residual": float(residual), "orthogonal": float(orthogonal)}
        yield "seconds", row


def _gramian(d: int) -> Matrix:
    factors = np.random.default_rng(0).normal(size=(3 * d, d)) * np.arange(1, d + 1) ** -0.5
    return (factors.T @ factors).astype(np.float32).astype(np.float64)


def _native(gram: Matrix, threads: int) -> tuple[Matrix, Matrix]:
    values, basis = np.empty(len(gram)), np.empty_like(gram)
    _core.eigen(gram, values, basis, _core.Execution(threads))
    return values, basis
