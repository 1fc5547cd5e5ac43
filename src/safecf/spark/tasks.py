"""What executors do: solve the rows of a block, weigh its users, and tell other blocks.

All tasks are pure: a task that is run again gives the same bits. Factors travel and stay in the
basis in which they were drawn; a half-step is solved in the eigenbasis of its G.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import TaskContext

from safecf.als.capabilities import HostReport
from safecf.als.loop import VANISHED, normals
from safecf.als.loss import Loss, Ridge, Vector
from safecf.als.population import Population, Smoothing, Sums
from safecf.als.risk import Risk
from safecf.als.rows import Rows, item_rows, user_rows
from safecf.als.solvers import RowSolver
from safecf.backends.cpu.native import CpuBackend, Fixed
from safecf.backends.host import aligned
from safecf.data.matrices.csr import Csr
from safecf.spark.blocks import Offsets
from safecf.spark.chunks import SCHEMA, Arrays, named, pack

Factors = NDArray[np.float32]
Entries = Iterator[Any]


def task_backend() -> CpuBackend:
    """Return the native backend with the threads of a task, `spark.task.cpus`."""
    context = TaskContext.get()
    return CpuBackend(1 if context is None else context.cpus())


class StepSums(NamedTuple):
    """Sums over the rows of a block that a half-step has solved, and over the users' losses."""

    rows: float = 0
    change: float = 0
    penalty: float = 0
    vanished: float = 0
    largest: float = 0
    loss: float = 0
    squared_loss: float = 0
    low: float = np.inf
    high: float = -np.inf

    def merge(self, other: "StepSums") -> "StepSums":
        """Return the sums over both parts."""
        names = self._fields
        how = {"largest": max, "low": min, "high": max}
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
    seed: int
    init_std: float

    def start(self, side: int, first: int, rows: int) -> Factors:
        """x_u, y_i ~ N(0, init_std^2 / d), rows `first` and following."""
        found = normals(rows, self.factors, (self.seed, side), first)
        found *= np.float32(self.init_std / np.sqrt(self.factors))
        return found

    def own(self, side: int, block: int) -> slice:
        """Return the place of a block's rows among all."""
        return slice(*self.offsets[side][block : block + 2].tolist())


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

    def table(self, factors: Factors, backend: CpuBackend) -> NDArray[Any]:
        """Return factors in the eigenbasis, as the kernels read them."""
        rotated = backend.place(factors @ self.basis)
        return backend.fix_rotated(rotated, self.values.astype(np.float64), self.solver).rotated

    def fixed(self, table: NDArray[Any]) -> Fixed:
        """Return the fixed side of a half-step."""
        return Fixed(table, self.values, None)


class Table(NamedTuple):
    """Factors of the fixed side, with their weights if they are users'."""

    rows: NDArray[Any]
    col_weight: Vector | None = None
    pair_weight: Vector | None = None


@dataclass(frozen=True)
class Told:
    """Hot rows: their normal equations over the pairs that were not sent."""

    rows: NDArray[np.int64]
    gram: Factors  # sum_j p_j y_j y_j'
    right: Factors  # sum_j p_j y_j


@dataclass(frozen=True)
class Start:
    """Draws the first factors of a block that is spread."""

    setting: Setting
    side: int

    def __call__(self, block: int, interactions: Arrays) -> Entries:
        """Return the block's state, and its Gramian."""
        own = self.setting.own(self.side, block)
        factors = self.setting.start(self.side, own.start, own.stop - own.start)
        gram = task_backend().gram(task_backend().place(factors))
        arrays = {"factors": factors, "gram": gram, "sums": np.array(StepSums(len(factors)))}
        if self.side == 0:
            arrays["weights"] = np.full(len(factors), self.setting.risk.tail)
            arrays["losses"] = np.zeros(len(factors))
            arrays["mass"] = interactions.of("mass")
        yield from named(block, 0, arrays)
        yield from passed_on(block, interactions)


def passed_on(block: int, interactions: Arrays) -> Entries:
    """Return what `Tell` needs to know beside the factors."""
    for name in ("send", "hot", "hot_indptr", "hot_indices", "hot_confidence"):
        for source in interactions.sources(name):
            yield block, source, name, interactions.of(name, source)


@dataclass(frozen=True)
class Tell:
    """Sends the rows of a spread block to the blocks of the other side that need them."""

    setting: Setting
    side: int
    eigenbasis: Eigenbasis
    weighing: Weighing | None  # of users

    def __call__(self, block: int, state: Arrays) -> Entries:
        """Return the messages, and normal equations instead of many rows for one hot one."""
        backend, d = task_backend(), self.setting.factors
        factors = state.of("factors").reshape(-1, d)
        table = self.eigenbasis.table(factors, backend)
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
        hot = state.sources("hot")
        if hot:
            rotated = factors @ self.eigenbasis.basis
            for other in hot:
                yield from self._normal_equations(other, block, state, rotated, col_weight)
                if pair_weight is not None:
                    yield other, block, "hot_mass", _hot_mass(state, other, pair_weight)

    def _normal_equations(
        self, other: int, block: int, state: Arrays, rotated: Factors, col_weight: Vector | None
    ) -> Entries:
        """Return sum_j p_j y_j y_j' and sum_j p_j y_j of every row that is hot here."""
        rows, indptr = state.of("hot", other), state.of("hot_indptr", other)
        indices, p = state.of("hot_indices", other), state.of("hot_confidence", other)
        if col_weight is not None:
            p = (p * col_weight[indices]).astype(np.float32)
        d = self.setting.factors
        gram, right = np.empty((len(rows), d, d), np.float32), np.empty((len(rows), d), np.float32)
        for row in range(len(rows)):
            pairs = slice(indptr[row], indptr[row + 1])
            y = rotated[indices[pairs]]
            np.matmul(y.T * p[pairs], y, out=gram[row])
            np.matmul(p[pairs], y, out=right[row])
        upper = np.triu_indices(d)
        yield other, block, "hot", rows
        yield other, block, "hot_gram", gram[:, upper[0], upper[1]]
        yield other, block, "hot_right", right


def _hot_mass(state: Arrays, other: int, pair_weight: Vector) -> Vector:
    """sum_u a_u c_ui over the pairs of every hot item."""
    indptr, indices = state.of("hot_indptr", other), state.of("hot_indices", other)
    return np.add.reduceat(pair_weight[indices] * state.of("hot_confidence", other), indptr[:-1])


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
        yield (
            block,
            0,
            "sums",
            np.array(passes.sums(state.of("losses"), None, self.smoothing, self.xi)),
        )


def merged_sums(parts: list[NDArray[np.float64]]) -> Sums:
    """Merge the `Sums` of blocks, in their order."""
    return Sums(*np.sum(parts, axis=0).tolist())


@dataclass(frozen=True)
class HalfStep:
    """Solves the rows of blocks, given the fixed side: the users', or the items'.

    `held` are the factors of this side, if the driver holds them, and `table` those of the fixed
    side. `before` and `now` are weighings of users: what their stored weights become first, and
    the weights at which they are solved, None for those that all users share, `weight`. `measure`
    asks for the losses of the old factors, of which a `share` goes to the driver. `solver` is None
    if nothing is to be solved, and `zero` forgets the old factors.
    """

    setting: Setting
    side: int
    eigenbasis: Eigenbasis
    solver: RowSolver | None
    held: Factors | None = None
    table: Table | None = None
    before: Weighing | None = None
    now: Weighing | None = None
    weight: float = 1.0
    measure: bool = False
    share: float = 0.0
    zero: bool = False

    def __call__(self, block: int, interactions: Arrays) -> Entries:
        """Work on one block, if the driver holds both sides."""
        return self.solve(block, interactions, Arrays(SCHEMA.empty_table()))

    def solve(self, block: int, interactions: Arrays, inbox: Arrays) -> Entries:
        """Work on one block, with what it was sent."""
        work = _Work(self, block, interactions, inbox)
        state: dict[str, Any] = {}
        sums = StepSums(work.size)
        if self.held is None:
            state = {"degree": interactions.of("degree")}
        if self.side == 0 and self.held is None:
            state = {"losses": inbox.of("losses"), "mass": work.mass}
            state["weights"] = weights_of(inbox, self.before, work.backend)
        if self.measure:
            state["losses"] = losses = work.losses()
            sums = sums._replace(
                loss=losses.sum(),
                squared_loss=(losses**2).sum(),
                low=losses.min(),
                high=losses.max(),
            )
            if self.held is None:
                yield block, 0, "sample", losses[: int(np.ceil(self.share * work.size))]
        state["factors"] = work.old
        if self.solver is not None:
            weight = np.full(work.size, self.weight)
            if self.now is not None:
                weight = self.now.weights(state["losses"], state["weights"], work.backend)
            state["factors"], report, ridge = work.solve(weight)
            sums = sums._replace(
                change=report.change(),
                penalty=report.penalty(ridge),
                largest=report.largest(),
                vanished=report.below(VANISHED * report.largest(), np.ones(work.size)),
            )
            yield block, 0, "gram", work.backend.gram(work.backend.place(state["factors"]))
        yield block, 0, "sums", np.array(sums)
        yield from named(block, 0, state)
        if self.held is None:
            yield from passed_on(block, interactions)


def solve_group(step: HalfStep, interactions: pa.Table, inbox: pa.Table) -> pa.Table:
    """Run a half-step of one block, as a task."""
    if not interactions.num_rows:
        return SCHEMA.empty_table()
    block = interactions.column("block")[0].as_py()
    return pa.Table.from_batches(
        pack(step.solve(block, Arrays(interactions), Arrays(inbox))), SCHEMA
    )


@dataclass(frozen=True)
class _Work:
    """A half-step of one block."""

    step: HalfStep
    block: int
    interactions: Arrays
    inbox: Arrays

    @cached_property
    def backend(self) -> CpuBackend:
        return task_backend()

    @cached_property
    def mass(self) -> Vector:
        """m_u of users."""
        return self.interactions.of("mass")

    @property
    def size(self) -> int:
        return len(self.mass)

    @cached_property
    def old(self) -> Factors:
        """The factors before the step."""
        step = self.step
        if step.held is not None:
            return step.held[step.setting.own(step.side, self.block)]
        return self.inbox.of("factors").reshape(-1, step.setting.factors)

    @cached_property
    def table(self) -> Table:
        """The fixed side, in the order of the messages' sources."""
        if self.step.table is not None:
            return self.step.table
        inbox = self.inbox
        name = "words" if inbox.sources("words") else "rows"
        parts = [(source, inbox.of(name, source)) for source in inbox.sources(name)]
        lengths = [len(inbox.of("col_weight", s)) for s, _ in parts] if self.step.side else []
        width = _padded_width(self.step.setting.factors, name)
        found = aligned(sum(len(part) for _, part in parts) // width, width, TABLE_TYPES[name])
        np.concatenate([part for _, part in parts], out=found.reshape(-1))
        if not lengths:
            return Table(found)
        return Table(
            found,
            *(
                np.concatenate([inbox.of(each, source) for source, _ in parts])
                for each in ("col_weight", "pair_weight")
            ),
        )

    @cached_property
    def matrix(self) -> Csr:
        """The interactions, whose columns are rows of the table."""
        arrays = self.interactions
        shape = (self.size, len(self.table.rows))
        weights = arrays.optional("confidence")
        return Csr(arrays.of("indptr"), arrays.of("indices"), weights, shape)

    @cached_property
    def hot(self) -> Told | None:
        """The normal equations that came instead of rows, added up in the order of sources."""
        sources = self.inbox.sources("hot_right")
        if not sources:
            return None
        d = self.step.setting.factors
        rows = np.unique(np.concatenate([self.inbox.of("hot", source) for source in sources]))
        gram, right = np.zeros((len(rows), d, d)), np.zeros((len(rows), d))
        upper = np.triu_indices(d)
        for source in sources:
            at = np.searchsorted(rows, self.inbox.of("hot", source))
            packed = self.inbox.of("hot_gram", source).reshape(len(at), -1)
            square = np.zeros((len(at), d, d))
            square[:, upper[0], upper[1]] = packed
            square[:, upper[1], upper[0]] = packed
            gram[at] += square
            right[at] += self.inbox.of("hot_right", source).reshape(len(at), d)
        return Told(rows, *self._with_sent(rows, gram, right))

    def _with_sent(
        self, rows: NDArray[Any], gram: NDArray[Any], right: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Add the pairs of hot rows whose factors were sent."""
        for place, row in enumerate(rows):
            columns, p = self.matrix.row(row)
            if self.table.col_weight is not None:
                p = p * self.table.col_weight[columns]
            y = as_float(self.table.rows[columns], self.step.setting.factors)
            gram[place] += (y.T * p) @ y
            right[place] += p @ y
        return gram, right

    @cached_property
    def rows(self) -> Rows:
        """The systems at weights of 1."""
        setting, matrix = self.step.setting, self.matrix
        if self.step.side == 0:
            columns = (matrix.num_columns, setting.num_items)
            ones = np.ones(self.size)
            return user_rows(matrix, self.mass, ones, setting.loss, setting.ridge, columns)
        pair_weight, col_weight = self.table.pair_weight, self.table.col_weight
        assert pair_weight is not None
        assert col_weight is not None
        mass = matrix.row_mass(pair_weight)
        for source in self.inbox.sources("hot_mass"):
            mass[self.inbox.of("hot", source)] += self.inbox.of("hot_mass", source)
        total = setting.risk.tail * setting.num_users
        return item_rows(matrix, mass, col_weight, setting.loss, setting.ridge, total)

    @cached_property
    def fixed(self) -> Fixed:
        return self.step.eigenbasis.fixed(self.table.rows)

    def losses(self) -> Vector:
        """loss_u of the old factors, with the ridge if it is in the risk."""
        factors = self.backend.place(self.old @ self.step.eigenbasis.basis)
        ridge = self.rows.ridge if self.step.setting.ridge.in_risk else None
        found = self.backend.losses(
            self.matrix, self.rows.row_weight, factors, self.fixed, ridge
        ).astype(np.float64)
        if self.hot is not None:
            x, at = factors[self.hot.rows].astype(np.float64), self.hot.rows
            observed = np.einsum("rd,rde,re->r", x, self.hot.gram, x)
            observed += self.mass[at] - 2 * np.einsum("rd,rd->r", x, self.hot.right)
            found[at] = self.rows.row_weight[at] / 2 * observed
            found[at] += (x**2 @ self.step.eigenbasis.values) / 2
            if ridge is not None:
                found[at] += ridge[at] / 2 * (x**2).sum(axis=1)
        return found

    def solve(self, weight: Vector) -> tuple[Factors, HostReport, Vector]:
        """Return the new factors, a report, and the ridge."""
        step, rows = self.step, self.rows
        assert step.solver is not None
        if step.side == 0:
            row_weight = weight * rows.row_weight
            rows = Rows(rows.matrix, row_weight, rows.col_weight, weight, rows.ridge)
        old = np.zeros_like(self.old) if step.zero else self.old
        factors = self.backend.copy(old @ step.eigenbasis.basis)
        report = self.backend.solve_rows(rows, self.fixed, factors, step.solver)
        if self.hot is not None:
            report = self._solve_hot(rows, factors, report)
        return factors @ step.eigenbasis.basis.T, report, rows.ridge

    def _solve_hot(self, rows: Rows, factors: Factors, report: HostReport) -> HostReport:
        """Solve the hot rows from their normal equations."""
        assert self.hot is not None
        changes, norms = np.array(report.changes), np.array(report.norms)
        before = self.old @ self.step.eigenbasis.basis
        for place, row in enumerate(self.hot.rows):
            system = rows.row_weight[row] * self.hot.gram[place]
            shared = rows.gram_weight[row] * self.step.eigenbasis.values + rows.ridge[row]
            system[np.diag_indices_from(system)] += shared
            x = np.linalg.solve(system, rows.row_weight[row] * self.hot.right[place])
            factors[row] = x
            changes[row] = ((x - before[row]) ** 2).sum()
            norms[row] = (x**2).sum()
        return HostReport(changes, norms)


TABLE_TYPES = {"words": np.uint32, "rows": np.float32}


def _padded_width(factors: int, name: str) -> int:
    """Numbers of a row of a table: two to a word, both padded as the kernels want it."""
    if name == "words":
        return -(-factors // 32) * 16
    return -(-factors // 16) * 16


def as_float(rows: NDArray[Any], factors: int) -> Factors:
    """Return rows of a table as numbers."""
    if rows.dtype == np.uint32:
        halves = rows.view(np.uint16).astype(np.uint32) << 16
        rows = halves.view(np.float32)
    return rows[:, :factors]
