"""Training on Spark: the driver's loop over epochs, and what it keeps."""

import hashlib
import json
import logging
import math
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.storagelevel import StorageLevel

from safecf.als.loop import Clock, Collapse, Epoch, judge
from safecf.als.population import Population
from safecf.als.risk import Mean, Risk, SmoothedCVaR
from safecf.als.solvers import RowSolver
from safecf.als.sweeps import row_solvers_for
from safecf.models.als import ALSModel
from safecf.models.history import pack_history, unpack_history
from safecf.models.options import check_options, draw_seed
from safecf.models.scaling import auto_options, scaled_options
from safecf.models.training import FOLD_IN
from safecf.spark import building
from safecf.spark.blocks import Layout, lay_out
from safecf.spark.checkpoints import Checkpoints
from safecf.spark.engine import ITEMS, USERS, Engine, Result
from safecf.spark.failures import plain_errors
from safecf.spark.frames import factor_frame
from safecf.spark.session import check_folder, checkpoint_dir, plain_plans
from safecf.spark.tasks import Eigenbasis, Setting, StepSums, Weighing

# Bytes of a side's factors in float32 that the driver holds and sends with the tasks.
HELD = 64 * 2**20
# Of checkpoints: trainings of another one do not go on from them.
FORMAT = 4
SIDES = "users", "items"
LOWER_PULL = "lower regParam or unobservedWeight"

log = logging.getLogger(__name__)


def memory_and_disk() -> StorageLevel:
    """Return where frames are kept unless told otherwise."""
    return StorageLevel.MEMORY_AND_DISK


@dataclass(frozen=True)
class Options:
    """How the work is cut and kept.

    `broadcast` says which sides' factors the driver holds: "auto" small ones, "always" the smaller
    one in any case, "never" none.
    """

    user_blocks: int = 10
    item_blocks: int = 10
    broadcast: str = "auto"
    storage_level: StorageLevel = field(default_factory=memory_and_disk)
    final_storage_level: StorageLevel = field(default_factory=memory_and_disk)
    checkpoint_interval: int = 10
    checkpoint_dir: str | None = None
    cached: bool = False  # whether the ratings are

    def holds(self, factors: int, rows: tuple[int, int]) -> tuple[bool, bool]:
        """Whether the driver holds the factors of users and of items, given how many they are."""
        small = [4 * factors * each <= HELD and self.broadcast != "never" for each in rows]
        if self.broadcast == "always":
            smaller = int(rows[1] <= rows[0])
            small[smaller] = True
        return small[0], small[1]


@dataclass(frozen=True)
class Trained:
    """What training has found.

    `users` has id, features, weight (w_u of the last epoch) and mass (m_u), `items` id, features
    and share, that of the users who have the item. `fitted` is for JSON.
    """

    users: DataFrame
    items: DataFrame
    fitted: dict[str, Any]


def train(local: ALSModel, ratings: DataFrame, options: Options) -> Trained:
    """Train the model that `local` describes on ratings with user, item and confidence."""
    check_options(local.get_params(), type(local))
    solver = local.make_solver()
    if not row_solvers_for(solver):
        raise ValueError(f"{type(local).__name__} has no Spark version: try SAFER2")
    spark = ratings.sparkSession
    names = auto_options(local)
    loss = local.settled(dict.fromkeys(names, 1.0)).make_loss()
    root = options.checkpoint_dir or checkpoint_dir(spark)
    if root is not None:
        check_folder(spark, root)
    options = replace(options, checkpoint_dir=root)
    indices: list[DataFrame] = []
    with ExitStack() as ending, plain_errors(local, indices):
        layout = lay_out(
            ratings,
            (options.user_blocks, options.item_blocks),
            loss,
            local.factors,
            partial(options.holds, local.factors),
            options.storage_level,
            ending,
            cached=options.cached,
        )
        indices += layout.users.index, layout.items.index
        resolved = scaled_options(names, layout.sums, layout.items.size)
        ending.enter_context(plain_plans(spark))
        run = _Run(spark, local, options, layout, resolved)
        ending.callback(run.engine.stop)
        return run.train()


class _Pending(NamedTuple):
    """An epoch whose losses are not known yet."""

    xi: float
    weight: float  # sum_u w_u
    moved: float  # sum_u (w_u - old)^2
    users: StepSums
    items: StepSums
    seconds: dict[str, float]


class _Run:
    """One training."""

    def __init__(
        self,
        spark: SparkSession,
        local: ALSModel,
        options: Options,
        layout: Layout,
        resolved: dict[str, float],
    ) -> None:
        self.spark, self.local, self.options, self.layout = spark, local, options, layout
        self.resolved = resolved
        loss, ridge, risk, solver = local.settled(resolved).parts()
        if isinstance(risk, SmoothedCVaR):
            risk = replace(risk, sample=1.0)  # the sample is that of the blocks' first users
        self.risk: Risk = risk
        self.equal = isinstance(risk, Mean)  # all weights are, in all epochs
        self.solver = cast(RowSolver, solver)  # `train` has checked that
        self.history: list[Epoch] = []
        self.pending: _Pending | None = None
        self.weighing: Weighing | None = None
        self.epoch = 0
        self.clock = Clock()
        self.interval = options.checkpoint_interval
        root = options.checkpoint_dir
        if not (layout.users.held or layout.items.held):
            # each state follows from both earlier ones: plans would double in every half-step
            self.interval = 1
            if root is None:
                raise ValueError(
                    "the factors of both sides are spread over the executors, which needs a "
                    "folder to write them to after every epoch: set checkpointDir, or let the "
                    'driver hold the smaller side by broadcast="auto" and a lower rank'
                )
        elif root is None and not (layout.users.held and layout.items.held):
            log.warning("plans grow with every epoch without checkpoints: set checkpointDir")
        seed = draw_seed(local.random_state)
        self.identity = {
            "model": type(local).__name__,
            "options": {
                name: repr(value)
                for name, value in local.get_params().items()
                if name != "num_threads"
            },
            "blocks": [options.user_blocks, options.item_blocks],
            "held": [layout.users.held, layout.items.held],
            "sizes": [layout.users.size, layout.items.size],
            "data": layout.fingerprint,
            "interval": self.interval,
            "seed": seed,
            "summed": [building.HOT, building.BIG, building.EQUATIONS],
            "format": FORMAT,
        }
        named = hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:16]
        self.checkpoints = None
        if root is not None:
            self.checkpoints = Checkpoints(spark, f"{root.rstrip('/')}/safecf-{named}")
        self.earlier = None if self.checkpoints is None else self.checkpoints.newest()
        setting = Setting(
            factors=local.factors,
            loss=loss,
            ridge=ridge,
            risk=risk,
            num_users=layout.users.size,
            num_items=layout.items.size,
            offsets=(layout.users.offsets, layout.items.offsets),
            marks=(layout.users.marks, layout.items.marks),
            seed=seed,
            init_std=local.init_std,
        )
        self.setting = setting
        self.engine = Engine(spark, setting, layout, options.storage_level)
        self.sample = float(getattr(local, "quantile_sample", 1.0))
        self.share = self.engine.sample_share(self.sample)
        remedy = f"{LOWER_PULL}, set ridgeInRisk=True"
        self.collapse = Collapse(risk.tail, remedy, warned=ridge.in_risk)
        self.unmoved = 0.0 if self.earlier or not ridge.in_risk else 1.0

    def train(self) -> Trained:
        """Run the epochs that are left, and fold the users in."""
        engine, setting = self.engine, self.setting
        gram = self._resume() if self.earlier else engine.start()
        # whether the users' half-step needs no losses: at weights that are known beforehand
        known = setting.ridge.in_risk or self.equal
        weight = 1.0 if setting.ridge.in_risk else self.risk.tail
        while self.epoch < self.local.iterations:
            with self.clock("users"):
                basis = engine.eigenbasis(gram, self.solver)
                found = self._users(basis, self.solver if known else None, weight=weight)
            users = self._measured(found)
            with self.clock("quantile"):
                weighing = self._weigh(users)
            if not known:
                with self.clock("users"):
                    found = engine.step(USERS, basis, self.solver, now=weighing)
            with self.clock("quantile"):
                weighted, weight_sum, moved = self._weighted_gram(weighing, found)
            with self.clock("items"):
                basis = engine.eigenbasis(weighted, self.solver)
                items = engine.step(ITEMS, basis, self.solver, weighing=weighing)
            assert items.gram is not None
            gram = items.gram
            engine.settle(weighing)
            self.weighing, self.epoch = weighing, self.epoch + 1
            self.pending = _Pending(
                weighing.xi, weight_sum, moved, found.sums, items.sums, self.clock.lap()
            )
            self._checkpoint(gram)
        basis = engine.eigenbasis(gram, FOLD_IN)
        users = self._measured(self._users(basis, FOLD_IN, weight=1.0, zero=True))
        if not self.collapse.reported:
            zero = self.layout.sums.mass / self.layout.users.size / 2
            judge(users, zero, self.risk, self.unmoved, LOWER_PULL, "maxIter")
        return self._trained()

    def _users(self, basis: Eigenbasis, solver: RowSolver | None, **options: Any) -> Result:
        """Measure the users' losses, and solve for them if a solver is given."""
        return self.engine.step(
            USERS, basis, solver, before=self.weighing, measure=True, share=self.share, **options
        )

    def _measured(self, found: Result) -> Population:
        """Complete the record of the last epoch; return the losses."""
        users = self.engine.population(found, self.sample)
        if self.pending is None:
            return users
        xi, weight, moved, of_users, of_items, seconds = self.pending
        self.pending = None
        ridge = of_items.penalty
        if not self.setting.ridge.in_risk:
            ridge += of_users.penalty
        risk, tail, count = self.risk.scaled(users), self.risk.tail, self.layout.users.size
        mean_loss = found.sums.loss / count
        total = mean_loss if self.equal else risk.total(users, xi) / (tail * users.size)
        record = Epoch(
            epoch=self.epoch,
            objective=total + ridge / 2 / (tail * count),
            mean_loss=mean_loss,
            var=users.value_at_risk(tail),
            cvar=users.tail_mean(tail),
            xi=xi,
            mean_weight=weight / count,
            residual_users=math.sqrt(of_users.change),
            residual_items=math.sqrt(of_items.change),
            residual_weights=math.sqrt(moved),
            seconds=seconds,
            bandwidth=risk.bandwidth,
        )
        record.check_finite()
        self.collapse.watch(record, of_users.vanished / count)
        self.history.append(record)
        log.info(
            "epoch %d: objective %.5g, CVaR %.5g, %.2f s",
            record.epoch,
            record.objective,
            record.cvar,
            sum(seconds.values()),
        )
        return users

    def _weigh(self, users: Population) -> Weighing:
        """Solve for xi, given the losses."""
        risk = self.risk.scaled(users if self.epoch else None)
        start = risk.start(users) if self.weighing is None else self.weighing.xi
        xi = risk.quantile(users, start, None)
        step = risk.step(users) if self.setting.ridge.in_risk else 1.0
        self.unmoved *= 1 - step
        return Weighing(risk, xi, step)

    def _weighted_gram(
        self, weighing: Weighing, found: Result
    ) -> tuple[NDArray[np.float64], float, float]:
        """Return X' diag(w) X, sum w_u and sum (w_u - old)^2."""
        if self.equal and found.gram is not None:
            return self.risk.tail * found.gram, self.risk.tail * self.layout.users.size, 0.0
        return self.engine.weigh(weighing)

    def _checkpoint(self, gram: NDArray[np.float64]) -> None:
        """Write what is needed to go on from here, and read it back: lineage ends there."""
        if self.checkpoints is None or self.interval < 1 or self.epoch % self.interval:
            return
        weighing, pending = self.weighing, self.pending
        assert weighing is not None
        assert pending is not None
        record = {
            "training": self.identity,
            "history": pack_history(self.history),
            "pending": [*pending[:3], list(pending.users), list(pending.items), pending.seconds],
            "weighing": [weighing.xi, weighing.step, weighing.risk.bandwidth],
            "gram": gram.tolist(),
        }
        tables = {name: self.engine.saved(side) for side, name in enumerate(SIDES)}
        written = self.checkpoints.write(self.epoch, tables, record)
        for side, name in enumerate(SIDES):
            if self.engine.factors[side] is None:
                self.engine.restore(side, self.checkpoints.table(written, name))

    def _resume(self) -> NDArray[np.float64]:
        """Go on from the checkpoint; return Y'Y."""
        record, checkpoints = self.earlier, self.checkpoints
        assert record is not None
        assert checkpoints is not None
        self.epoch, self.history = record["epoch"], unpack_history(record, Epoch)
        xi, weight, moved, users, items, seconds = record["pending"]
        self.pending = _Pending(xi, weight, moved, StepSums(*users), StepSums(*items), seconds)
        xi, step, bandwidth = record["weighing"]
        risk = self.risk
        if isinstance(risk, SmoothedCVaR):
            risk = replace(risk, bandwidth=bandwidth, relative=False)
        self.weighing = Weighing(risk, xi, step)
        self.engine.hold_users()
        for side, name in enumerate(SIDES):
            self.engine.restore(side, checkpoints.table(record["name"], name))
        log.info("going on after epoch %d, from %s", self.epoch, checkpoints.folder)
        return np.array(record["gram"])

    def _trained(self) -> Trained:
        """Return frames of the factors, which outlive the training's own."""
        count = self.layout.users.size
        frames = [
            factor_frame(self.engine, USERS, {"weight": ("weights", 1.0), "mass": ("mass", 1.0)}),
            factor_frame(self.engine, ITEMS, {"share": ("degree", 1.0 / count)}),
        ]
        with ExitStack() as failed:
            for frame in frames:
                failed.callback(frame.unpersist)
                frame.persist(self.options.final_storage_level)
                frame.count()
            failed.pop_all()
        resolved = dict(self.resolved)
        bandwidth = self.history[-1].bandwidth
        if getattr(self.local, "bandwidth", None) == "auto" and bandwidth is not None:
            resolved["bandwidth"] = bandwidth
        fitted = {
            "seed": self.setting.seed,
            "num_users": count,
            "num_items": self.layout.items.size,
            "resolved": resolved,
            "history": pack_history(self.history),
        }
        return Trained(frames[0], frames[1], fitted)
