"""The one loop: losses -> xi -> weights -> a sweep over users and items."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from safecf.als.loss import Vector
from safecf.als.quantile import conditional_value_at_risk, value_at_risk
from safecf.als.risk import Risk
from safecf.als.rows import Problem
from safecf.als.solvers import Solver
from safecf.als.sweeps import State, make_sweep
from safecf.backends.base import Backend
from safecf.errors import ConvergenceWarning, warn

# Share of vanishing users that is taken for a collapse: on MovieLens-1M they are 35 % to 60 % at
# bandwidths that are too small, and none at bandwidths that work.
VANISHED = 0.25


@dataclass(frozen=True)
class Epoch:
    """What one epoch did; losses and objective are those after it.

    `objective` is risk + ridge terms, per user and unit of weight (the paper's Psi + Omega).
    `residual_*` are the norms of the change of U, V and the weights z. `seconds` is by step.
    """

    epoch: int
    objective: float
    mean_loss: float
    var: float
    cvar: float
    xi: float
    mean_weight: float
    residual_users: float
    residual_items: float
    residual_weights: float
    seconds: dict[str, float] = field(compare=False)


@dataclass(frozen=True)
class Training:
    """A problem with everything that is needed to minimise it."""

    problem: Problem
    risk: Risk
    solver: Solver
    backend: Backend
    seed: int

    def start(self, factors: int, init_std: float) -> State:
        """x_u, y_i ~ N(0, init_std^2 / d) for the users and items that have interactions."""
        interactions = self.problem.interactions
        rng = np.random.default_rng(self.seed)
        sides = []
        for matrix in (interactions.users, interactions.items):
            side = rng.standard_normal((matrix.num_rows, factors), dtype=np.float32)
            side *= np.float32(init_std / np.sqrt(factors))
            side[np.diff(matrix.indptr) == 0] = 0
            sides.append(side.astype(self.backend.dtype, copy=False))
        weights = self.risk.tail * self.problem.active_users.astype(np.float64)
        return State(users=sides[0], items=sides[1], weights=weights)

    def epochs(self, state: State, iterations: int) -> Iterator[Epoch]:
        """Train up to epoch `iterations`, changing `state` in place, one record per epoch.

        An epoch that does not end (an error, Ctrl-C) leaves `state.items` and `state.epoch` as
        they were before it.
        """
        problem, risk = self.problem, self.risk
        active, clock, warned = problem.active_users, _Clock(), False
        sweep = make_sweep(problem, self.backend, self.solver)

        with clock("losses"):
            losses = sweep.losses(state)[active]

        while state.epoch < iterations:
            kept = state.items.copy()
            try:
                with clock("quantile"):
                    rng = np.random.default_rng([self.seed, state.epoch])
                    start = risk.start(losses) if state.xi is None else state.xi
                    xi = risk.quantile(losses, start, rng)
                    weights = np.zeros_like(state.weights)
                    weights[active] = risk.weights(losses, xi)
                users, items = sweep.run(state, weights, clock)
                with clock("losses"):
                    losses = sweep.losses(state)[active]
                ridge = problem.unit_user_rows.ridge @ users.norm
                ridge += problem.unit_item_rows.ridge @ items.norm
                scale = risk.tail * problem.num_users
                record = Epoch(
                    epoch=state.epoch + 1,
                    objective=float(risk.total(losses, xi) + ridge / 2) / scale,
                    mean_loss=float(losses.mean()),
                    var=value_at_risk(losses, risk.tail),
                    cvar=conditional_value_at_risk(losses, risk.tail),
                    xi=xi,
                    mean_weight=float(weights[active].mean()),
                    residual_users=float(np.sqrt(users.change.sum())),
                    residual_items=float(np.sqrt(items.change.sum())),
                    residual_weights=float(np.linalg.norm(weights - state.weights)),
                    seconds=clock.lap(),
                )
                warned = warned or _warn_if_collapsed(record, users.norm[active], risk.tail)
            except BaseException:
                state.items[:] = kept
                raise
            state.weights, state.xi, state.epoch = weights, xi, record.epoch
            yield record


def _warn_if_collapsed(record: Epoch, norms: Vector, tail: float) -> bool:
    """Tell of factors that vanish: too much regularization, or a bandwidth that is too small.

    With the latter, users of weight zero get factors of zero, come back as the worst losses, and
    so on: every epoch forgets what the last one did.
    """
    vanished = float(np.mean(norms <= 1e-4 * norms.max()))
    if vanished <= VANISHED and abs(record.mean_weight - tail) <= tail / 2:
        return False
    warn(
        f"training collapses at epoch {record.epoch}: {vanished:.0%} of the users have vanishing "
        f"factors, the mean weight is {record.mean_weight:.2g} where {tail:.2g} is wanted; lower "
        "regularization, or, with a smoothed CVaR, raise bandwidth or quantile_sample",
        ConvergenceWarning,
    )
    return True


class _Clock:
    """Seconds by step, started anew by `lap`."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        elapsed = time.perf_counter() - begin
        self._seconds[step] = self._seconds.get(step, 0.0) + elapsed

    def lap(self) -> dict[str, float]:
        seconds, self._seconds = self._seconds, {}
        return seconds
