"""`MultVAE`: the variational autoencoder with a multinomial likelihood."""

import time
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from safecf.backends import make_backend
from safecf.data.matrices.csr import Csr
from safecf.data.matrices.interactions import Interactions
from safecf.errors import FileFormatError, NotFittedError
from safecf.models import files
from safecf.models.callbacks import Callback, check_watching, stop_requested
from safecf.models.factor_arrays import Factors32
from safecf.models.factorization import MatrixFactorization
from safecf.models.history import pack_history, unpack_history
from safecf.models.model import register
from safecf.models.options import (
    NONNEGATIVE,
    POSITIVE_INTEGER,
    STEP_SIZE,
    Integer,
    Number,
    check_device,
    check_options,
    check_random_state,
    draw_seed,
    option,
)
from safecf.models.popularity import pack_popularity, popularity_of, unpack_popularity
from safecf.models.vae.encoder import Encoder
from safecf.models.vae.epochs import Found, VAEEpoch, run_epoch
from safecf.models.validation import METRIC, Validation, make_validation
from safecf.progress import epoch_bar

if TYPE_CHECKING:
    from safecf.models.vae.trainer import Trainer


@register
@dataclass(eq=False, repr=False)
class MultVAE(MatrixFactorization):
    """Mult-VAE: a network that reads a history and writes the probabilities of all items.

        a_u = tanh(W1' c_u / |c_u| + b1) ,   (mean_u, log var_u) = W2' a_u + b2
        z_u ~ N(mean_u, var_u) ,   x_u = (z_u, 1) ,   score_ui = x_u . y_i
        loss_u = - sum_i c_ui log softmax_i(score_u) + beta KL(N(mean_u, var_u) | N(0, I))

    c_u are the confidence weights of user u, ones if there are none. The layers have |V|, d, d - 1
    and |V| units; the last column of the item factors is the bias of the last layer. The factors
    of a user are (mean_u, 1): what the encoder makes of the history, without noise. New items
    cannot be folded in.

    Training needs PyTorch: `pip install 'safecf[torch]'`. A trained model does not. The batch is
    the largest dense matrix, with `batch_size` x |V| scores.

    Parameters
    ----------
    factors
        d, at least 2.
    iterations
        Number of epochs, or the most of them if `fit` is given a validation set.
    step_size
        Of Adam.
    batch_size
        Number of users per step.
    beta
        The weight of the KL term, once it is annealed.
    anneal_share
        The share of all steps, that is of `iterations` epochs, during which the weight of the KL
        term rises from 0 to `beta`.
    dropout
        The probability that an item of the history is hidden from the encoder in training.
    random_state
        None, an integer, or one of numpy's generators. On a CPU, the integer makes results
        repeatable, up to the number of threads.
    num_threads
        Of training and of ranking. 0 means all cores, and in training whatever torch is set to.
    device
        "cpu", "cuda", "cuda:1" and so on; "auto" is a GPU if torch finds one.

    Attributes
    ----------
    user_factors, item_factors
        float32 arrays, one row per user or item; zeros for users without a history.
    encoder
        The `Encoder`, W1, b1 and the half of W2 and b2 that gives the mean.
    history
        One `VAEEpoch` per epoch.
    shape
        Number of users and items in training.
    item_popularity
        The share of the training users who have each item.
    user_ids, item_ids
        The original ids, if `fit` was given an `Interactions` that has them; else None.
    seed
        The integer that all chance came from.

    Reference: Liang et al., Variational Autoencoders for Collaborative Filtering, WWW 2018, in the
    form of Togashi et al., Safe Collaborative Filtering, ICLR 2024.
    """

    factors: int = option(64, POSITIVE_INTEGER)
    _: KW_ONLY
    iterations: int = option(100, POSITIVE_INTEGER)
    step_size: float = option(4e-3, STEP_SIZE)
    batch_size: int = option(200, POSITIVE_INTEGER)
    beta: float = option(0.1, NONNEGATIVE)
    anneal_share: float = option(0.5, Number(0, 1, "[]"))
    dropout: float = option(0.5, Number(0, 1, "[)"))
    random_state: Any = option(None, check_random_state)
    num_threads: int = option(0, Integer(0))
    device: str = option("auto", check_device)

    encoder: Encoder | None = field(default=None, init=False)
    history: list[VAEEpoch] = field(default_factory=list, init=False)
    seed: int = field(default=0, init=False)

    def fit(
        self,
        user_items: Any,
        show_progress: bool = True,
        callback: Callback | None = None,
        *,
        validation: Any = None,
        metric: str | None = None,
        level: float | None = None,
        patience: int | None = None,
    ) -> Self:
        """Train as `Recommender.fit` says; `user_items` may also be an `Interactions`.

        The callback may use the model, whose weights are those of the epoch that has just ended.
        Ctrl-C leaves the model as after the last full epoch, if there is one, or after the best
        one so far if there is a validation set, and raises `KeyboardInterrupt`.

        With held-out users for `validation`, such as `split.validation`, the model keeps the
        weights of the epoch that serves them best: by the mean of the `metric` ("ndcg@100") over
        the worst-off share `level` of them (1, which means all). Training ends after `patience`
        (15) epochs without a better score. These three need a validation set.

        An epoch that diverges ends training with a `ConvergenceWarning`, and leaves the model as
        Ctrl-C does; if it is the first, it is an error.

        >>> MultVAE(32).fit(split.train, validation=split.validation, metric="recall@50")
        """
        callback = check_watching(self, show_progress, callback)
        self.changes.check("fit")
        check_options(self.get_params(), type(self))
        if self.factors < 2:
            raise ValueError("factors=1 leaves no latent dimension beside the bias; try factors=64")
        if not isinstance(user_items, Interactions):
            user_items = Interactions.from_csr(user_items)
        monitor = make_validation(validation, metric, level, patience, user_items.num_items)
        seed = draw_seed(self.random_state)
        trainer = self._make_trainer(user_items.users, seed)

        def ask(record: VAEEpoch) -> object:
            if callback is None:
                return None
            return callback(record.epoch - 1, sum(record.seconds.values()), record.objective)

        with (
            self._fitting(),
            epoch_bar("MultVAE", 0, self.iterations, show=show_progress) as draw,
        ):

            def show(record: VAEEpoch) -> None:
                score = "" if record.score is None else f"  {metric or METRIC} {record.score:.4f}"
                draw(record.epoch, numbers=f"objective {record.objective:.4g}{score}")

            self.history, self.seed = [], seed
            self.shape = (user_items.num_users, user_items.num_items)
            self.user_ids, self.item_ids = user_items.user_ids, user_items.item_ids
            self.item_popularity = popularity_of(user_items)
            interrupt = self._train(trainer, monitor, (show, ask))
        if interrupt is not None:
            raise interrupt
        return self

    def _make_trainer(self, users: Csr, seed: int) -> "Trainer":
        try:
            from safecf.models.vae.trainer import Settings, Trainer  # noqa: PLC0415 - torch is optional
        except ModuleNotFoundError as problem:
            if problem.name != "torch":
                raise
            raise ImportError(
                "MultVAE trains with PyTorch, which is not installed; try "
                "pip install 'safecf[torch]'"
            ) from problem
        active = int(np.count_nonzero(np.diff(users.indptr)))
        steps = int(self.iterations) * -(-active // int(self.batch_size))
        settings = Settings(
            factors=int(self.factors),
            step_size=float(self.step_size),
            batch_size=int(self.batch_size),
            beta=float(self.beta),
            anneal_steps=float(self.anneal_share) * steps,
            dropout=float(self.dropout),
            device=self.device,
            num_threads=int(self.num_threads),
        )
        return Trainer(users, settings, seed)

    def _train(
        self,
        trainer: "Trainer",
        monitor: Validation | None,
        reports: Iterable[Callable[[VAEEpoch], object]],
    ) -> KeyboardInterrupt | None:
        """Run epochs until they or the patience end, or Ctrl-C is pressed: return that."""
        best: Found | None = None
        interrupt = None
        try:
            for _ in range(int(self.iterations)):
                record = run_epoch(trainer, best)
                if record is None:
                    break
                encoder, items = trainer.network.export()
                found = Found(record.epoch, encoder, items, encoder(trainer.users))
                self._publish(found)
                if monitor is not None:
                    record = self._validated(record, monitor)
                found = found._replace(score=record.score)
                best = found if best is None or found.replaces(best) else best
                self.history.append(record)
                answers = [report(record) for report in reports]
                if stop_requested(answers):
                    break
                if monitor is not None and record.epoch - best.epoch >= monitor.patience:
                    break
        except KeyboardInterrupt as problem:
            if not self.history:
                raise
            interrupt = problem
        if best is not None:
            self._publish(best)
        return interrupt

    def _validated(self, record: VAEEpoch, monitor: Validation) -> VAEEpoch:
        begin = time.perf_counter()
        score = monitor.score(self)
        seconds = {**record.seconds, "validation": time.perf_counter() - begin}
        return replace(record, score=score, seconds=seconds)

    def _publish(self, found: Found) -> None:
        """Show the weights of an epoch as the model's own."""
        self.encoder, self.item_factors = found.encoder, found.items
        self.user_factors = found.users
        self.derived.clear()

    def _fold_in_users(self, history: Csr) -> Factors32:
        if self.encoder is None:
            raise NotFittedError("this MultVAE is not fitted; call fit first")
        return self.encoder(history)

    def _fold_in_items(self, audience: Csr) -> Factors32:
        raise NotImplementedError(
            "MultVAE cannot compute an item from its users alone; fit again with these "
            "interactions, or use IALS, ERMMF or SAFER2, which fold in items"
        )

    def _contributions(
        self, history: Csr, item: int, user_weights: Any
    ) -> tuple[NDArray[np.float64], Any]:
        raise NotImplementedError(
            "MultVAE cannot explain its scores: they are no sums over the items of the history; "
            "use a model whose scores are, such as SAFER2, IALS or EASE"
        )

    def to(self, device: str) -> Self:
        """Train on a device from here on; answers are computed on the CPU."""
        check_device("device", device, "auto")
        self.device = device
        return self

    def _make_backend(self, needs: dict[type, str], solvers: dict[str, str] | None = None) -> Any:
        check_options({"num_threads": self.num_threads}, type(self))
        return make_backend("auto", self.num_threads, needs, solvers)

    def _pack(self) -> tuple[dict[str, Any], files.Arrays]:
        users, items = self.both_factors()
        if self.encoder is None or not (np.isfinite(users).all() and np.isfinite(items).all()):
            raise ValueError("the factors are not finite, so the file could not be read; fit again")
        fitted = {"seed": self.seed, "shape": self.shape, "history": pack_history(self.history)}
        arrays: files.Arrays = {
            "user_factors": np.asarray(users, dtype=np.float32),
            "item_factors": np.asarray(items, dtype=np.float32),
            **{f"encoder.{name}": part for name, part in self.encoder._asdict().items()},
            **files.pack_ids("user_ids", self.user_ids),
            **files.pack_ids("item_ids", self.item_ids),
            **pack_popularity(self.item_popularity, len(items)),
        }
        return fitted, arrays

    def _unpack(self, fitted: dict[str, Any], arrays: files.Arrays) -> None:
        num_users, num_items = files.shape(fitted)
        items = files.array(arrays, "item_factors", (num_items, None), np.float32)
        size = items.shape[1]
        users = files.array(arrays, "user_factors", (None, size), np.float32)
        seed = files.field(fitted, "seed", int)
        if size < 2 or len(users) < num_users or seed < 0:
            raise FileFormatError("its numbers and its arrays contradict each other; save it again")
        shapes = Encoder.shapes(num_items, size)
        encoder = {
            name: files.array(arrays, f"encoder.{name}", shape, np.float32)
            for name, shape in shapes.items()
        }
        self.user_ids = files.unpack_ids(arrays, "user_ids", num_users, len(users))
        self.item_ids = files.unpack_ids(arrays, "item_ids", num_items, num_items)
        self.item_popularity = unpack_popularity(arrays, num_items)
        self.history = unpack_history(fitted, VAEEpoch)
        self.encoder, self.user_factors, self.item_factors = Encoder(**encoder), users, items
        self.seed, self.shape = seed, (num_users, num_items)
