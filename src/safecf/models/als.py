"""`ALSModel`: options, training by the one loop, fold-in, and files of all ALS models."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from safecf.als.capabilities import Factors, Fixed, HalfSteps
from safecf.als.loop import Epoch
from safecf.als.loss import Loss, Ridge, Vector
from safecf.als.population import Population
from safecf.als.risk import Risk
from safecf.als.rows import Rows, gramian, item_rows, naming, user_rows
from safecf.als.solvers import Solver
from safecf.backends import BACKENDS, best_device, make_backend
from safecf.data.matrices.csr import Csr
from safecf.defaults import AUTO
from safecf.errors import NotFittedError, ParameterWarning, warn
from safecf.models import explanations, stored
from safecf.models.callbacks import Callback, check_watching
from safecf.models.conditioning import check_users, condition_bound
from safecf.models.factor_arrays import Factors32, grown, squared_norms
from safecf.models.factorization import MatrixFactorization
from safecf.models.files import Arrays
from safecf.models.options import (
    INIT_STD,
    NONNEGATIVE,
    POSITIVE_INTEGER,
    Auto,
    Integer,
    Name,
    check_device,
    check_random_state,
    option,
)
from safecf.models.popularity import popularity_of
from safecf.models.queries import Indices
from safecf.models.training import FOLD_IN, Parts, Path, Plan, Watcher, make_plan
from safecf.progress import epoch_bar


@dataclass(eq=False, repr=False)
class ALSModel(MatrixFactorization):
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
        lambda, the weight of the ridge. "auto" is 0.005, and up to 0.02 where users are few or
        histories short: 8 / (N |U|^(1/3)), N = sum_u n_u^2 / sum_u n_u for n_u interactions.
    unobserved_weight
        b, the paper's beta_0: what every score, observed or not, is pulled to zero with. "auto"
        scales it to the data: the unobserved pairs of an average user weigh 15 times as much as
        the observed ones, b |V| = 15 mean(a_u m_u), and less where a few interactions carry most
        of the confidences; see `safecf.models.scaling`.
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
        One of `safecf.backends.BACKENDS`: "cpu"; "numpy", its slow and readable twin in float64;
        "torch", for GPUs. "auto" is "torch" if the device is a GPU, and else "cpu".
    device
        "cpu", "cuda", "cuda:0" and so on. "auto" is for backend="torch" the GPU, if there is one,
        and else the CPU. Results depend on it by rounding.

    Attributes
    ----------
    user_factors, item_factors
        float32 arrays, one row per user or item.
    history
        One `Epoch` per epoch.
    resolved
        The values that the "auto" options had in the last fit, by name.
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
    item_popularity
        The share of the training users, by their counts, who have each item.
    user_ids, item_ids
        The original ids, if `fit` was given an `Interactions` that has them; else None.
    seed
        The integer that all chance came from.
    """

    factors: int = option(256, POSITIVE_INTEGER)
    _: KW_ONLY
    iterations: int = option(12, POSITIVE_INTEGER)
    regularization: float | str = option(AUTO, Auto(NONNEGATIVE))
    unobserved_weight: float | str = option(AUTO, Auto(NONNEGATIVE))
    init_std: float = option(0.1, INIT_STD)
    random_state: Any = option(None, check_random_state)
    num_threads: int = option(0, Integer(0))
    backend: str = option("auto", Name(BACKENDS))
    device: str = option("auto", check_device)

    def __post_init__(self) -> None:
        self.history: list[Epoch] = []
        self.resolved = {}
        self.group_weights: dict[str | int, float] | None = None

    @abstractmethod
    def make_loss(self) -> Loss:
        """Return the loss that the options describe."""

    @abstractmethod
    def make_ridge(self) -> Ridge:
        """Return the ridge that the options describe."""

    @abstractmethod
    def make_risk(self) -> Risk:
        """Return the risk that the options describe."""

    @abstractmethod
    def make_solver(self) -> Solver:
        """Return the solver that the options describe."""

    def number(self, name: str) -> float:
        """Return the value of an option, which must not be "auto"."""
        value = getattr(self, name)
        if value == AUTO:
            raise NotFittedError(f'{name} is "auto", and gets its value from fit; call fit')
        return float(value)

    def settled(self, resolved: Mapping[str, float] | None = None) -> Self:
        """Return an unfitted copy whose "auto" options are those of the last fit, or as given."""
        values = self.resolved if resolved is None else resolved
        chosen = {
            name: values.get(name, value) if value == AUTO else value
            for name, value in self.get_params().items()
        }
        return type(self)(**chosen)

    def compose(self) -> Parts:
        """Return loss, ridge, risk and solver, made from the options as the last fit took them."""
        return self.settled().parts()

    def parts(self) -> Parts:
        """Return loss, ridge, risk and solver, made from the options."""
        return Parts(self.make_loss(), self.make_ridge(), self.make_risk(), self.make_solver())

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

        The callback may use the model, whose factors are those of the epoch that has just ended;
        they are read-only, and the next epoch overwrites them.
        Ctrl-C leaves the model as after the last full epoch, if there is one, and raises
        `KeyboardInterrupt`. After a second Ctrl-C, while the users are folded in, the stored user
        factors are zero; `fold_in` and `recalculate_user=True` are not affected.

        `checkpoint` names a file that is replaced after every epoch by all that is needed to go
        on from there. `resume` names such a file to go on from, up to `iterations` epochs: with
        the same options and data the result is, bit for bit, that of a run without a break. Both
        may be the same file, which then need not exist yet: a script that is started again
        after a crash goes on by itself.

        >>> SAFER2(random_state=0).fit(user_items, checkpoint="run.safetensors")
        >>> SAFER2(random_state=0).fit(user_items, resume="run.safetensors")
        """
        uses_model = getattr(callback, "uses_model", True)
        callback = check_watching(self, show_progress, callback)
        self.changes.check("fit")
        plan = make_plan(self, user_items, user_weight, user_groups, checkpoint, resume)
        done, epochs = plan.state.epoch, int(self.iterations)
        with (
            self._fitting(),
            plan.training.backend.guarded(),
            epoch_bar(plan.run.model, done, epochs, show=show_progress) as draw,
        ):
            self._adopt(plan)
            watchers: list[Watcher] = [] if checkpoint is None else [plan.checkpoint(checkpoint)]
            watchers.append(lambda record: draw(record.epoch, numbers=_numbers(record)))
            if callback is not None:
                watchers.append(self._asking(callback, plan if uses_model else None))
            interrupt = plan.train(epochs, watchers)
            self._publish(plan, users=False)
            try:
                with naming("user", self.user_ids):
                    problem, backend = plan.training.problem, plan.training.backend
                    self.user_factors = self._solve_users(
                        backend, problem.unit_user_rows, problem.user_mass
                    )
            except KeyboardInterrupt as another:
                interrupt = another
            self.derived.clear()  # what the fold-in has prepared: nobody may ask for it again
        if interrupt is not None:
            raise interrupt
        return self

    def to(self, device: str) -> Self:
        """Work on a device from here on, with the backend that is best there; return the model.

        The device is "cpu", "cuda", "cuda:0" and so on, or "auto": the GPU, if there is one, and
        else the CPU. What was computed from the factors on another one is freed.

        >>> model.to("cuda").fit(user_items).to("cpu")
        """
        check_device("device", device, "auto")
        chosen = best_device() if device == AUTO else device
        make_backend("auto", self.num_threads, device=chosen)  # raises if it is not there
        with self.changes.partial_fit():
            self.backend, self.device = "auto", chosen
            self.derived.clear()
        return self

    def _asking(self, callback: Callback, shown: Plan | None) -> Watcher:
        """Return a watcher that publishes the factors, if a plan is `shown`, and calls."""

        def ask(record: Epoch) -> object:
            if shown is not None:
                self._publish(shown)
                for factors in self.both_factors():
                    factors.flags.writeable = False  # training goes on in these arrays
            return callback(record.epoch - 1, sum(record.seconds.values()), record.objective)

        return ask

    def _adopt(self, plan: Plan) -> None:
        """Store what training does not change: sizes and ids of the data, the seed."""
        problem = plan.training.problem
        interactions = problem.interactions
        self.history, self.seed = plan.history, plan.run.seed
        self.shape = (interactions.num_users, interactions.num_items)
        self.num_users, self.num_items = problem.num_users, problem.num_items
        self.user_ids, self.item_ids = interactions.user_ids, interactions.item_ids
        self.item_popularity = popularity_of(interactions, problem.user_count)

    def _publish(self, plan: Plan, *, users: bool = True) -> None:
        """Make the factors of the training state the model's, with all that is kept per user.

        Without `users`, theirs are zero: they are to be folded in, and need not be fetched.
        """
        state, fetch, problem = plan.state, plan.training.backend.fetch, plan.training.problem

        def fetched(side: Factors) -> Factors32:
            return np.ascontiguousarray(fetch(side), dtype=np.float32).view()

        self.item_factors = fetched(state.items)
        zero = np.zeros((self.shape[0], self.item_factors.shape[1]), dtype=np.float32)
        self.user_factors = fetched(state.users) if users else zero
        self.user_weights, self.group_weights = fetch(state.weights).copy(), plan.group_weights()
        self.user_mass = problem.user_mass.copy()
        counts = problem.user_count
        self.user_counts = np.ones_like(self.user_weights) if counts is None else counts.copy()
        self.resolved = plan.resolved_after(plan.history[-1])
        self.derived.clear()

    def user_losses(self, history: Csr, factors: Factors32) -> Vector:
        """loss_u = a_u/2 sum_{i in V_u} c_ui (1 - x_u.y_i)^2 + b/2 x_u' (Y'Y) x_u, by row.

        With the ridge in the risk, + ridge_u/2 |x_u|^2: what the risk measures.
        """
        with self._half_steps() as backend:
            users, rows = backend.place(np.asarray(factors)), self._user_rows(backend, history)
            ridge = rows.ridge if self.compose().ridge.in_risk else None
            items = self._fixed(backend, "items")
            losses = backend.losses(rows.matrix, rows.row_weight, users, items, ridge)
            return np.asarray(backend.fetch(losses))

    def training_weights(self, losses: Vector) -> Vector:
        """Return w_u that the last epoch's xi gives to users with these losses."""
        users = Population(losses)
        weights = self.compose().risk.scaled(users).weights(users, self.history[-1].xi)
        return np.asarray(weights)

    def _store_users(self, ids: Indices, history: Csr) -> None:
        """Fold the users in, and replace or add all that is kept of them.

        A user without a history so far counts, for items that are added later, with the mean
        weight, and a new one as one user.
        """
        before, _ = self.both_factors()
        factors, mass = self._fold_in_users(history), history.row_mass()
        size = max(len(before), int(ids.max(initial=-1)) + 1)
        users, weights = grown(before, size), grown(self.user_weights, size)
        masses, counts = grown(self.user_mass, size), grown(self.user_counts, size)
        counts[len(self.user_counts) :] = 1
        weights[ids] = np.where(masses[ids] > 0, weights[ids], self.compose().risk.tail)
        users[ids], masses[ids] = factors, mass
        self.user_factors, self.user_weights = users, weights
        self.user_mass, self.user_counts = masses, counts

    def _fold_in_users(self, history: Csr) -> Factors32:
        """x_u = argmin loss_u + ridge_u/2 |x_u|^2, each row by itself and exactly."""
        with naming("user"), self._half_steps() as backend:
            return self._solve_users(backend, self._user_rows(backend, history), history.row_mass())

    def _user_rows(self, backend: HalfSteps, history: Csr) -> Rows:
        """Return the users' half-step with w = 1."""
        loss, ridge, _, _ = self.compose()
        weight, items = np.ones(history.num_rows), (history.num_columns, self.num_items)
        matrix = backend.place_matrix(history)
        rows = user_rows(matrix, history.row_mass(), weight, loss, ridge, items)
        return rows.map(backend.place_vector)

    def _fold_in_items(self, audience: Csr) -> Factors32:
        """The same for items, with the users' weights of the last epoch."""
        loss, ridge, risk, _ = self.compose()
        if len(self.user_weights) != audience.num_columns:
            raise ValueError(
                f"user_factors has {audience.num_columns} rows, and user_weights "
                f"{len(self.user_weights)}; give both a row for every user, or fit again"
            )
        pair_weight = self.user_counts * loss.pair_weight(self.user_mass)
        mass = audience.row_mass(pair_weight)
        total, col_weight = risk.tail * self.num_users, self.user_weights * pair_weight
        with naming("item"), self._half_steps() as backend:
            matrix = backend.place_matrix(audience)
            rows = item_rows(matrix, mass, col_weight, loss, ridge, total)
            return self._solve(backend, rows, "users", audience.num_rows)

    def _contributions(
        self, history: Csr, item: int, user_weights: Any
    ) -> tuple[Vector, explanations.Weights]:
        _, items = self.both_factors()
        twin = make_backend("numpy", 1, {HalfSteps: type(self).__name__})
        rows, loss = self._user_rows(twin, history), self.compose().loss
        gram = self.derived.get(
            ("G in float64", loss), items, lambda: gramian(loss, twin, twin.place(items))
        )
        return explanations.contributions(rows, history.row(0), items, gram, item, user_weights)

    def _popularity_of(self, audience: Csr) -> Factors32:
        shares = replace(audience, weights=None).row_mass(self.user_counts) / self.num_users
        return shares.astype(np.float32)

    def _solve_users(self, backend: HalfSteps, rows: Rows, mass: Vector) -> Factors32:
        """Solve users exactly, and warn of those where float32 does not suffice."""
        factors = self._solve(backend, rows, "items", mass.size)
        loss, ridge, _, _ = self.compose()
        _, items = self.both_factors()
        longest = self.derived.get("longest", items, lambda: float(squared_norms(items).max()))
        bound = condition_bound(
            backend, rows, mass, loss.unobserved_weight * self.num_items, longest
        )
        fixed = self._fixed(backend, "items")
        check_users(backend, rows, mass, fixed, factors, bound, ridge.regularization)
        return factors

    def _solve(self, backend: HalfSteps, rows: Rows, side: str, count: int) -> Factors32:
        """Solve rows exactly, given the factors of the other side."""
        factors = backend.zeros(count, self.both_factors()[0].shape[1])
        if count:
            backend.solve_rows(rows, self._fixed(backend, side), factors, FOLD_IN)
        return backend.fetch(factors).astype(np.float32, copy=False)

    def _fixed(self, backend: HalfSteps, side: str) -> Fixed:
        """Return the fixed side of a half-step, cached until the factors change."""
        users, items = self.both_factors()
        loss = self.compose().loss
        fixed, weight = items, None
        if side == "users":
            fixed, weight = users, self.user_counts * self.user_weights

        def fix() -> Fixed:
            factors = backend.place(fixed)
            return backend.fix(factors, gramian(loss, backend, factors, weight))

        return self.derived.get((side, repr(backend), loss), fixed, fix)

    @contextmanager
    def _half_steps(self) -> Iterator[HalfSteps]:
        """Make a backend, and guard the work with it."""
        name = type(self).__name__
        solvers = {FOLD_IN.name: f"fold-in of {name}"}
        backend: HalfSteps = self._make_backend({HalfSteps: name}, solvers)
        with backend.guarded():
            yield backend

    def _pack(self) -> tuple[dict[str, Any], Arrays]:
        return stored.pack(self)

    def _unpack(self, fitted: dict[str, Any], arrays: Arrays) -> None:
        stored.unpack(self, fitted, arrays)
        try:
            make_backend(self.backend, self.num_threads, device=self.device)
        except (ImportError, OSError, ValueError) as problem:
            warn(
                f"the model works on the CPU: it was saved with backend={self.backend!r}, device="
                f"{self.device!r}: {problem}. To load it without this warning, save it "
                "after model.to('cpu')",
                ParameterWarning,
            )
            self.backend, self.device = "auto", "cpu"


def _numbers(record: Epoch) -> str:
    return f"objective {record.objective:.4g}  CVaR {record.cvar:.4g}"
