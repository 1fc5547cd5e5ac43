"""Training of ALS models: a checked plan, and its epochs."""

import numbers
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import ArrayLike

from safecf.als.capabilities import HalfSteps, Search
from safecf.als.loop import Epoch, Training
from safecf.als.loss import Loss, Ridge
from safecf.als.risk import GroupCVaR, Risk
from safecf.als.rows import Problem
from safecf.als.solvers import Exact, Solver
from safecf.als.state import State
from safecf.als.sweeps import capability_for, row_solvers_for
from safecf.backends import make_backend
from safecf.data.matrices.ids import IdArray
from safecf.data.matrices.interactions import Interactions
from safecf.defaults import AUTO
from safecf.free_memory import check_free
from safecf.models import files
from safecf.models.callbacks import stop_requested
from safecf.models.checkpoint import Run, fingerprints, read_checkpoint, read_run, write_checkpoint
from safecf.models.options import check_options, draw_seed
from safecf.models.per_user import check_user_groups, check_user_weight
from safecf.models.scaling import resolve

if TYPE_CHECKING:
    from safecf.models.als import ALSModel

FOLD_IN = Exact()  # how users and items are folded in, whatever training uses

Path = str | os.PathLike[str]
Watcher = Callable[[Epoch], object]


class Parts(NamedTuple):
    """What a named model is composed of."""

    loss: Loss
    ridge: Ridge
    risk: Risk
    solver: Solver


@dataclass(frozen=True)
class Plan:
    """What training needs, all of it checked, and where it starts."""

    run: Run
    training: Training
    groups: GroupCVaR | None
    state: State
    history: list[Epoch]
    resolved: dict[str, float]  # the "auto" options that depend on the data alone

    def train(self, iterations: int, watchers: Iterable[Watcher]) -> KeyboardInterrupt | None:
        """Run the loop until it ends, a watcher returns True, or Ctrl-C is pressed: return that.

        The watchers see every epoch's record, which is the last one of `history` by then.
        """
        epochs = self.training.epochs(self.state, iterations)
        try:
            for record in epochs:
                self.history.append(record)
                if stop_requested([watch(record) for watch in watchers]):
                    with suppress(StopIteration):
                        epochs.send(True)
        except KeyboardInterrupt as interrupt:
            if not self.history:
                raise
            return interrupt
        return None

    def resolved_after(self, record: Epoch) -> dict[str, float]:
        """Return the values of all "auto" options after an epoch."""
        found = dict(self.resolved)
        if self.run.options.get("bandwidth") == AUTO and record.bandwidth is not None:
            found["bandwidth"] = record.bandwidth
        return found

    def checkpoint(self, path: Path) -> Watcher:
        """Return a watcher that writes a checkpoint after every epoch."""

        def write(record: Epoch) -> None:
            fetch = self.training.backend.fetch
            write_checkpoint(path, self.run, self.state.map(fetch, fetch), self.history)

        return write

    def group_weights(self) -> dict[str | int, float] | None:
        """Return how far each group is inside the tail, by label; None without groups."""
        if self.groups is None:
            return None
        training = self.training
        weights = training.problem.population(self.state.weights, training.backend.loss_sums)
        return self.groups.group_weights(weights)


def make_plan(
    model: "ALSModel",
    user_items: Any,
    user_weight: ArrayLike | None,
    user_groups: ArrayLike | None,
    checkpoint: Path | None,
    resume: Path | None,
) -> Plan:
    """Check everything, and return where training starts; the arguments are those of `fit`."""
    kind, options = type(model), model.get_params()
    check_options(options, kind)
    name, solver = kind.__name__, model.make_solver()
    needs = {capability_for(solver): name, Search: name}
    solvers = {FOLD_IN.name: f"fold-in of {name}", **dict.fromkeys(row_solvers_for(solver), name)}
    backend = make_backend(model.backend, model.num_threads, needs, solvers, model.device)
    for argument, path in (("checkpoint", checkpoint), ("resume", resume)):
        if path is not None:
            files.check_path(argument, path)
    replaced = None
    if checkpoint is not None:
        replaced = files.check_checkpoint_target(checkpoint)
        same = resume is not None and files.with_suffix(resume) == files.with_suffix(checkpoint)
        if same and resume is not None and not files.located(resume).is_file():
            resume = None
    earlier = None if resume is None else read_checkpoint(resume)
    if not isinstance(user_items, Interactions):
        user_items = Interactions.from_csr(user_items)
    if earlier is None or isinstance(model.random_state, numbers.Integral):
        seed = draw_seed(model.random_state)
    else:
        seed = earlier[0].seed
    count = check_user_weight(user_weight, user_items.users)
    resolved = resolve(model, user_items, count)
    loss, ridge, risk, solver = model.settled(resolved).parts()
    problem = Problem(user_items, loss, ridge, risk.tail, count)
    groups = labels = None
    if user_groups is not None:
        labels = check_user_groups(user_groups, problem.active_users)
        groups = _group_risk(name, risk, labels[problem.active_users])
    data = {} if checkpoint is None and resume is None else fingerprints(problem, labels)
    run = Run(name, options, data, seed)
    if earlier is not None:
        before, state, history = earlier
        before = replace(before, options={**kind.earlier_options, **before.options})
        shape = (user_items.num_users, user_items.num_items, model.factors)
        run.check_continues(before, state, shape)
    if checkpoint is not None and replaced is not None:
        _check_replaced(model, run, checkpoint, replaced)
    _check_memory(model, user_items, backend)
    training = Training(problem.place(backend), groups or risk, solver, backend, seed)
    with backend.guarded():
        if earlier is None:
            start = training.start(model.factors, model.init_std)
            return Plan(run, training, groups, start, [], resolved)
        placed = state.map(backend.place, backend.place_vector)
        return Plan(run, training, groups, placed, history, resolved)


def _check_replaced(model: "ALSModel", run: Run, path: Path, header: dict[str, Any]) -> None:
    """Raise if the checkpoint with this header is of another run; any seed will do for None."""
    with files.naming(path):
        before, epoch = read_run(header), files.field(header, "epoch", int)
    before = replace(before, options={**model.earlier_options, **before.options})
    if not isinstance(model.random_state, numbers.Integral):
        before = replace(before, seed=run.seed)
    run.check_replaces(path, before, epoch)


def _check_memory(model: "ALSModel", data: Interactions, backend: HalfSteps) -> None:
    """Raise if what training holds on the host needs more memory than is free there."""
    users, items, factors = data.num_users, data.num_items, int(model.factors)
    needed = backend.host_bytes(users, items, data.nnz, factors)
    what = f"training {factors} factors of {users:,} users and {items:,} items"
    check_free(needed, what, "lower factors, or drop users and items without interactions")


def _group_risk(name: str, risk: Risk, labels: IdArray) -> GroupCVaR:
    """Return the risk of groups, given the labels of the users that count."""
    grouped: Callable[[IdArray], GroupCVaR] | None = getattr(risk, "grouped", None)
    if grouped is None:
        raise TypeError(
            f"user_groups needs a smoothed CVaR, which {name} does not have; leave it out, or try "
            "SAFER2, SAFER2CG or SAFER2PP"
        )
    return grouped(labels)
