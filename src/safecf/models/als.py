"""`ALSModel`: from options to a trained model, by the one loop."""

import numbers
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from rich.progress import TextColumn, TimeRemainingColumn

from safecf.als.loop import Epoch, Training
from safecf.als.rows import Problem
from safecf.als.sweeps import State
from safecf.data.interactions import Interactions
from safecf.errors import FileFormatError
from safecf.models import files
from safecf.models.checkpoint import (
    Run,
    fingerprint,
    pack_history,
    read_checkpoint,
    unpack_history,
    write_checkpoint,
)
from safecf.models.fold_in import FoldIn
from safecf.models.options import check_options, draw_seed
from safecf.models.recommender import Callback
from safecf.progress import progress_bar

Path = str | os.PathLike[str]

COLUMNS = (
    TextColumn("{task.completed:.0f}/{task.total:.0f}"),
    TextColumn("{task.fields[numbers]}"),
    TimeRemainingColumn(elapsed_when_finished=True),
)


class ALSModel(FoldIn):
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
    num_users, num_items
        |U| and |V| in training: those that have interactions.
    shape
        Number of users and items in training, with or without interactions.
    user_ids, item_ids
        The original ids, if `fit` was given an `Interactions` that has them; else None.
    seed
        The integer that all chance came from.
    """

    factors: int
    iterations: int
    init_std: float
    random_state: Any

    history: list[Epoch]
    seed: int

    def __post_init__(self) -> None:
        self.history = []

    def fit(
        self,
        user_items: Any,
        show_progress: bool = True,
        callback: Callback | None = None,
        *,
        checkpoint: Path | None = None,
        resume: Path | None = None,
    ) -> Self:
        """Train as `Recommender.fit` says; `user_items` may also be an `Interactions`.

        The callback may use the model, whose factors are those of the epoch that has just ended.
        Ctrl-C leaves the model as after the last full epoch, if there is one, and raises
        `KeyboardInterrupt`. A second Ctrl-C, while the users are folded in, leaves the stored
        users as they were in training; `fold_in` and `recalculate_user=True` are not affected.

        `checkpoint` names a file that is replaced after every epoch by all that is needed to go
        on from there. `resume` names such a file to go on from, up to `iterations` epochs: with
        the same options and data the result is, bit for bit, that of a run without a break. Both
        may be the same file, which then need not exist yet: a script that is started again
        after a crash goes on by itself.

        >>> SAFER2(random_state=0).fit(user_items, checkpoint="run.safetensors")
        >>> SAFER2(random_state=0).fit(user_items, resume="run.safetensors")
        """
        if callback is not None and not callable(callback):
            raise TypeError(f"callback={callback!r} cannot be called; give a function, or None")
        if checkpoint is not None:
            files.check_target(checkpoint)
        run, training, state, history = self._plan(user_items, checkpoint, resume)

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
                run.model, state.epoch, self.iterations, *COLUMNS, show=show_progress, numbers=""
            ) as draw,
        ):

            def show(record: Epoch) -> None:
                numbers = f"objective {record.objective:.4g}  CVaR {record.cvar:.4g}"
                draw(record.epoch, numbers=numbers)

            self._remember(training, history)
            interrupt = self._train(training, state, (save, show, ask))
            self._publish(state)
        # from here on there is a full epoch, which nothing takes back
        self.user_factors = self._solve_users(training.problem.unit_user_rows)
        if interrupt is not None:
            raise interrupt
        return self

    def _plan(
        self, user_items: Any, checkpoint: Path | None, resume: Path | None
    ) -> tuple[Run, Training, State, list[Epoch]]:
        """Check everything, and return where training starts."""
        options = self.get_params()
        check_options(options)
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
        data = "" if checkpoint is None and resume is None else fingerprint(user_items)
        run = Run(type(self).__name__, options, data, seed)
        problem = Problem(user_items, loss, ridge, risk.tail)
        training = Training(problem, risk, solver, self._make_backend(), seed)
        if earlier is None:
            return run, training, training.start(self.factors, self.init_std), []
        before, state, history = earlier
        shape = (user_items.num_users, user_items.num_items, self.factors)
        run.check_continues(before, state, shape)
        dtype = training.backend.dtype
        state.users = state.users.astype(dtype, copy=False)
        state.items = state.items.astype(dtype, copy=False)
        return run, training, state, history

    def _train(
        self, training: Training, state: State, reports: Iterable[Callable[[Epoch], object]]
    ) -> KeyboardInterrupt | None:
        """Run the loop until it ends, a report returns True, or Ctrl-C is pressed: return that."""
        try:
            for record in training.epochs(state, self.iterations):
                self.history.append(record)
                self._publish(state)
                answers = [report(record) for report in reports]
                if any(isinstance(answer, bool | np.bool_) and answer for answer in answers):
                    break
        except KeyboardInterrupt as interrupt:
            if not self.history:
                raise
            return interrupt
        return None

    def _remember(self, training: Training, history: list[Epoch]) -> None:
        """Keep what fold-in, partial fits and files need of the data."""
        problem = training.problem
        interactions = problem.interactions
        self.history, self.seed = history, training.seed
        self.shape = (interactions.num_users, interactions.num_items)
        self.num_users, self.num_items = problem.num_users, problem.num_items
        self.user_ids, self.item_ids = interactions.user_ids, interactions.item_ids
        self.user_mass = interactions.users.row_mass()

    def _publish(self, state: State) -> None:
        """Show the factors of a state as the model's own."""
        self.user_factors = np.ascontiguousarray(state.users, dtype=np.float32)
        self.item_factors = np.ascontiguousarray(state.items, dtype=np.float32)
        self.user_weights = state.weights
        self._forget()

    @contextmanager
    def _restored_on_error(self) -> Iterator[None]:
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    def _pack(self) -> tuple[dict[str, Any], files.Arrays]:
        users, items = self._factors()
        if not (np.isfinite(users).all() and np.isfinite(items).all()):
            raise ValueError("the factors are not finite, so the file could not be read; fit again")
        fitted = {
            "seed": self.seed,
            "shape": self.shape,
            "num_users": self.num_users,
            "num_items": self.num_items,
            "history": pack_history(self.history),
        }
        arrays: files.Arrays = {
            "user_factors": np.asarray(users, dtype=np.float32),
            "item_factors": np.asarray(items, dtype=np.float32),
            "user_weights": self.user_weights,
            "user_mass": self.user_mass,
            **files.pack_ids("user_ids", self.user_ids),
            **files.pack_ids("item_ids", self.item_ids),
        }
        return fitted, arrays

    def _unpack(self, fitted: dict[str, Any], arrays: files.Arrays) -> None:
        users = files.array(arrays, "user_factors", (None, None), np.float32)
        items = files.array(arrays, "item_factors", (None, users.shape[1]), np.float32)
        weights = files.array(arrays, "user_weights", (len(users),), np.float64)
        mass = files.array(arrays, "user_mass", (len(users),), np.float64)
        seed, shape = files.field(fitted, "seed", int), files.field(fitted, "shape", list)
        num_users = files.field(fitted, "num_users", int)
        num_items = files.field(fitted, "num_items", int)
        order = [1, num_users, *shape[:1], len(users)], [1, num_items, *shape[1:], len(items)]
        if (
            [type(size) for size in shape] != [int, int]
            or any(side != sorted(side) for side in order)
            or users.shape[1] < 1
            or min(seed, weights.min(), mass.min()) < 0
        ):
            raise FileFormatError("its numbers and its arrays contradict each other; save it again")
        self.user_ids = files.unpack_ids(arrays, "user_ids", shape[0], len(users))
        self.item_ids = files.unpack_ids(arrays, "item_ids", shape[1], len(items))
        self.user_factors, self.item_factors = users, items
        self.user_weights, self.user_mass = weights, mass
        self.seed, self.shape = seed, (shape[0], shape[1])
        self.num_users, self.num_items = num_users, num_items
        self.history = unpack_history(fitted)
