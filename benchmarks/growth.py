"""How time and memory of training grow with the threads, with d and with the interactions."""

import statistics
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import threadpoolctl

from benchmarks.clock import timed
from benchmarks.floors import Limits, bags, epoch_floor, takes
from benchmarks.harness import Row, Size, Tables, progress
from benchmarks.matrices import SHAPES, long_tailed, setting_of
from benchmarks.memory import expected_bytes, fits, train_apart
from benchmarks.peers import SAFER2 as SETTINGS
from benchmarks.peers import Flat, Implicit, installed, safer2
from reproduction.store import cores
from safecf.als.solvers import Exact, Solver, SpectralCG, Subspace
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.interactions import Interactions


class Case(NamedTuple):
    """A shape, d, the numbers of threads, the epochs after the first two, and whether implicit."""

    shape: str
    factors: int
    threads: tuple[int, ...]
    epochs: int
    peer: bool = False


THREADS = (
    Case("ml-20m", 256, (1, 2, 4, 8, 16), 3, peer=True),
    Case("msd", 512, (4, 16), 3, peer=True),
    Case("msd", 2048, (16,), 1),
)
BEFORE = 2  # epochs before the clock starts
SHAPE, FACTORS = "ml-20m", 256
ALL_FACTORS = (64, 128, 256, 512, 1024, 2048, 4096)
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2)  # and all of them
LARGE = 1024  # from here on two epochs have to do
# an eighth of the shape of ML-20M, for every solver
SOLVERS_SHAPE, SOLVERS_FACTORS, SOLVERS_EPOCHS = (
    (15_000, 5_000, 1_040_000),
    (64, 256, 1024, 2048),
    4,
)
SOLVERS: dict[str, Solver] = {
    "exact": Exact(),
    "spectral CG, 1e-3": SpectralCG(1e-3),
    "subspace, blocks of 32": Subspace(32),
    "subspace, blocks of 64": Subspace(64),
    "subspace, blocks of 128": Subspace(128),
}


def by_threads(size: Size) -> Tables:
    """Time epochs of SAFER2 with every number of threads, and of implicit with the most."""
    rows: list[Row] = []
    beside = []
    limits = {
        threads: Limits.measure(threads)
        for threads in sorted({min(count, cores()) for case in THREADS for count in case.threads})
    }
    for case in THREADS:
        matrix = long_tailed(*size.shape(*SHAPES[case.shape]))
        interactions, d = Interactions.from_csr(matrix), size.factors(case.factors)
        name: Row = {"shape": case.shape, "factors": d}
        counts = sorted({min(count, cores()) for count in case.threads})
        own = [name | _epochs(case, interactions, d, limits[count]) for count in counts]
        first, last = own[0].get("seconds"), own[-1].get("seconds")
        for row in own:
            if first and "seconds" in row:
                row["speed_up"] = first / row["seconds"]
        rows += own
        if case.peer and installed("implicit"):
            beside.append(name | _implicit(case, matrix, interactions, d, counts[-1]))
            beside[-1]["ratio"] = beside[-1]["seconds"] / last if last else None
    setting = {"epochs": max(case.epochs for case in THREADS), "before": BEFORE}
    return {"setting": [setting], "cases": rows, "implicit": beside}


def _epochs(case: Case, interactions: Interactions, d: int, limits: Limits) -> Row:
    """Time one number of threads, unless the memory does not allow it."""
    users, items, nnz = interactions.num_users, interactions.num_items, interactions.nnz
    found: Row = {"threads": limits.threads}
    need = expected_bytes(users, items, nnz, d, limits.threads)
    if not fits(need):
        progress(f"{case.shape}, d = {d}: left out, {need / 2**30:.0f} GiB are not free")
        return found
    rival = safer2(case.shape, interactions, SpectralCG(), d, CpuBackend(limits.threads))
    for _ in range(BEFORE):
        rival.epoch()
    seconds = statistics.median([timed(rival.epoch) for _ in range(case.epochs)])
    found |= {"seconds": seconds, "steps": rival.seconds_by_step(case.epochs)}
    del rival
    by = bags if find_spec("torch") else takes
    floor = epoch_floor(interactions, d, SpectralCG(), limits, by=by)["total"]
    progress(f"{case.shape}, d = {d}, {limits.threads} threads: {seconds:.3f} s, floor {floor:.3f}")
    return found | {"floor": floor, "over": seconds / floor}


def _implicit(case: Case, matrix: Any, interactions: Interactions, d: int, threads: int) -> Row:
    flat = Flat.like_ials(matrix)
    rival = Implicit(flat, flat.problem(interactions), d, threads)
    with threadpoolctl.threadpool_limits(1, "blas"):  # what it advises
        rival.epoch()
        seconds = statistics.median([timed(rival.epoch) for _ in range(case.epochs)])
    return {"name": rival.name, "threads": threads, "seconds": seconds}


def of_training(size: Size) -> Tables:
    """Train with each d, each share of the interactions and each number of threads."""
    whole, middle = long_tailed(*size.shape(*SHAPES[SHAPE])), size.factors(FACTORS)
    counts = sorted({min(2**power, cores()) for power in range(cores().bit_length() + 1)})
    limits = {threads: Limits.measure(threads) for threads in {*counts, size.threads}}
    usual = _train_apart(whole, middle, limits[size.threads])
    rows = [
        {"axis": "factors"}
        | (usual if d == middle else _train_apart(whole, d, limits[size.threads]))
        for d in sorted({size.factors(d) for d in ALL_FACTORS})
    ]
    for share in SHARES:
        case = _train_apart(_share(whole, share), middle, limits[size.threads])
        rows.append({"axis": "interactions"} | case)
    for threads in counts:
        if threads != size.threads:
            rows.append({"axis": "threads"} | _train_apart(whole, middle, limits[threads]))
    setting = setting_of(whole, factors=middle, threads=size.threads, large=LARGE)
    return {"setting": [setting], "cases": rows}


def _share(matrix: scipy.sparse.csr_matrix, share: float) -> scipy.sparse.csr_matrix:
    """Keep a random share of the interactions, and all rows and columns."""
    part = matrix.copy()
    part.data = (np.random.default_rng(0).random(matrix.nnz) < share).astype(part.data.dtype)
    part.eliminate_zeros()
    return part


def _train_apart(matrix: scipy.sparse.csr_matrix, factors: int, limits: Limits) -> Row:
    """Measure in a process of its own, unless the memory does not allow it."""
    threads = limits.threads
    formula = expected_bytes(*matrix.shape, matrix.nnz, factors, threads)
    case: Row = {"factors": factors, "interactions": int(matrix.nnz), "threads": threads}
    case["formula"] = formula
    name = f"d = {factors}, {matrix.nnz:,} interactions, {threads} threads"
    if not fits(formula + 2 * matrix.data.nbytes):
        progress(f"{name}: left out, {formula / 2**30:.0f} GiB are not free")
        return case
    epochs = 2 if factors >= LARGE else 4
    case |= train_apart(matrix, "SAFER2", factors, threads, epochs, SETTINGS["ml-20m"])
    floor = epoch_floor(Interactions.from_csr(matrix), factors, SpectralCG(), limits)["total"]
    progress(f"{name}: {case['seconds']:.2f} s, floor {floor:.2f} s")
    return case | {"floor": floor, "over": case["seconds"] / floor}


def by_solver(size: Size) -> Tables:
    """Time the epochs of every solver with every d, and compare what they have reached."""
    matrix, rows = long_tailed(*size.shape(*SOLVERS_SHAPE)), []
    make = partial(safer2, "ml-20m", Interactions.from_csr(matrix))
    with threadpoolctl.threadpool_limits(1, "blas"):
        for d in sorted({size.factors(d) for d in SOLVERS_FACTORS}):
            for name, solver in SOLVERS.items():
                rival = make(solver, d, CpuBackend(size.threads))
                for _ in range(SOLVERS_EPOCHS):
                    rival.epoch()
                times = [sum(record.seconds.values()) for record in rival.records[1:]]
                row: Row = {"factors": d, "solver": name, "seconds": statistics.median(times)}
                rows.append(row | {"objective": rival.records[-1].objective})
                progress(f"d = {d}, {name}: {row['seconds']:.3f} s")
    setting = setting_of(matrix, threads=size.threads, epochs=SOLVERS_EPOCHS)
    return {"setting": [setting], "solvers": rows}
