"""The cluster of a training: where factors are, and the jobs that change them."""

import uuid
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from safecf.als.population import NumpySums, Population, Smoothing, Sums, Totals
from safecf.als.solvers import RowSolver
from safecf.backends.blas import eigenbasis
from safecf.backends.cpu.native import CpuBackend
from safecf.spark.blocks import Layout, Side, by_block, parts_of
from safecf.spark.chunks import COLUMNS, Arrays, named, pack
from safecf.spark.half_step import HalfStep, Table, solve_group
from safecf.spark.session import is_remote
from safecf.spark.tasks import (
    Eigenbasis,
    Factors,
    Send,
    Setting,
    Start,
    StepSums,
    SumLosses,
    Weigh,
    Weighing,
    merged_sums,
)

# Losses that the driver takes to solve for xi; of more, it asks for sums, once for each xi.
COLLECTED = 4_000_000
RESULTS = "gram", "sums", "sample"
STATE = "factors", "losses", "weights"
USERS, ITEMS = 0, 1

Vector = NDArray[np.float64]


class Result(NamedTuple):
    """What the blocks of a side have found, added up in their order."""

    gram: NDArray[np.float64] | None
    sums: StepSums
    sample: Vector


@dataclass
class HeldUsers:
    """What the driver has of users whose factors it holds."""

    mass: Vector
    weights: Vector
    losses: Vector


@dataclass
class Engine:
    """Half-steps and sums over all blocks.

    `factors` has those of the sides that the driver holds, `states` the blocks of the others.
    """

    spark: SparkSession
    setting: Setting
    layout: Layout
    level: StorageLevel
    backend: CpuBackend = field(default_factory=CpuBackend)
    factors: list[Factors | None] = field(default_factory=lambda: [None, None])
    states: list[DataFrame | None] = field(default_factory=lambda: [None, None])
    users: HeldUsers | None = None
    _cached: list[tuple[str, DataFrame] | None] = field(default_factory=lambda: [None, None])
    _begun: DataFrame | None = None

    @property
    def sides(self) -> tuple[Side, Side]:
        """Users and items."""
        return self.layout.users, self.layout.items

    def start(self) -> NDArray[np.float64]:
        """Draw the first factors of both sides; return Y'Y."""
        for number, side in enumerate(self.sides):
            if side.held:
                self.factors[number] = self.setting.start(number, 0, side.size)
            else:
                drawn = side.interactions.mapInArrow(by_block(Start(self.setting, number)), COLUMNS)
                self._keep(number, self._persisted(drawn))
        self.hold_users()
        return self.gram_of_items()

    def hold_users(self) -> None:
        """Fetch what the driver has to know of users that it holds."""
        users = self.layout.users
        if users.held:
            mass = self.of_rows(USERS, "mass")
            tail = np.full(users.size, self.setting.risk.tail)
            self.users = HeldUsers(mass, tail, np.zeros(users.size))

    def gram_of_items(self) -> NDArray[np.float64]:
        """Y'Y of the present factors."""
        factors = self.factors[ITEMS]
        if factors is not None:
            return self._own_gram(factors, None)
        found = _added(self._collect(self.state(ITEMS), RESULTS)).gram
        assert found is not None
        return found

    def _own_gram(self, factors: Factors, weights: Vector | None) -> NDArray[np.float64]:
        return self.backend.gram(self.backend.place(factors), weights).astype(np.float64)

    def of_rows(self, side: int, name: str) -> NDArray[Any]:
        """Return a vector of all rows of a side that the driver holds."""
        if side == USERS and self.users is not None and name in vars(self.users):
            found: NDArray[Any] = getattr(self.users, name)
            return found
        blocks = self._collect(self.sides[side].interactions, [name])
        return np.concatenate([blocks[block].of(name) for block in sorted(blocks)])

    def state(self, side: int) -> DataFrame:
        """Return the blocks of a side that is spread."""
        state = self.states[side]
        assert state is not None
        return state

    @staticmethod
    def _collect(frame: DataFrame, names: Any) -> dict[int, Arrays]:
        """Bring arrays to the driver, by block."""
        return parts_of(frame.where(F.col("name").isin(list(names))).toArrow())

    def eigenbasis(self, gram: NDArray[np.float64], solver: RowSolver) -> Eigenbasis:
        """Return that of G = b gram."""
        shared = (self.setting.loss.unobserved_weight * gram).astype(np.float32)
        values, basis = eigenbasis(shared, self.backend.execution)
        return Eigenbasis(
            np.asarray(values, dtype=np.float32), np.asarray(basis, dtype=np.float32), solver
        )

    def step(
        self,
        side: int,
        basis: Eigenbasis,
        solver: RowSolver | None,
        *,
        weighing: Weighing | None = None,
        now: Weighing | None = None,
        **options: Any,
    ) -> Result:
        """Run a half-step; `weighing` is that of the users as the fixed side, `now` as the rows."""
        own, other = self.sides[side], self.sides[1 - side]
        if now is not None:
            options |= {"weight": self._weights(now)} if own.held else {"now": now}
        table = None if self.factors[1 - side] is None else self._table(1 - side, basis, weighing)
        step = HalfStep(
            self.setting, side, basis, solver, held=self.factors[side], table=table, **options
        )
        if own.held and other.held:
            found = own.interactions.mapInArrow(by_block(step), COLUMNS)
            return self._take(side, step, found)
        inbox = []
        if not own.held:
            inbox.append(self.state(side).where(F.col("name").isin(list(STATE))))
        if not other.held:
            send = by_block(Send(self.setting, 1 - side, basis, weighing))
            inbox.append(self.state(1 - side).mapInArrow(send, COLUMNS))
        sent = reduce(DataFrame.union, inbox).repartitionById(own.blocks, F.col("block"))
        found = (
            own.interactions.groupBy("block")
            .cogroup(sent.groupBy("block"))
            .applyInArrow(partial(solve_group, step), COLUMNS)
        )
        return self._take(side, step, found)

    def _take(self, side: int, step: HalfStep, found: DataFrame) -> Result:
        """Run the job of a half-step, and keep what it has found."""
        if step.held is None:
            found = self._persisted(found)
            result = _added(self._collect(found, RESULTS))
            self._keep(side, found)
            return result
        blocks = parts_of(found.toArrow())
        shape = (-1, self.setting.factors)
        factors = [each.of("factors").reshape(shape) for each in blocks.values()]
        self.factors[side] = np.concatenate(factors)
        sample = np.empty(0)
        if step.measure and self.users is not None:
            sample = np.concatenate([each.of("losses") for each in blocks.values()])
            self.users.losses = sample
        return _added(blocks)._replace(sample=sample)

    def _persisted(self, state: DataFrame) -> DataFrame:
        """Cache what is to become a state; `stop` lets go of it if that fails."""
        self._begun = state.persist(self.level)
        return self._begun

    def _keep(self, side: int, state: DataFrame) -> None:
        """Replace the state of a side, which is cached.

        It is known by a name from here on: a client of Spark Connect would send its whole history
        with every job.
        """
        self._forget(side)
        name = f"safecf_{uuid.uuid4().hex}"
        state.createOrReplaceTempView(name)
        self.states[side] = self.spark.table(name)
        self._cached[side] = (name, state)

    def _forget(self, side: int) -> None:
        cached, self._cached[side] = self._cached[side], None
        if cached is not None:
            name, state = cached
            self.spark.catalog.dropTempView(name)
            state.unpersist()

    def _table(self, side: int, basis: Eigenbasis, weighing: Weighing | None) -> Table:
        """Return the factors of a held side as the fixed one of a half-step."""
        factors = self.factors[side]
        assert factors is not None
        rows = basis.table(basis.rotate(factors), self.backend)
        if side == ITEMS or self.users is None:
            return Table(rows)
        pair_weight = self.setting.loss.pair_weight(self.users.mass)
        return Table(rows, pair_weight * self._weights(weighing), pair_weight)

    def _weights(self, weighing: Weighing | None) -> Vector:
        """Return the weights of held users after a weighing."""
        users = self.users
        assert users is not None
        if weighing is None:
            return users.weights
        return weighing.weights(users.losses, users.weights, self.backend)

    def weigh(self, weighing: Weighing) -> tuple[NDArray[np.float64], float, float]:
        """Return X' diag(w) X, sum w_u and sum (w_u - old)^2 at the weights of a weighing."""
        if self.users is not None:
            weights, factors = self._weights(weighing), self.factors[USERS]
            assert factors is not None
            change = ((weights - self.users.weights) ** 2).sum()
            return self._own_gram(factors, weights), float(weights.sum()), float(change)
        task = by_block(Weigh(self.setting, weighing))
        blocks = self._collect(self.state(USERS).mapInArrow(task, COLUMNS), RESULTS)
        d = self.setting.factors
        gram = sum(each.of("gram").reshape(d, d).astype(np.float64) for each in blocks.values())
        total, change = np.sum([each.of("sums") for each in blocks.values()], axis=0).tolist()
        return np.asarray(gram), total, change

    def settle(self, weighing: Weighing) -> None:
        """Make the weights of a weighing those of held users; others do so in their next step."""
        if self.users is not None:
            self.users.weights = self._weights(weighing)

    def population(self, result: Result, share: float) -> Population:
        """Return the losses that a half-step has measured, or a sample of them."""
        if self.users is not None:
            wanted = result.sample
            if share < 1:
                wanted = np.concatenate(
                    [part[: int(np.ceil(share * len(part)))] for part in self._by_block(wanted)]
                )
            return Population(wanted, passes=self.backend.loss_sums)
        if share < 1 or len(result.sample) == self.layout.users.size:
            return Population(result.sample, passes=self.backend.loss_sums)
        return SpreadPopulation(result.sample, passes=_Rounds(self, result.sums))

    def _by_block(self, values: Vector) -> list[Vector]:
        return np.split(values, self.layout.users.offsets[1:-1])

    def sample_share(self, wanted: float) -> float:
        """Return the share of losses that spread blocks send to the driver."""
        if wanted < 1:
            return wanted
        return min(1.0, COLLECTED / self.layout.users.size)

    def loss_sums(self, smoothing: Smoothing, xi: float) -> Sums:
        """Return the sums over the losses of spread users, by a job."""
        task = by_block(SumLosses(smoothing, xi))
        blocks = self._collect(self.state(USERS).mapInArrow(task, COLUMNS), RESULTS)
        return merged_sums([each.of("sums") for each in blocks.values()])

    def saved(self, side: int) -> DataFrame:
        """Return the state of a side as a frame of arrays, whoever has it."""
        if self.factors[side] is None:
            return self.state(side).where(~F.col("name").isin(list(RESULTS)))
        arrays: dict[str, Any] = {"factors": self.factors[side]}
        if side == USERS and self.users is not None:
            arrays |= {"losses": self.users.losses, "weights": self.users.weights}
        return self.spark.createDataFrame(pa.Table.from_batches(pack(named(0, 0, arrays))))

    def restore(self, side: int, saved: DataFrame) -> None:
        """Go on from what `saved` returned."""
        layout = self.sides[side]
        if not layout.held:
            spread = self._persisted(saved.repartitionById(layout.blocks, F.col("block")))
            spread.count()
            self._keep(side, spread)
            return
        arrays = Arrays(saved.toArrow())
        self.factors[side] = arrays.of("factors").reshape(-1, self.setting.factors)
        if side == USERS and self.users is not None:
            self.users.losses, self.users.weights = arrays.of("losses"), arrays.of("weights")

    def stop(self) -> None:
        """Let go of the states that are cached.

        Through Spark Connect the last ones keep their names: the model's frames refer to them.
        """
        if self._begun is not None:
            self._begun.unpersist()
        for cached in self._cached:
            if cached is not None:
                cached[1].unpersist()
                if not is_remote(self.spark):
                    self.spark.catalog.dropTempView(cached[0])


def _added(blocks: dict[int, Arrays]) -> Result:
    """Add up the results of blocks, in their order."""
    grams = [each.optional("gram") for each in blocks.values()]
    found = [gram.astype(np.float64) for gram in grams if gram is not None]
    sums = [StepSums(*each.of("sums").tolist()) for each in blocks.values()]
    gram = None
    if found:
        size = round(len(found[0]) ** 0.5)
        gram = reduce(np.add, found).reshape(size, size)
    sample = np.concatenate([each.of("sample") for each in blocks.values()] or [np.empty(0)])
    return Result(gram, reduce(StepSums.merge, sums), sample)


class _Rounds(NumpySums):
    """The quantile step's sums over losses that stay with the executors: a job for each xi."""

    def __init__(self, engine: Engine, sums: StepSums) -> None:
        self.engine, self.measured = engine, sums

    def totals(self, losses: Any, counts: Any) -> Totals:
        """Return what the half-step has summed up."""
        sums = self.measured
        return Totals(sums.rows, sums.loss, sums.low, sums.high)

    def sums(self, losses: Any, counts: Any, smoothing: Smoothing, xi: float) -> Sums:
        """Return the sums at xi, over all users."""
        return self.engine.loss_sums(smoothing, xi)


class SpreadPopulation(Population):
    """Losses that stay with the executors; VaR and CVaR are those of a sample."""

    @property
    def spread(self) -> float:
        """The standard deviation of all losses."""
        sums = self.passes.measured  # type: ignore[attr-defined]
        mean = sums.loss / sums.rows
        return float(np.sqrt(max(0.0, sums.squared_loss / sums.rows - mean**2)))
