"""What executors do beside half-steps: draw the start, weigh users, send to other blocks.

All tasks are pure: a task that is run again gives the same bits. Factors travel and stay in the
basis in which they were drawn; a half-step is solved in the eigenbasis of its G.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safecf.als.loop import normals
from safecf.als.loss import Loss, Ridge, Vector
from safecf.als.population import Population, Smoothing, Sums
from safecf.als.risk import Risk
from safecf.als.solvers import RowSolver
from safecf.backends.cpu.native import CpuBackend, Fixed
from safecf.backends.host import aligned
from safecf.spark.arrays import task_backend
from safecf.spark.building import PAIR_ARRAYS, Offsets, changed
from safecf.spark.chunks import Arrays, named

# Pairs of a hot row whose factors are put together at once.
GATHERED = 2**14

Factors = NDArray[np.float32]
Entries = Iterator[Any]


class StepSums(NamedTuple):
    """Sums over the rows of a block that a half-step has solved, and over the users' losses."""

    rows: float = 0
    change: float = 0
    penalty: float = 0
    vanished: float = 0
    loss: float = 0
    squared_loss: float = 0
    low: float = np.inf
    high: float = -np.inf

    def merge(self, other: "StepSums") -> "StepSums":
        """Return the sums over both parts."""
        names = self._fields
        how = {"low": min, "high": max}
        return StepSums(
            *(how.get(n, lambda a, b: a + b)(getattr(self, n), getattr(other, n)) for n in names)
        )


@dataclass(frozen=True)
class Setting:
    """What all tasks of a training know."""

    factors: int
    loss: Loss
    ridge: Ridge
    risk: Risk  # before it is scaled to losses
    num_users: float
    num_items: int
    offsets: tuple[Offsets, Offsets]  # of the blocks of users and items
    marks: tuple[Offsets, Offsets]  # checksums of their interactions
    seed: int
    init_std: float

    def start(self, side: int, first: int, rows: int, threads: int | None = None) -> Factors:
        """x_u, y_i ~ N(0, init_std^2 / d), rows `first` and following."""
        found = normals(rows, self.factors, (self.seed, side), first, threads)
        found *= np.float32(self.init_std / np.sqrt(self.factors))
        return found

    def own(self, side: int, block: int) -> slice:
        """Return the place of a block's rows among all."""
        return slice(*self.offsets[side][block : block + 2].tolist())

    def check(self, side: int, block: int, interactions: Arrays) -> None:
        """Raise if a block's interactions were made again, and of other data."""
        if interactions.of("mark") != self.marks[side][block]:
            raise changed("it has other interactions")


@dataclass(frozen=True)
class Weighing:
    """How the losses of an epoch become weights: w_u = old + step (K((loss_u - xi) / h) - old)."""

    risk: Risk  # on the scale of the losses
    xi: float
    step: float

    def weights(self, losses: Vector, old: Vector, backend: CpuBackend) -> Vector:
        """Return the new weights."""
        new = self.risk.weights(Population(losses, passes=backend.loss_sums), self.xi)
        return np.asarray(new if self.step == 1 else old + self.step * (new - old))


@dataclass(frozen=True)
class Eigenbasis:
    """G = basis diag(values) basis' of a half-step, and how precise its fixed side has to be."""

    values: Factors
    basis: Factors
    solver: RowSolver

    def rotate(self, factors: Factors) -> Factors:
        """Return factors in the eigenbasis, where the kernels can take them as they are."""
        return _product(factors, self.basis)

    def rotate_back(self, factors: Factors) -> Factors:
        """Return factors of the eigenbasis in the basis in which they travel."""
        return _product(factors, self.basis.T)

    def table(self, rotated: Factors, backend: CpuBackend) -> NDArray[Any]:
        """Return rotated factors as the kernels read those of a fixed side."""
        return backend.fix_rotated(rotated, self.values.astype(np.float64), self.solver).rotated

    def fixed(self, table: NDArray[Any]) -> Fixed:
        """Return the fixed side of a half-step."""
        return Fixed(table, self.values, None)


def _product(factors: Factors, basis: Factors) -> Factors:
    found: Factors = aligned(len(factors), basis.shape[1], np.float32)
    return np.matmul(factors, basis, out=found)


@dataclass(frozen=True)
class Start:
    """Draws the first factors of a block that is spread."""

    setting: Setting
    side: int

    def __call__(self, block: int, interactions: Arrays) -> Entries:
        """Return the block's state, and its Gramian."""
        self.setting.check(self.side, block, interactions)
        own = self.setting.own(self.side, block)
        backend = task_backend()
        rows, threads = own.stop - own.start, backend.num_threads
        factors = self.setting.start(self.side, own.start, rows, threads)
        gram = backend.gram(backend.place(factors))
        arrays = {"factors": factors, "gram": gram, "sums": np.array(StepSums(len(factors)))}
        if self.side == 0:
            arrays["weights"] = np.full(len(factors), self.setting.risk.tail)
            arrays["losses"] = np.zeros(len(factors))
            arrays["mass"] = interactions.of("mass")
        yield from named(block, 0, arrays)
        yield from passed_on(block, interactions)


def passed_on(block: int, interactions: Arrays) -> Entries:
    """Return what `Send` needs beside the factors."""
    for name in ("send", *(f"{kind}_{each}" for kind in ("hot", "big") for each in PAIR_ARRAYS)):
        for source in interactions.sources(name):
            yield block, source, name, interactions.of(name, source)


@dataclass(frozen=True)
class Send:
    """Sends the rows of a spread block to the blocks of the other side that need them."""

    setting: Setting
    side: int
    eigenbasis: Eigenbasis
    weighing: Weighing | None  # of users

    def __call__(self, block: int, state: Arrays) -> Entries:
        """Return the messages, and normal equations instead of many rows for one hot one."""
        backend, d = task_backend(), self.setting.factors
        rotated = self.eigenbasis.rotate(state.of("factors").reshape(-1, d))
        table = self.eigenbasis.table(rotated, backend)
        name = "words" if table.dtype == np.uint32 else "rows"
        pair_weight = col_weight = None
        if self.side == 0:
            pair_weight = self.setting.loss.pair_weight(state.of("mass"))
            col_weight = pair_weight * weights_of(state, self.weighing, backend)
        for other in state.sources("send"):
            rows = state.of("send", other)
            yield other, block, name, table[rows]
            if col_weight is not None and pair_weight is not None:
                yield other, block, "col_weight", col_weight[rows]
                yield other, block, "pair_weight", pair_weight[rows]
        for other in sorted({*state.sources("hot_rows"), *state.sources("big_rows")}):
            hot = _SummedPairs.of(state, other)
            arrays = self._normal_equations(hot, rotated, col_weight)
            if pair_weight is not None:
                arrays["hot_mass"] = hot.mass(pair_weight)
            yield from named(other, block, arrays)

    def _normal_equations(
        self, hot: "_SummedPairs", rotated: Factors, col_weight: Vector | None
    ) -> dict[str, NDArray[Any]]:
        """Return sum_j p_j y_j y_j' and sum_j p_j y_j of every row that is hot here."""
        p: NDArray[Any] = hot.confidence
        if col_weight is not None:
            p = p * col_weight[hot.columns]
        d = self.setting.factors
        gram = np.empty((len(hot.rows), d * (d + 1) // 2), np.float32)
        right = np.empty((len(hot.rows), d), np.float32)
        for row, (begin, end) in enumerate(pairwise(hot.indptr.tolist())):
            columns = hot.columns[begin:end]
            gram[row], right[row] = normal_equations(rotated, columns, p[begin:end], d)
        return {"hot": hot.rows, "hot_gram": gram, "hot_right": right}


class _SummedPairs(NamedTuple):
    """The pairs of those rows of another block that are hot here, or big: never both."""

    rows: NDArray[np.int32]
    indptr: Offsets
    columns: NDArray[np.int32]
    confidence: NDArray[np.float32]

    @classmethod
    def of(cls, state: Arrays, other: int) -> "_SummedPairs":
        """Return those of a block."""
        rows, counts, columns, confidence = (
            np.concatenate([state.of(f"{kind}_{name}", other) for kind in ("hot", "big")])
            for name in PAIR_ARRAYS
        )
        return cls(rows, np.append(0, np.cumsum(counts)), columns, confidence)

    def mass(self, pair_weight: Vector) -> Vector:
        """sum_u a_u c_ui of every row."""
        masses = pair_weight[self.columns] * self.confidence
        return np.add.reduceat(masses, self.indptr[:-1])


def normal_equations(
    rows: NDArray[Any], columns: NDArray[Any], p: NDArray[Any], factors: int
) -> tuple[Factors, Factors]:
    """Return the upper triangle of sum_j p_j y_j y_j', and sum_j p_j y_j, y_j of a table."""
    gram = np.zeros(factors * (factors + 1) // 2, np.float32)
    right = np.zeros(factors, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # the solution is checked
        for first in range(0, len(columns), GATHERED):
            part = slice(first, first + GATHERED)
            y, weight = as_float(rows[columns[part]], factors), p[part].astype(np.float32)
            gram += upper_triangle((y.T * weight) @ y)
            right += weight @ y
    return gram, right


def as_float(rows: NDArray[Any], factors: int) -> Factors:
    """Return rows of a table as numbers."""
    if rows.dtype == np.uint32:
        halves = rows.view(np.uint16).astype(np.uint32) << 16
        rows = halves.view(np.float32)
    return rows[:, :factors]


@cache
def triangle_places(d: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return rows and columns of an upper triangle's numbers."""
    return np.triu_indices(d)


def upper_triangle(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return the upper triangle of a matrix, row by row."""
    return matrix[triangle_places(len(matrix))]


def whole_matrix(triangle: Factors) -> Factors:
    """Return the symmetric matrix of an upper triangle.

    >>> whole_matrix(np.array([1, 2, 3], np.float32)).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    d = int((2 * len(triangle)) ** 0.5)
    whole = np.empty((d, d), np.float32)
    rows, columns = triangle_places(d)
    whole[rows, columns] = whole[columns, rows] = triangle
    return whole


def weights_of(state: Arrays, weighing: Weighing | None, backend: CpuBackend) -> Vector:
    """Return the users' weights after a weighing, or as they are."""
    old: Vector = state.of("weights")
    return old if weighing is None else weighing.weights(state.of("losses"), old, backend)


@dataclass(frozen=True)
class Weigh:
    """Sums over users at their new weights: X' diag(w) X, and how far the weights have moved."""

    setting: Setting
    weighing: Weighing

    def __call__(self, block: int, state: Arrays) -> Entries:
        """Return the Gramian, sum w_u, and sum (w_u - old)^2."""
        backend, old = task_backend(), state.of("weights")
        weights = weights_of(state, self.weighing, backend)
        factors = backend.place(state.of("factors").reshape(-1, self.setting.factors))
        yield block, 0, "gram", backend.gram(factors, weights)
        yield block, 0, "sums", np.array([weights.sum(), ((weights - old) ** 2).sum()])


@dataclass(frozen=True)
class SumLosses:
    """The sums over losses that a round of the quantile step asks for."""

    smoothing: Smoothing
    xi: float

    def __call__(self, block: int, state: Arrays) -> Entries:
        """Return `Sums` of the block."""
        passes = task_backend().loss_sums
        found = passes.sums(state.of("losses"), None, self.smoothing, self.xi)
        yield block, 0, "sums", np.array(found)


def merged_sums(parts: list[NDArray[np.float64]]) -> Sums:
    """Merge the `Sums` of blocks, in their order."""
    return Sums(*np.sum(parts, axis=0).tolist())
