"""A half-step of a block: losses of its users, and new factors of its rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from safecf.als.capabilities import HostReport
from safecf.als.loop import VANISHED
from safecf.als.loss import Vector
from safecf.als.rows import Rows, item_rows, user_rows
from safecf.als.solvers import RowSolver
from safecf.backends.cpu.native import CpuBackend, Fixed
from safecf.backends.host import aligned
from safecf.data.matrices.csr import Csr
from safecf.errors import SolveError
from safecf.spark.arrays import task_backend
from safecf.spark.chunks import SCHEMA, Arrays, named, pack
from safecf.spark.failures import placing
from safecf.spark.tasks import (
    Eigenbasis,
    Entries,
    Factors,
    Setting,
    StepSums,
    Weighing,
    normal_equations,
    passed_on,
    weights_of,
    whole_matrix,
)


class Table(NamedTuple):
    """Factors of the fixed side, with their weights if they are users'."""

    rows: NDArray[Any]
    col_weight: Vector | None = None
    pair_weight: Vector | None = None


@dataclass(frozen=True)
class Equations:
    """The normal equations of hot rows and big items, over all of their pairs."""

    rows: NDArray[np.int64]
    gram: Factors  # sum_j p_j y_j y_j', the upper triangle
    right: Factors  # sum_j p_j y_j


@dataclass(frozen=True)
class HalfStep:
    """Solves the rows of blocks, given the fixed side: the users', or the items'.

    `held` are the factors of this side, if the driver holds them, and `table` those of the fixed
    side. `before` and `now` are weighings of users that are spread: what their stored weights
    become first, and the weights at which they are solved; None for those of `weight`, one for all
    rows or one for each. `measure` asks for the losses of the old factors, of which a `share` goes
    to the driver. `solver` is None if nothing is to be solved, and `zero` forgets the old factors.
    """

    setting: Setting
    side: int
    eigenbasis: Eigenbasis
    solver: RowSolver | None
    held: Factors | None = None
    table: Table | None = None
    before: Weighing | None = None
    now: Weighing | None = None
    weight: float | Vector = 1.0
    measure: bool = False
    share: float = 0.0
    zero: bool = False

    def __call__(self, block: int, interactions: Arrays) -> Entries:
        """Work on one block, if the driver holds both sides."""
        return self.solve(block, interactions, Arrays(SCHEMA.empty_table()))

    def solve(self, block: int, interactions: Arrays, inbox: Arrays) -> Entries:
        """Work on one block, with what it was sent."""
        self.setting.check(self.side, block, interactions)
        work = _Work(self, block, interactions, inbox)
        sums, state = StepSums(work.size), work.kept()
        if self.measure:
            with placing(self.side, block):
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
            if self.now is None:
                rows = self.setting.offsets[self.side][-1]
                weight = np.broadcast_to(self.weight, rows)[self.setting.own(self.side, block)]
            else:
                weight = self.now.weights(state["losses"], state["weights"], work.backend)
            with placing(self.side, block):
                state["factors"], report, ridge = work.solve(weight)
            sums = sums._replace(
                change=report.change(),
                penalty=report.penalty(ridge),
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

    def kept(self) -> dict[str, Any]:
        """Return what a spread block keeps beside its factors; the driver has it otherwise."""
        if self.step.held is not None:
            return {}
        if self.step.side == 1:
            return {"degree": self.interactions.of("degree")}
        weights = weights_of(self.inbox, self.step.before, self.backend)
        return {"losses": self.inbox.of("losses"), "mass": self.mass, "weights": weights}

    @cached_property
    def old(self) -> Factors:
        """The factors before the step."""
        step = self.step
        if step.held is not None:
            return step.held[step.setting.own(step.side, self.block)]
        return self.inbox.of("factors").reshape(-1, step.setting.factors)

    @cached_property
    def rotated(self) -> Factors:
        """The factors before the step, in the eigenbasis; it is there that they are solved."""
        return self.step.eigenbasis.rotate(self.old)

    @cached_property
    def table(self) -> Table:
        """The fixed side, in the order of the messages' sources."""
        if self.step.table is not None:
            return self.step.table
        inbox = self.inbox
        name = "words" if inbox.sources("words") else "rows"
        sources = inbox.sources(name)  # none, if all pairs of the block are of hot rows
        width = _padded_width(self.step.setting.factors, name)
        ends = np.append(0, np.cumsum([inbox.length(name, each) // width for each in sources]))
        found = aligned(int(ends[-1]), width, TABLE_TYPES[name])
        for source, rows in zip(sources, pairwise(ends.astype(int)), strict=True):
            found[slice(*rows)] = inbox.of(name, source).reshape(-1, width)
        if self.step.side == 0:
            return Table(found)
        weights = (
            np.concatenate([np.empty(0), *(inbox.of(each, source) for source in sources)])
            for each in ("col_weight", "pair_weight")
        )
        return Table(found, *weights)

    @cached_property
    def matrix(self) -> Csr:
        """The interactions, whose columns are rows of the table."""
        arrays = self.interactions
        shape = (self.size, len(self.table.rows))
        weights = arrays.optional("confidence")
        return Csr(arrays.of("indptr"), arrays.of("indices"), weights, shape)

    @cached_property
    def hot(self) -> Equations | None:
        """The normal equations that came instead of rows, added up in the order of sources."""
        sources = self.inbox.sources("hot_right")
        if not sources:
            return None
        d = self.step.setting.factors
        rows = np.unique(np.concatenate([self.inbox.of("hot", source) for source in sources]))
        gram = np.zeros((len(rows), d * (d + 1) // 2), np.float32)
        right = np.zeros((len(rows), d), np.float32)
        for source in sources:
            at = np.searchsorted(rows, self.inbox.of("hot", source))
            gram[at] += self.inbox.of("hot_gram", source).reshape(len(at), -1)
            right[at] += self.inbox.of("hot_right", source).reshape(len(at), d)
        for place, row in enumerate(rows):  # the pairs whose factors were sent
            columns, p = self.matrix.row(row)
            if self.table.col_weight is not None:
                p = p * self.table.col_weight[columns]
            more = normal_equations(self.table.rows, columns, p, d)
            gram[place] += more[0]
            right[place] += more[1]
        return Equations(rows, gram, right)

    def _equations(self) -> Iterator[tuple[int, Vector, Vector]]:
        """Return each hot row with its sum_j p_j y_j y_j' and sum_j p_j y_j."""
        assert self.hot is not None
        for row, gram, right in zip(self.hot.rows, self.hot.gram, self.hot.right, strict=True):
            yield int(row), whole_matrix(gram).astype(np.float64), right.astype(np.float64)

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
        factors = self.backend.place(self.rotated)
        ridge = self.rows.ridge if self.step.setting.ridge.in_risk else None
        found = self.backend.losses(
            self.matrix, self.rows.row_weight, factors, self.fixed, ridge
        ).astype(np.float64)
        if self.hot is not None:
            for row, gram, right in self._equations():
                x = factors[row].astype(np.float64)
                observed = x @ gram @ x + self.mass[row] - 2 * right @ x
                found[row] = self.rows.row_weight[row] / 2 * observed
                found[row] += x**2 @ self.step.eigenbasis.values / 2
                if ridge is not None:
                    found[row] += ridge[row] / 2 * x @ x
        return found

    def solve(self, weight: Vector) -> tuple[Factors, HostReport, Vector]:
        """Return the new factors, a report, and the ridge."""
        step, rows = self.step, self.rows
        assert step.solver is not None
        if step.side == 0:
            row_weight = weight * rows.row_weight
            rows = Rows(rows.matrix, row_weight, rows.col_weight, weight, rows.ridge)
        factors = self.rotated
        if step.zero:
            factors[:] = 0
        before = None if self.hot is None else factors[self.hot.rows]
        report = self.backend.solve_rows(rows, self.fixed, factors, step.solver)
        if before is not None:
            report = self._solve_hot(rows, factors, before, report)
        return step.eigenbasis.rotate_back(factors), report, rows.ridge

    def _solve_hot(
        self, rows: Rows, factors: Factors, before: Factors, report: HostReport
    ) -> HostReport:
        """Solve the hot rows, which were `before`, from their normal equations."""
        changes, norms = np.array(report.changes), np.array(report.norms)
        for (row, gram, right), old in zip(self._equations(), before, strict=True):
            system = rows.row_weight[row] * gram
            shared = rows.gram_weight[row] * self.step.eigenbasis.values + rows.ridge[row]
            system[np.diag_indices_from(system)] += shared
            x = _solved(system, rows.row_weight[row] * right)
            if x is None:
                raise SolveError.at(row, rows.ridge[row])
            factors[row] = x
            changes[row] = ((x - old) ** 2).sum()
            norms[row] = (x**2).sum()
        return HostReport(changes, norms)


def _solved(system: NDArray[np.float64], right: Vector) -> Vector | None:
    """Return A^-1 b, or None if A is not positive definite in float32, the precision of its sums.

    Pivots are compared with 1: A is scaled so that its diagonal is 1.
    """
    diagonal = np.diag(system)
    if not (np.isfinite(system).all() and np.isfinite(right).all() and (diagonal > 0).all()):
        return None
    scale = 1 / np.sqrt(diagonal)
    try:
        lower = np.linalg.cholesky(scale[:, None] * system * scale)
    except np.linalg.LinAlgError:
        return None
    if (np.diag(lower) ** 2).min() < np.finfo(np.float32).eps:
        return None
    return np.asarray(scale * cho_solve((lower, True), scale * right))


TABLE_TYPES = {"words": np.uint32, "rows": np.float32}


def _padded_width(factors: int, name: str) -> int:
    """Numbers of a row of a table: two to a word, both padded as the kernels want it."""
    if name == "words":
        return -(-factors // 32) * 16
    return -(-factors // 16) * 16
