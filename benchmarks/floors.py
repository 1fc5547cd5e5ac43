"""The machine's own limits, and the least time that they leave for an epoch."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from benchmarks.clock import Step, timed
from safecf.als.solvers import CG, Exact, Solver, Subspace
from safecf.data.matrices.interactions import Interactions

Lengths = NDArray[np.int64]
GEMM = 2048  # rows and columns of the product
COPY = 2**28  # bytes
GATHERED = 2**28  # bytes
ONE = (1.0, 1.0)
EIGEN = 20 / 3  # flops by d^3 of two eigendecompositions
CHUNK = 2**17  # bytes that one call copies, so that they stay in the second-level cache
BAG = 64  # rows that are summed up


@dataclass(frozen=True)
class Limits:
    """float32 GEMM in flop/s, copy in bytes/s (read and written), both with so many threads."""

    threads: int
    gemm: float
    copy: float

    @classmethod
    def measure(cls, threads: int) -> "Limits":
        """Take the best of several runs of numpy's product and copy."""
        rng = np.random.default_rng(0)
        a, b = rng.random((2, GEMM, GEMM), dtype=np.float32)
        out = np.empty_like(a)
        with threadpoolctl.threadpool_limits(threads, "blas"):
            product = best(lambda: np.matmul(a, b, out=out))
        source = np.ones((COPY // 2**15, 2**12))
        target = np.zeros_like(source)

        def copy(part: int) -> None:
            np.copyto(target[part::threads], source[part::threads])

        copied = best(lambda: in_threads(copy, threads))
        return cls(threads, 2 * GEMM**3 / product, 2 * COPY / copied)


Gather = Callable[[NDArray[Any], NDArray[np.int64], int], Callable[[], Any]]


def gather(rows: int, factors: int, threads: int, itemsize: int, by: Gather) -> float:
    """Bytes/s of reading random rows of a matrix.

    All rows are equally likely: a kernel that finds popular ones in a cache may be faster.
    """
    matrix = np.ones((rows, factors), dtype={2: np.float16, 4: np.float32}[itemsize])
    count = max(BAG, GATHERED // (itemsize * factors) // BAG * BAG)
    ids = np.random.default_rng(0).integers(rows, size=count)
    return count * factors * itemsize / best(by(matrix, ids, threads))


def bags(matrix: NDArray[Any], ids: NDArray[np.int64], threads: int) -> Callable[[], Any]:
    """Sum rows up by PyTorch's `embedding_bag`, whose threads do not wait for each other."""
    import torch  # noqa: PLC0415 - may be missing

    torch.set_num_threads(threads)
    rows, own = torch.from_numpy(matrix), torch.from_numpy(ids.reshape(-1, BAG))
    return lambda: torch.nn.functional.embedding_bag(own, rows, mode="sum")


def takes(matrix: NDArray[Any], ids: NDArray[np.int64], threads: int) -> Callable[[], Any]:
    """Copy rows by numpy's `take` into a small buffer of each thread."""
    chunk = max(1, CHUNK // matrix[0].nbytes)
    buffers = np.empty((threads, chunk, matrix.shape[1]), dtype=matrix.dtype)

    def read(part: int) -> None:
        own = ids[part::threads]
        for first in range(0, len(own), chunk):
            some = own[first : first + chunk]
            np.take(matrix, some, axis=0, out=buffers[part, : len(some)], mode="clip")

    return lambda: in_threads(read, threads)


def best(step: Step, repeats: int = 5, wait: Step | None = None) -> float:
    """Return the least seconds of several calls, after one that does not count."""
    step()
    return min(timed(step, wait) for _ in range(repeats))


def in_threads(step: Callable[[int], None], threads: int) -> None:
    """Call the step with 0, 1, ..., each in a thread of its own."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(step, range(threads)))


@dataclass(frozen=True)
class Work:
    """What an epoch cannot do without: flops of products, flops and gathered bytes of each side."""

    products: float
    passes: tuple[float, float]
    gathered: tuple[float, float]
    itemsize: int

    def seconds(self, limits: Limits, gathers: Sequence[float]) -> dict[str, float]:
        """Return the floor: products at GEMM speed, then each side by what takes longer.

        `gathers` are the bytes/s of random rows of the items, which the users read, and of the
        users, which the items read. Passes count at GEMM speed as well.
        """
        found = {"products": self.products / limits.gemm}
        sides = zip(("users", "items"), self.passes, self.gathered, gathers, strict=True)
        for side, flops, size, speed in sides:
            found[side] = max(flops / limits.gemm, size / speed)
        return found | {"total": sum(found.values())}


def epoch_work(
    users: Lengths, items: Lengths, factors: int, solver: Solver, steps: tuple[float, float]
) -> Work:
    """Count the work of an epoch, given the lengths of all rows; n is a row's, d the factors.

    Products, in flops:

    - Gramians of both sides, half of them by symmetry: d^2 per row;
    - rotations: both sides into the eigenbasis of each half-step's Gramian, where one product
      leads from the last basis into the next: 2 x 2 d^2 per row;
    - two eigendecompositions, 10/3 d^3 each: to tridiagonal form and back.

    Passes over the gathered rows of a side, where scores are 2 n d and sums of rows 2 n d too:

    - spectral CG: scores at the start (they give the losses as well), the first residual and the
      squares of the preconditioner, 6 n d; then 4 n d for each of the `steps`;
    - CG: the same without the preconditioner;
    - exact: scores and right side, 4 n d, and the smaller of the systems: n d^2 + d^3/3 (primal)
      or n^2 d + n^3/3 (dual);
    - subspace: scores, their updates and right sides, 6 n d, and for each of the d/B blocks a
      system of that kind with B in place of d. Its products are the Gramian, G_pi. x, 2 d^2 per
      row, and rotations within the blocks, 2 d B per row.

    Gathered bytes: every row of the fixed side that is asked for, once per half-step: 2 bytes per
    coordinate for solvers that read them as bfloat16, 4 for the others.
    """
    d, rows = factors, users.size + items.size
    entries = float(users.sum())
    sides = (users.astype(np.float64), items.astype(np.float64))
    size = 2 if solver.is_rough else 4
    if isinstance(solver, Subspace):
        block = min(solver.block_size, d)
        products = rows * (3 * d**2 + 2 * d * block) + 10 / 3 * d * block**2
        passes = [6 * entries * d + d / block * _systems(side, block) for side in sides]
    else:
        products = 5 * rows * d**2 + EIGEN * d**3
        if isinstance(solver, Exact):
            passes = [4 * entries * d + _systems(side, d) for side in sides]
        else:
            setup = 4 if isinstance(solver, CG) else 6
            passes = [(setup + 4 * count) * entries * d for count in steps]
    return Work(float(products), (passes[0], passes[1]), (size * entries * d,) * 2, size)


def _systems(lengths: NDArray[np.float64], d: int) -> float:
    """Flops of building and solving every row's system in its cheaper form."""
    primal = lengths * d**2 + d**3 / 3
    dual = lengths**2 * d + lengths**3 / 3
    return float(np.minimum(primal, dual).sum())


def epoch_floor(
    interactions: Interactions,
    factors: int,
    limits: Limits,
    solver: Solver,
    steps: tuple[float, float] = ONE,
    by: Gather = takes,
) -> dict[str, Any]:
    """Return the floor in seconds by part, with the flops and the gather speeds it is made from.

    `steps` are those of CG for users and items; `least` is the whole floor with one step each.
    """
    users, items = (np.diff(side.indptr) for side in (interactions.users, interactions.items))
    work, least = (epoch_work(users, items, factors, solver, each) for each in (steps, ONE))
    gathers = [
        gather(rows, factors, limits.threads, work.itemsize, by)
        for rows in (items.size, users.size)
    ]
    return work.seconds(limits, gathers) | {
        "least": least.seconds(limits, gathers)["total"],
        "flops": work.products + sum(work.passes),
        "of_items": gathers[0],
        "of_users": gathers[1],
    }
