"""`ALSModel`: from options to a trained model, by the one loop."""

import numbers
import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from safecf.als.group_risk import GroupCVaR
from safecf.als.loop import Epoch, Training
from safecf.als.rows import Problem
from safecf.als.solvers import SOLVERS, Exact, Solver
from safecf.als.sweeps import State, naming
from safecf.data.matrices.ids import IdArray
from safecf.data.matrices.interactions import Interactions
from safecf.errors import choose
from safecf.models import files
from safecf.models.checkpoint import Run, fingerprints, read_checkpoint, write_checkpoint
from safecf.models.options import check_options, draw_seed
from safecf.models.per_user import check_user_groups, check_user_weight
from safecf.models.recommender import Callback, asked_to_stop, check_callback
from safecf.models.stored import Stored
from safecf.progress import EPOCHS, progress_bar

Path = str | os.PathLike[str]


class Plan(NamedTuple):
    """What training needs, all of it checked, and where it starts."""

    run: Run
    training: Training
    groups: GroupCVaR | None
    state: State
    history: list[Epoch]


class ALSModel(Stored):
    """sum_u w_u loss_u + 1/2 sum_u ridge_u |x_u|^2 + 1/2 sum_i ridge_i |y_i|^2 -> min.

    The risk says how much each user counts, w_u; loss and ridge say what for. After training the
    user factors are those with w_u = 1, so that a known user and a new user with the same history
    are one and the same.

    Parameters
    ----------
    factors
        d, the length of the factors.
    iterations
        Number of epochs.
    regularization
        lambda, the weight of the ridge.
    unobserved_weight
        b, the paper's beta_0: what every score, observed or not, is pulled to zero with.
    tail
        alpha, the share of worst-off users that is protected.
    solver
        How rows are solved in training: "exact", "cg", or "spectral-cg", which is "auto".
    tolerance
        Relative residual at which the iterative solvers stop.
    init_std
        sigma; the factors start at N(0, sigma^2 / d).
    random_state
        None, an integer, or one of numpy's generators. The integer makes results repeatable.
    num_threads
        0 means all cores. The results do not depend on it.
    backend
        "cpu", which is "auto", or "numpy", its slow and readable twin in float64.

    Attributes
    ----------
    user_factors, item_factors
        float32 arrays, one row per user or item.
    history
        One `Epoch` per epoch.
    user_weights, user_mass
        w_u of the last epoch, and m_u, the sum of the user's confidence weights.
    user_counts
        How many users each of them stands for: the `user_weight` of `fit`, else 1.
    group_weights
        By label, how far each group was inside the tail in the last epoch, if `fit` was given
        `user_groups`; else None.
    num_users, num_items
        |U| and |V| in training: those that have interactions, users by their counts.
    shape
        Number of users and items in training, with or without interactions.
    user_ids, item_ids
        The original ids, if `fit` was given an `Interactions` that has them; else None.
    seed
        The integer that all chance came from.
    """

    factors: int
    iterations: int
    solver: str
    tolerance: float
    init_std: float
    random_state: Any

    def __post_init__(self) -> None:
        self.history = []

    def _make_solver(self) -> Solver:
        """Return the solver of that name, with the tolerance if it has one."""
        kind = choose("solver", self.solver, SOLVERS)
        return Exact() if issubclass(kind, Exact) else kind(tolerance=float(self.tolerance))

    def fit(
        self,
        user_items: Any,
        show_progress: bool = True,
        callback: Callback | None = None,
        *,
        user_weight: ArrayLike | None = None,
        user_groups: ArrayLike | None = None,
        checkpoint: Path | None = None,
        resume: Path | None = None,
    ) -> Self:
        """Train as `Recommender.fit` says; `user_items` may also be an `Interactions`.

        `user_weight` has a number >= 0 for every user: one of weight 2 counts as two users with
        the same history, one of weight 0 as nobody, but gets recommendations all the same.

        `user_groups` has a label for every user, a string or an integer. The tail is then that of
        the groups by their mean losses, each of which counts the same: a share `tail` of the
        groups is protected, however small they are. Only SAFER2 models know of it.

        The callback may use the model, whose factors are those of the epoch that has just ended.
        Ctrl-C leaves the model as after the last full epoch, if there is one, and raises
        `KeyboardInterrupt`. After a second Ctrl-C, while the users are folded in, nothing is known
        of the stored users: their factors are zero. `fold_in` and `recalculate_user=True` are not
        affected.

        `checkpoint` names a file that is replaced after every epoch by all that is needed to go
        on from there. `resume` names such a file to go on from, up to `iterations` epochs: with
        the same options and data the result is, bit for bit, that of a run without a break. Both
        may be the same file, which then need not exist yet: a script that is started again
        after a crash goes on by itself.

        >>> SAFER2(random_state=0).fit(user_items, checkpoint="run.safetensors")
        >>> SAFER2(random_state=0).fit(user_items, resume="run.safetensors")
        """
        check_callback(callback)
        if checkpoint is not None:
            files.check_target(checkpoint)
        plan = self._plan(user_items, user_weight, user_groups, checkpoint, resume)
        run, training, _, state, history = plan

        def save(record: Epoch) -> None:
            if checkpoint is not None:
                write_checkpoint(checkpoint, run, state, history)

        def ask(record: Epoch) -> object:
            if callback is None:
                return None
            seconds = sum(record.seconds.values())
            return callback(record.epoch - 1, seconds, record.objective)

        with (
            self._restored_on_error(),
            progress_bar(
                run.model, state.epoch, self.iterations, *EPOCHS, show=show_progress, numbers=""
            ) as draw,
        ):

            def show(record: Epoch) -> None:
                numbers = f"objective {record.objective:.4g}  CVaR {record.cvar:.4g}"
                draw(record.epoch, numbers=numbers)

            self._remember(plan)
            interrupt = self._train(plan, (save, show, ask))
            self._publish(plan)
            try:
                with naming("user"):
                    self.user_factors = self._solve_users(training.problem.unit_user_rows)
            except KeyboardInterrupt as another:
                self.user_factors = np.zeros_like(self.user_factors)
                interrupt = another
            self._forget()  # what the fold-in has made ready: nobody may ask for it again
        if interrupt is not None:
            raise interrupt
        return self

    def _plan(
        self,
        user_items: Any,
        user_weight: ArrayLike | None,
        user_groups: ArrayLike | None,
        checkpoint: Path | None,
        resume: Path | None,
    ) -> Plan:
        """Check everything, and return where training starts."""
        options = self.get_params()
        check_options(options, type(self))
        loss, ridge, risk, solver = self._compose()
        if resume is not None and resume == checkpoint and not files.located(resume).is_file():
            resume = None
        earlier = None if resume is None else read_checkpoint(resume)
        if not isinstance(user_items, Interactions):
            user_items = Interactions.from_csr(user_items)
        if earlier is None or isinstance(self.random_state, numbers.Integral):
            seed = draw_seed(self.random_state)
        else:
            seed = earlier[0].seed
        count = check_user_weight(user_weight, user_items.users)
        problem = Problem(user_items, loss, ridge, risk.tail, count)
        groups = labels = None
        if user_groups is not None:
            labels = check_user_groups(user_groups, problem.active_users)
            groups = self._group_risk(labels[problem.active_users])
        data = {} if checkpoint is None and resume is None else fingerprints(problem, labels)
        run = Run(type(self).__name__, options, data, seed)
        training = Training(problem, groups or risk, solver, self._make_backend(), seed)
        if earlier is None:
            start = training.start(self.factors, self.init_std)
            return Plan(run, training, groups, start, [])
        before, state, history = earlier
        shape = (user_items.num_users, user_items.num_items, self.factors)
        run.check_continues(before, state, shape)
        state.cast(training.backend.dtype)
        return Plan(run, training, groups, state, history)

    def _group_risk(self, labels: IdArray) -> GroupCVaR:
        """Return the risk of groups, given the labels of the users that count."""
        raise TypeError(
            f"user_groups needs a smoothed CVaR, which {type(self).__name__} does not have; leave "
            "it out, or try SAFER2, SAFER2CG or SAFER2PP"
        )

    def _train(
        self, plan: Plan, reports: Iterable[Callable[[Epoch], object]]
    ) -> KeyboardInterrupt | None:
        """Run the loop until it ends, a report returns True, or Ctrl-C is pressed: return that."""
        try:
            for record in plan.training.epochs(plan.state, self.iterations):
                self.history.append(record)
                self._publish(plan)
                answers = [report(record) for report in reports]
                if asked_to_stop(answers):
                    break
        except KeyboardInterrupt as interrupt:
            if not self.history:
                raise
            return interrupt
        return None

    def _remember(self, plan: Plan) -> None:
        """Keep what fold-in, partial fits and files need of the data."""
        problem = plan.training.problem
        interactions = problem.interactions
        self.history, self.seed = plan.history, plan.run.seed
        self.shape = (interactions.num_users, interactions.num_items)
        self.num_users, self.num_items = problem.num_users, problem.num_items
        self.user_ids, self.item_ids = interactions.user_ids, interactions.item_ids
        self.user_mass = interactions.users.row_mass()
        self.user_counts = problem.counted(np.ones(interactions.num_users))
        self.group_weights = None

    def _publish(self, plan: Plan) -> None:
        """Show the factors of a state as the model's own."""
        state, groups = plan.state, plan.groups
        # views: training goes on in the state's own arrays, whatever happens to the model's
        self.user_factors = np.ascontiguousarray(state.users, dtype=np.float32).view()
        self.item_factors = np.ascontiguousarray(state.items, dtype=np.float32).view()
        self.user_weights = state.weights
        if groups is not None:
            weights = plan.training.problem.population(state.weights)
            self.group_weights = groups.group_weights(weights)
        self._forget()
