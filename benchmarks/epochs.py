"""Epochs of safecf beside those of its peers, on the same matrix, and the floor below them."""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import threadpoolctl

from benchmarks import report
from benchmarks.floors import Limits, epoch_floor
from benchmarks.matrices import SHAPES, long_tailed
from benchmarks.memory import expected_bytes, fits
from benchmarks.peers import Flat, Implicit, Irspack, Rival, Safecf, ials, safer2
from benchmarks.records import Options, progress
from benchmarks.report import short
from benchmarks.sampled import check
from safecf.als.solvers import CG, Exact, Solver, SpectralCG, Subspace
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.interactions import Interactions

# by shape: d, solvers of SAFER2, those of irspack, epochs before the clock starts
CASES: dict[str, tuple[int, list[Solver], list[str], int]] = {
    "ml-20m": (256, [SpectralCG(), Exact(), CG(), Subspace(64)], ["CG", "IALSPP"], 2),
    "msd": (512, [SpectralCG()], [], 2),
}
BASE = "implicit"
# what others report, on other machines
REPORTED = {
    "ml-20m": "Not measured here: the paper reports 3.45 seconds for SAFER2 on 96 cores. The "
    "authors' C++ took 37.0 seconds for SAFER2, 16.4 for SAFER2-CG and 14.0 for SAFER2++ on two "
    "cores of a machine on which implicit took 3.6.",
    "msd": "Not measured here: the paper reports 57.0 seconds for SAFER2 on 96 cores.",
}
STEPS = ("users", "items", "rotate", "losses", "quantile")
ABOUT = (
    "An epoch of safecf is losses, xi, weights and both half-steps; one of the peers is both "
    "half-steps. SAFER2 has the paper's settings for data of this shape. The IALS rows of all "
    "libraries minimise one objective from the same start (see time to quality). The errors "
    "are |x - exact| / |exact| of one more half-step of a sample of rows against float64 solves; "
    "SAFER2++ updates users and items block by block, where there is no such half-step, and iALS++ "
    "makes one pass over the blocks, which is not meant to solve the rows.",
    "The floor is the time that the work counted in `benchmarks/floors.py` takes at the machine's "
    "own limits, measured in the same process by numpy, the best of several runs: products at "
    "the speed of a float32 GEMM, each half-step by its flops or its gathered bytes, whichever "
    "takes longer. Random rows are gathered by `take`, from as many rows as the fixed side has, in "
    "the type that the solver reads; uniformly and without prefetching, so that real gathers may "
    "be faster, most of all where popular rows stay in a cache.",
)


def measure(options: Options, shape: str) -> dict[str, Any]:
    """Time alternating epochs on one shape."""
    limits = Limits.measure(options.threads)
    case = _case(shape, limits, options)
    return {"limits": asdict(limits), "repeats": options.repeats} | case


def _case(shape: str, limits: Limits, options: Options) -> dict[str, Any]:
    factors, solvers, peers, warm_up = CASES[shape]
    matrix, d = long_tailed(*options.shape(*SHAPES[shape])), options.factors(factors)
    case = {"shape": shape, "factors": d, "size": [*matrix.shape, matrix.nnz], "warm_up": warm_up}
    need = (len(solvers) + len(peers) + 2) * expected_bytes(
        *matrix.shape, matrix.nnz, d, options.threads
    )
    if not fits(need):
        progress(f"{shape}, d = {d}: left out, {need / 2**30:.0f} GiB are not free")
        return case | {"needs": need, "rivals": []}
    interactions = Interactions.from_csr(matrix)
    rivals = _rivals(shape, interactions, matrix, d, options.threads)
    with threadpoolctl.threadpool_limits(1, "blas"):
        for rival in rivals:
            for _ in range(warm_up):
                rival.epoch()
        seconds: dict[str, list[float]] = {rival.name: [] for rival in rivals}
        for _ in range(options.repeats):
            for rival in rivals:
                seconds[rival.name].append(timed(rival.epoch))
                progress(f"{shape}, d = {d}, {rival.name}: {seconds[rival.name][-1]:.2f} s")
        found = []
        while rivals:
            rival = rivals.pop(0)  # its memory goes with it
            progress(f"{shape}, d = {d}, {rival.name}: errors and floor")
            found.append(
                {"name": rival.name, "seconds": seconds[rival.name]}
                | _errors_and_floor(rival, d, limits, options.repeats)
            )
    return case | {"rivals": found}


def _rivals(
    shape: str, interactions: Interactions, matrix: Any, d: int, threads: int
) -> list[Rival]:
    _, solvers, peers, _ = CASES[shape]
    flat, cpu = Flat.like_ials(matrix), CpuBackend(threads)
    problem = flat.problem(interactions)
    rivals: list[Rival] = [safer2(shape, interactions, solver, d, cpu) for solver in solvers]
    rivals.append(ials(problem, SpectralCG(), d, cpu))
    rivals.append(Implicit(flat, problem, d, threads))
    rivals += [Irspack(flat, problem, d, threads, solver) for solver in peers]
    return rivals


def _errors_and_floor(rival: Rival, d: int, limits: Limits, repeats: int) -> dict[str, Any]:
    """Return the sampled errors, and for safecf the parts of its epochs and their floor."""
    solver = rival.solver if isinstance(rival, Safecf) else None
    iterative = solver if isinstance(solver, CG | SpectralCG) else None
    parts = rival.records[-repeats:] if isinstance(rival, Safecf) else []
    errors = check(rival, solver=iterative) if rival.alternates else []
    found: dict[str, Any] = {"errors": [side.error for side in errors]}
    if solver is None:
        return found
    found["parts"] = {
        name: statistics.median(record.seconds.get(name, 0.0) for record in parts) for name in STEPS
    }
    steps = (errors[0].steps, errors[1].steps) if iterative else None
    found["floor"] = epoch_floor(rival.problem.interactions, d, solver, limits, steps)
    return found


def timed(step: Callable[[], Any]) -> float:
    """Return the seconds of one call."""
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def section(results: dict[str, Any], options: Options) -> list[str]:
    """Write the table of all rivals, what our epochs consist of, and their floors."""
    users, items, nnz = results["size"]
    limits, gemm = results["limits"], results["limits"]["gemm"]
    intro = (
        f"{users:,} users x {items:,} items, {nnz:,} interactions, d = {results['factors']}, "
        f"{limits['threads']} threads: GEMM {gemm / 1e9:.0f} GFLOP/s, copy "
        f"{limits['copy'] / 1e9:.1f} GB/s read and written."
    )
    if not results["rivals"]:
        return [intro, f"Left out: {results['needs'] / 2**30:.0f} GiB were not free."]
    base = next(each for each in results["rivals"] if each["name"].startswith(BASE))
    header = ["", "seconds, median", "spread", f"{BASE} = 1", "error of users", "error of items"]
    rows, parts, floors = [], [], []
    for each in results["rivals"]:
        seconds = each["seconds"]
        median = statistics.median(seconds)
        ratio = median / statistics.median(base["seconds"])
        errors = [f"{error:.1e}" for error in each["errors"]] or ["-", "-"]
        spread = f"{short(min(seconds))} to {short(max(seconds))}"
        rows.append([each["name"], short(median), spread, f"{ratio:.2f}", *errors])
        if "parts" in each:
            parts.append(_parts(each, median))
            floors.append(_floor(each, median, gemm))
    of_epoch = [*STEPS, "losses and quantile, share"]
    of_floor = ["CG steps", "products", "users", "items", "floor", "measured / floor"]
    of_floor += ["with one step", "speed, GEMM = 1", "gathers, GB/s"]
    return [
        f"{intro} {results['repeats']} alternating repeats after {results['warm_up']} epochs.",
        report.table(header, rows),
        REPORTED[results["shape"]],
        "Seconds of our epochs by step, medians; `rotate` is Gramians, eigenvectors, rotations and "
        "rounding for both half-steps:",
        report.table(["", *of_epoch], parts),
        "Their floors in seconds, by part; the steps of CG are those that the sampled rows of "
        "users and items need, weighted by length; beside it, the floor with one step per row. The "
        "speed is counted flops by measured time against GEMM; the gathers are from the items, "
        "then from the users.",
        report.table(["", *of_floor], floors),
    ]


def _parts(each: dict[str, Any], median: float) -> list[str]:
    parts = each["parts"]
    share = (parts["losses"] + parts["quantile"]) / median
    return [each["name"], *(short(parts[name]) for name in STEPS), f"{share:.0%}"]


def _floor(each: dict[str, Any], median: float, gemm: float) -> list[str]:
    floor = each["floor"]
    seconds, work, steps = floor["seconds"], floor["work"], floor["steps"]
    counts = " / ".join(f"{count:.1f}" for count in steps) if steps else "-"
    cells = [short(seconds[name]) for name in ("products", "users", "items", "total")]
    least = short(floor["least"]["total"]) if steps else "-"
    speed = (work["products"] + sum(work["passes"])) / median / gemm
    gathers = " / ".join(f"{gather / 1e9:.1f}" for gather in floor["gathers"])
    ratio = f"{median / seconds['total']:.2f}"
    return [each["name"], counts, *cells, ratio, least, f"{speed:.2f}", gathers]
