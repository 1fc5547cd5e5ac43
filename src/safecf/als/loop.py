"""The one loop: rotate -> losses -> xi -> weights -> a sweep over users and items."""

import math
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.als.capabilities import HalfSteps, PerRow, RowReport
from safecf.als.population import Population
from safecf.als.risk import Risk
from safecf.als.rows import Problem
from safecf.als.solvers import Solver
from safecf.als.state import State
from safecf.als.sweeps import Sweep, make_sweep
from safecf.errors import ConvergenceWarning, DivergenceError, SolveError, warn

# A user has vanished when its squared norm is below this share of the largest one.
VANISHED = 1e-4
# Share of vanishing users that is taken for a collapse: on MovieLens-1M they are 35 % to 60 % at
# bandwidths that are too small, and none at bandwidths that work.
COLLAPSED = 0.25
# Nothing was learned if the mean loss is above this share of that of factors of zero.
USELESS = 0.999
# Rows of the start that one generator draws.
DRAWN = 4096
# The weights have hardly moved if this share of their way is left after all epochs.
UNMOVED = 0.5


@dataclass(frozen=True)
class Epoch:
    """What one epoch did; losses and objective are those after it, with the ridge if in the risk.

    `objective` is risk + ridge terms, per user and unit of weight (the paper's Psi + Omega).
    `var` and `cvar` are those of the users' losses, or of the groups' where the risk is theirs.
    `residual_*` are the norms of the change of U, V and the weights z. `seconds` is by step.
    `bandwidth` is h, if the risk has one; a relative one is that of the losses after the epoch.
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
    bandwidth: float | None = None

    def check_finite(self) -> None:
        """Raise if a number is not finite; an infinite bandwidth means equal weights."""
        for name, value in vars(self).items():
            if isinstance(value, float) and name != "bandwidth":
                check_finite(name, value, self.epoch)


def check_finite(name: str, value: float, epoch: int) -> None:
    """Raise if a number of an epoch is not finite."""
    if not math.isfinite(value):
        raise SolveError(
            f"{name} of epoch {epoch} is {value}: losses or factors are beyond float32; lower "
            "init_std, unobserved_weight or regularization, or scale the weights of the "
            "interactions"
        )


@dataclass(frozen=True)
class Training:
    """A problem with everything that is needed to minimise it."""

    problem: Problem
    risk: Risk
    solver: Solver
    backend: HalfSteps
    seed: int

    def start(self, factors: int, init_std: float) -> State:
        """x_u, y_i ~ N(0, init_std^2 / d) for the users and items that count."""
        scale, sides = np.float32(init_std / np.sqrt(factors)), []
        for number, active in enumerate((self.problem.active_users, self.problem.active_items)):
            side = normals(active.size, factors, (self.seed, number))
            side *= scale
            side[~active] = 0
            sides.append(self.backend.place(side))
        weights = self.risk.tail * self.problem.active_users.astype(np.float64)
        return State(sides[0], sides[1], self.backend.place_vector(weights))

    def epochs(self, state: State, iterations: int) -> Generator[Epoch, bool | None, None]:
        """Train up to epoch `iterations`, changing `state` in place, one record per epoch.

        Send True to end training with the epoch of the last record. At its end, it warns if
        nothing was learned. A record whose numbers are not finite is an error.

        An epoch that does not end (an error, Ctrl-C) leaves `state.items` and `state.epoch` as
        they were before it, to which `state.users` need not belong. One that diverges ends
        training with a warning, or, if there is no earlier one to stay with, with an error.
        """
        problem, clock = self.problem, Clock()
        sums = self.backend.loss_sums
        sweep = make_sweep(problem, self.backend, self.solver)
        remedy = self._lower_pull()
        if self.risk.bandwidth is not None:
            remedy += ", set ridge_in_risk=True, or raise bandwidth or quantile_sample"
        collapse = Collapse(self.risk.tail, remedy, warned=not sweep.forgets)
        unmoved = 0.0 if state.epoch else 1.0

        def population() -> Population:
            sweep.prepare(state, clock)
            users = problem.population(sweep.losses(state, clock), sums)
            check_finite("mean_loss", users.mean_loss, state.epoch + 1)
            return users

        with _undone_on_error(sweep, state):
            users = population()
        while state.epoch < iterations:
            try:
                with _undone_on_error(sweep, state):
                    with clock("quantile"):
                        risk = self.risk.scaled(users if state.epoch else None)
                        rng = np.random.default_rng([self.seed, state.epoch])
                        start = risk.start(users) if state.xi is None else state.xi
                        xi = risk.quantile(users, start, rng)
                        inside = risk.weights(users, xi)
                        weights = problem.of_all_users(inside, state.weights)
                        if problem.ridge.in_risk:
                            step = risk.step(users)
                            weights = _between(state.weights, weights, step)
                            unmoved *= 1 - step
                    solved = sweep.run(state, weights, clock)
                    users = population()
                    with clock("quantile"):
                        kept = sweep.kept_weights(state, weights)
                        measured = {
                            # a mean over the users that count, as that of their losses
                            "mean_weight": problem.population(weights, sums).mean_loss,
                            "residual_weights": math.sqrt(((kept - state.weights) ** 2).sum()),
                            **self._measures(users, xi, solved),
                        }
                    record = Epoch(state.epoch + 1, xi=xi, seconds=clock.lap(), **measured)
                    record.check_finite()
                    below = solved[0].below(VANISHED * solved[0].largest(), problem.counts)
                    collapse.watch(record, below / users.size)
            except DivergenceError as problem_found:
                _end_diverging(state.epoch, problem_found)
                return
            state.weights, state.xi, state.epoch = kept, xi, record.epoch
            if (yield record):
                break
        if sweep.solves and not collapse.reported:
            unmoved = unmoved if problem.ridge.in_risk else 0.0
            judge(users, problem.loss_of_zero, self.risk, unmoved, self._lower_pull())

    def _lower_pull(self) -> str:
        """Advise to lower the options that pull factors to zero, but not those that are 0."""
        pulls = {
            "regularization": self.problem.ridge.regularization,
            "unobserved_weight": self.problem.loss.unobserved_weight,
        }
        names = [name for name, value in pulls.items() if value > 0]
        if self.problem.interactions.users.weights is not None:
            names.append("the largest weights of the interactions")
        return f"lower {' or '.join(names)}" if names else "raise init_std"

    def _measures(
        self, users: Population, xi: float, solved: tuple[RowReport, RowReport]
    ) -> dict[str, Any]:
        """Return the fields of `Epoch` that follow from the losses and the row reports."""
        problem, risk = self.problem, self.risk.scaled(users)
        ridge = solved[1].penalty(problem.unit_item_rows.ridge)
        if not problem.ridge.in_risk:
            ridge += solved[0].penalty(problem.counted(problem.unit_user_rows.ridge))
        ranked = risk.ranked(users)
        return {
            "objective": (risk.total(users, xi) + ridge / 2) / (risk.tail * users.size),
            "mean_loss": users.mean_loss,
            "var": ranked.value_at_risk(risk.tail),
            "cvar": ranked.tail_mean(risk.tail),
            "residual_users": math.sqrt(solved[0].change()),
            "residual_items": math.sqrt(solved[1].change()),
            "bandwidth": risk.bandwidth,
        }


def normals(
    rows: int, columns: int, seed: tuple[int, int], first: int = 0, threads: int | None = None
) -> NDArray[np.float32]:
    """Draw rows `first` and following from N(0, 1), on all cores unless `threads` is given.

    Every DRAWN rows have a generator of their own, so that a part has the bits of the whole.

    >>> normals(2, 3, (0, 0)).shape
    (2, 3)
    """
    found = np.empty((rows, columns), dtype=np.float32)
    number, side = seed

    def draw(chunk: int) -> None:
        # the epochs' generators have two numbers, which is as if the third one were 0
        rng = np.random.default_rng([number, side, 1 + chunk])
        start, stop = chunk * DRAWN - first, (chunk + 1) * DRAWN - first
        skipped = max(0, -start)
        here = found[start + skipped : stop]
        if skipped:
            rng.standard_normal((skipped, columns), dtype=np.float32)
        rng.standard_normal(out=here, dtype=np.float32)

    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(draw, range(first // DRAWN, -(-(first + rows) // DRAWN))):
            pass
    return found


def _between(old: PerRow, new: PerRow, step: float) -> PerRow:
    """Return old + step (new - old)."""
    return new if step == 1 else old + step * (new - old)


@contextmanager
def _undone_on_error(sweep: Sweep, state: State) -> Iterator[None]:
    """Restore the state if the block raises."""
    kept = sweep.backup(state)
    try:
        yield
    except BaseException:
        state.restore(kept)
        raise


def _end_diverging(epochs: int, problem: DivergenceError) -> None:
    """Tell that training ends after so many epochs; raise if there are none."""
    message = f"training diverges at epoch {epochs + 1}: {problem}"
    if epochs == 0:
        raise DivergenceError(message) from None
    warn(f"{message}. The model is that of epoch {epochs}", ConvergenceWarning)


@dataclass
class Collapse:
    """Warns, once, of factors that vanish: too much regularization, or too small a bandwidth.

    With the latter, users of weight zero get factors of zero, come back as the worst losses, and
    so on: every epoch forgets what the last one did. One epoch may overshoot; it takes two in a
    row.
    """

    tail: float
    remedy: str
    warned: bool
    reported: bool = False
    suspected: bool = False

    def watch(self, record: Epoch, vanished: float) -> None:
        """Look at an epoch, and at the share of users whose factors have vanished."""
        before = self.suspected
        off = abs(record.mean_weight - self.tail) > self.tail / 2
        self.suspected = vanished > COLLAPSED or off
        if self.warned or not (before and self.suspected):
            return
        self.warned = self.reported = True
        what = f"{vanished:.0%} of the users have vanishing factors"
        if off:
            what += f", the mean weight is {record.mean_weight:.2g} where {self.tail:.2g} is wanted"
        warn(
            f"training collapses at epoch {record.epoch}: {what}; {self.remedy}",
            ConvergenceWarning,
        )


def judge(
    users: Population,
    zero: float,
    risk: Risk,
    unmoved: float,
    lower_pull: str,
    iterations: str = "iterations",
) -> None:
    """Warn after the last epoch if nothing was learned, or the weights have hardly moved.

    `zero` is the mean loss of factors of zero, `unmoved` the share of the first weights that is
    left, `lower_pull` says what to lower, and `iterations` is the option that sets the epochs.
    """
    if users.mean_loss > USELESS * zero:
        warn(
            f"nothing was learned: the mean loss is {users.mean_loss:.3g}, that of factors of "
            f"zero {zero:.3g}; {lower_pull}, or raise {iterations}"
            + (", tail or bandwidth" if risk.bandwidth is not None else ""),
            ConvergenceWarning,
        )
    elif unmoved > UNMOVED:
        warn(
            f"the users' weights have only gone {1 - unmoved:.1%} of their way: bandwidth="
            f"{risk.bandwidth:g} is far below the losses' standard deviation of "
            f"{risk.ranked(users).spread:.2g}; raise bandwidth or {iterations}",
            ConvergenceWarning,
        )


class Clock:
    """Seconds by step, started anew by `lap`."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        """Add what the context takes to a step."""
        begin = time.perf_counter()
        yield
        elapsed = time.perf_counter() - begin
        self._seconds[step] = self._seconds.get(step, 0.0) + elapsed

    def lap(self) -> dict[str, float]:
        """Return the seconds, and start anew."""
        seconds, self._seconds = self._seconds, {}
        return seconds
