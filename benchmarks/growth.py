"""How time and memory of training grow with the threads, with d and with the interactions."""

import statistics
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse
import threadpoolctl

from benchmarks.clock import timed
from benchmarks.floors import ONE, Limits, bags, epoch_floor, takes
from benchmarks.harness import Found, Row, Size
from benchmarks.matrices import SHAPES, long_tailed, setting_of
from benchmarks.memory import expected_bytes, fits, train_apart
from benchmarks.peers import SETTINGS, Rival, Safecf, flat, implicit, installed, paper
from reproduction.store import cores
from safecf.als.solvers import SpectralCG
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.interactions import Interactions

BEFORE = 2  # epochs before the clock starts
LARGE = 1024  # from here on two epochs have to do


def by_threads(size: Size, cases: list[Row]) -> Found:
    """Time epochs of SAFER2 with every number of threads, and of implicit with the most.

    A case has a shape, d, the numbers of threads, and the epochs after the first two.
    """
    yield "setting", {"epochs": max(case["epochs"] for case in cases), "before": BEFORE}
    yield "implicit", []
    limits = {
        threads: Limits.measure(threads)
        for threads in sorted({min(count, cores()) for case in cases for count in case["threads"]})
    }
    for case in cases:
        matrix = long_tailed(*size.shape(*SHAPES[case["shape"]]))
        interactions, d = Interactions.from_csr(matrix), size.factors(case["factors"])
        name: Row = {"shape": case["shape"], "factors": d}
        seconds: list[float] = []
        for threads in sorted({min(count, cores()) for count in case["threads"]}):
            row = name | {"threads": threads}
            if fits(matrix, d, threads):
                rival = Safecf(paper(row["shape"], d), interactions, CpuBackend(threads))
                seconds.append(_median(rival, BEFORE, case["epochs"]))
                row |= {"seconds": seconds[-1], "steps": rival.seconds_by_step(case["epochs"])}
                row["speed_up"] = seconds[0] / seconds[-1]
                del rival
                by, solver = bags if find_spec("torch") else takes, SpectralCG()
                floor = epoch_floor(interactions, d, limits[threads], solver, ONE, by)["total"]
                row |= {"floor": floor, "over": row["seconds"] / floor}
            yield "cases", row
        if seconds and case["peer"] and installed("implicit"):
            peer = implicit(flat(interactions, d), interactions, threads)
            with threadpoolctl.threadpool_limits(1, "blas"):  # what it advises
                taken = _median(peer, 1, case["epochs"])
            found = {"name": peer.name, "threads": threads, "seconds": taken}
            yield "implicit", name | found | {"ratio": taken / seconds[-1]}


def _median(rival: Rival, before: int, epochs: int) -> float:
    """Return the median seconds of epochs, after others that do not count."""
    for _ in range(before):
        rival.epoch()
    return statistics.median([timed(rival.epoch) for _ in range(epochs)])


def of_training(size: Size, usual: int, factors: list[int], shares: list[float]) -> Found:
    """Train with each d, each share of the interactions and each number of threads.

    `usual` is d where the others change.
    """
    whole, middle = long_tailed(*size.shape(*SHAPES["ml-20m"])), size.factors(usual)
    yield "setting", setting_of(whole, factors=middle, threads=size.threads, large=LARGE)
    counts = sorted({min(2**power, cores()) for power in range(cores().bit_length() + 1)})
    limits = {threads: Limits.measure(threads) for threads in {*counts, size.threads}}
    for d in sorted({size.factors(d) for d in factors}):
        yield "cases", {"axis": "factors"} | _train_apart(whole, d, limits[size.threads])
    for share in shares:
        part = whole.copy()
        kept = np.random.default_rng(0).random(whole.nnz) < share
        part.data = kept.astype(part.data.dtype)
        part.eliminate_zeros()
        yield "cases", {"axis": "interactions"} | _train_apart(part, middle, limits[size.threads])
    for threads in counts:
        if threads != size.threads:
            yield "cases", {"axis": "threads"} | _train_apart(whole, middle, limits[threads])


def _train_apart(matrix: scipy.sparse.csr_matrix, factors: int, limits: Limits) -> Row:
    """Measure in a process of its own, unless the memory does not allow it."""
    threads = limits.threads
    case: Row = {"factors": factors, "interactions": int(matrix.nnz), "threads": threads}
    case["formula"] = expected_bytes(matrix, factors, threads)
    if not fits(matrix, factors, threads):
        return case
    epochs = 2 if factors >= LARGE else 4
    case |= train_apart(matrix, factors, threads, epochs, SETTINGS["ml-20m"])
    floor = epoch_floor(Interactions.from_csr(matrix), factors, limits, SpectralCG())["total"]
    return case | {"floor": floor, "over": case["seconds"] / floor}


def by_solver(
    size: Size, shape: list[int], factors: list[int], epochs: int, solvers: dict[str, Any]
) -> Found:
    """Time the epochs of every solver with every d, and compare what they have reached."""
    matrix = long_tailed(*size.shape(*shape))
    yield "setting", setting_of(matrix, threads=size.threads, epochs=epochs)
    interactions = Interactions.from_csr(matrix)
    options = {"num_threads": size.threads, "backend": "cpu", "random_state": 0}
    for d in sorted({size.factors(d) for d in factors}):
        for name, solver in solvers.items():
            model = paper("ml-20m", d, iterations=epochs, **options, **solver)
            with threadpoolctl.threadpool_limits(1, "blas"):
                model.fit(interactions, show_progress=False)
            times = [sum(record.seconds.values()) for record in model.history[1:]]
            row: Row = {"factors": d, "solver": name, "seconds": statistics.median(times)}
            yield "solvers", row | {"objective": model.history[-1].objective}
