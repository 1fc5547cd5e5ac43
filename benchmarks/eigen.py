"""The eigensolver of Gramians beside LAPACK's on one thread."""

import os
from typing import Any

import numpy as np
import scipy.linalg
import threadpoolctl
from numpy.typing import NDArray

from benchmarks import report
from benchmarks.floors import best
from benchmarks.records import Options, progress
from benchmarks.report import short
from safecf import _core

FACTORS = (256, 512, 1024, 2048)
THREADS = (1, 2, 4, 8, 16)
DRIVERS = {"evr": "relatively robust representations", "evd": "divide and conquer"}


def measure(options: Options) -> dict[str, Any]:
    """Time Gramians of random factors: LAPACK on one thread, ours on 1 to all cores."""
    cores = len(os.sched_getaffinity(0))
    found = []
    for factors in FACTORS:
        d = options.factors(factors)
        gram = _gramian(d)
        seconds = {}
        with threadpoolctl.threadpool_limits(1, "blas"):
            for driver in DRIVERS:
                seconds[driver] = best(lambda: scipy.linalg.eigh(gram, driver=driver), 3)  # noqa: B023
        for threads in (each for each in THREADS if each <= cores):
            seconds[str(threads)] = best(lambda: _native(gram, threads))  # noqa: B023
        values, basis = _native(gram, cores)
        residual = np.linalg.norm(gram @ basis - basis * values) / np.linalg.norm(gram)
        orthogonal = np.linalg.norm(basis.T @ basis - np.eye(d))
        progress(f"d = {d}: {seconds}")
        found.append({"d": d, "seconds": seconds, "errors": [float(residual), float(orthogonal)]})
    return {"found": found}


def _gramian(d: int) -> NDArray[np.float64]:
    factors = np.random.default_rng(0).normal(size=(3 * d, d)) * np.arange(1, d + 1) ** -0.5
    return (factors.T @ factors).astype(np.float32).astype(np.float64)


def _native(
    gram: NDArray[np.float64], threads: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    values, basis = np.empty(len(gram)), np.empty_like(gram)
    _core.eigen(gram, values, basis, _core.Execution(threads))
    return values, basis


def section(results: dict[str, Any], options: Options) -> list[str]:
    """Write the milliseconds."""
    found = results["found"]
    columns = list(found[0]["seconds"])
    header = [name if name in DRIVERS else f"{name} threads" for name in columns]
    rows = [
        [
            str(each["d"]),
            *(short(1e3 * each["seconds"][column]) for column in columns),
            *(f"{error:.0e}" for error in each["errors"]),
        ]
        for each in found
    ]
    return [
        "Milliseconds of all eigenvalues and eigenvectors of a Gramian in float64, the best of "
        "several runs: scipy's `eigh` on one thread, by LAPACK's drivers evr "
        f"({DRIVERS['evr']}) and evd ({DRIVERS['evd']}), and ours, whose bits are the same for "
        "any number of threads. An epoch needs two of them. |G Q - Q diag| / |G| and |Q'Q - I| are "
        "ours.",
        report.table(["d", *header, "residual", "not orthogonal"], rows),
    ]
