"""Random settings over the whole range of every option, on small and odd data."""

import io
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import safecf
from safecf.errors import ConvergenceWarning, ModelFitError, NotFittedError, ParameterWarning
from safecf.models import EASE, Recommender
from safecf.models.als import ALSModel
from safecf.models.catalogue import SmoothedTail
from safecf.models.factorization import MatrixFactorization
from safecf.models.mult_vae import MultVAE
from soak.attack import attack
from soak.draws import log_uniform, random_matrix, random_model, random_options

OURS = (ParameterWarning, ConvergenceWarning)
REFUSALS = (ValueError, TypeError, NotFittedError, NotImplementedError, MemoryError)
COUNTING = 1e-3  # of the largest weight: users of less hardly change the items
WORSE = 1.01  # of the loss of zero: rounding
Scores = NDArray[np.float32]


class RefusedError(Exception):
    """The library has refused, in its own words."""


@attack(
    "A fit with any allowed options gives finite factors, users that are better than factors of "
    "zero, and scores that are not all equal, or a warning or an error of the library's own; "
    "fold-ins, partial fits and resumed fits give finite results, or an error.",
    cases=10_000,
    seconds=20,
    memory=2 << 30,
)
def settings(rng: np.random.Generator) -> str:
    """Fit a model with random options, and use it."""
    return attempt(rng, random_model(rng))


@attack("The same for MultVAE.", cases=500, memory=None)  # CUDA reserves more than there is
def settings_of_mult_vae(rng: np.random.Generator) -> str:
    """Fit a MultVAE with random options, and use it."""
    return attempt(rng, MultVAE(**random_options(rng, MultVAE)))


def attempt(rng: np.random.Generator, model: Recommender) -> str:
    """Fit and use a model; return what came out."""
    data = random_matrix(rng)
    arguments = random_arguments(rng, model, data)
    told = f"{model!r}\n  fit of {shown(data)}, {arguments}"
    with judged(told) as warned:
        try:
            with refusing():
                fit(rng, model, data, arguments)
        except RefusedError as problem:
            return str(problem)
    with judged(f"{told}\n  then") as warned_later:
        check(model, data, warned=bool(warned))
        later = used(rng, model, data)
    outcome = f"warned: {warned[0][:30]}" if warned else "finite"
    return f"{outcome}; {later or 'warned'}" if later or warned_later else outcome


def fit(
    rng: np.random.Generator, model: Recommender, data: sp.csr_matrix, arguments: dict[str, Any]
) -> None:
    """Fit for a few epochs, some fits with a break in them."""
    epochs = int(rng.integers(1, 7))

    def stop(epoch: int, seconds: float, objective: float) -> bool:
        assert np.isfinite(objective), f"the objective of epoch {epoch} is {objective}"
        return epoch + 1 >= epochs

    if not isinstance(model, ALSModel) or rng.random() < 0.8:
        model.fit(data, show_progress=False, callback=stop, **arguments)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.safetensors")
        for _ in range(2):
            model.fit(data, show_progress=False, callback=stop, **arguments,
                      checkpoint=path, resume=path)  # fmt: skip
            epochs += 2


def random_arguments(
    rng: np.random.Generator, model: Recommender, data: sp.csr_matrix
) -> dict[str, Any]:
    """Return user weights and groups for some fits of models that take them."""
    found: dict[str, Any] = {}
    if not isinstance(model, ALSModel):
        return found
    users = data.shape[0]
    if rng.random() < 0.2:
        weights = [log_uniform(rng, 1e-9, 1e9) for _ in range(users)]
        found["user_weight"] = np.where(rng.random(users) < 0.2, 0.0, weights).tolist()
    if isinstance(model, SmoothedTail) and rng.random() < 0.2:
        found["user_groups"] = rng.integers(3, size=users).tolist()
    return found


def check(model: Recommender, data: sp.csr_matrix, *, warned: bool) -> None:
    """Raise if what training has found is not finite, or says nothing."""
    for name, value in vars(model).items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            assert np.isfinite(value).all(), f"{name} is not finite"
    for record in getattr(model, "history", []):
        for name, value in vars(record).items():
            if isinstance(value, float) and not (name == "bandwidth" and value == np.inf):
                assert np.isfinite(value), f"{name} of epoch {record.epoch} is {value}"
    if warned:
        return
    if isinstance(model, EASE):
        check_weights(model, data)
    if isinstance(model, MatrixFactorization):
        users, items = (np.asarray(side, np.float64) for side in model.both_factors())
        with np.errstate(over="ignore"):
            scores = (users @ items.T).astype(np.float32)
        weights = np.ones(len(users))
        if isinstance(model, ALSModel):
            weights = model.user_counts * model.user_weights
        counting = weights > COUNTING * weights.max()
        check_scores(scores[counting], data[counting])
    if isinstance(model, ALSModel):
        check_users(model, data)


def check_scores(scores: Scores, data: sp.csr_matrix) -> None:
    """Raise if all scores are zero, or equal where some items are more popular than others."""
    counts = data.getnnz(axis=0)
    active, liked = np.diff(data.indptr) > 0, counts > 0
    assert scores[active].any(), "all scores are zero, and nothing tells"
    if np.ptp(counts[liked]) > 0:
        found = scores[active][:, liked]
        assert np.ptp(found, axis=1).any(), "all scores are equal, and nothing tells"


def check_weights(model: EASE, data: sp.csr_matrix) -> None:
    """Raise if the weights say nothing, where some items are seen together and some are not."""
    likes = (data > 0).astype(np.float64)
    others = ~np.eye(data.shape[1], dtype=bool)
    together = (likes.T @ likes).toarray()[others] > 0
    weights = np.asarray(model.item_weights)[others]
    if together.any():
        assert weights.any(), "all weights are zero, and nothing tells"
        assert together.all() or np.ptp(weights) > 0, "all weights are equal, and nothing tells"


def check_users(model: ALSModel, data: sp.csr_matrix) -> None:
    """Raise if loss_u + ridge_u/2 |x_u|^2, in float64, is above that of x_u = 0, a_u m_u / 2."""
    loss, ridge, _, _ = model.compose()
    users, items = (np.asarray(side, np.float64) for side in model.both_factors())
    likes = data.toarray().astype(np.float64)
    mass = likes.sum(axis=1)
    pair_weight, b = loss.pair_weight(mass), loss.unobserved_weight
    scores, penalty = users @ items.T, ridge.weights(pair_weight * mass, b * model.num_items)
    found = pair_weight * (likes * (1 - scores) ** 2).sum(axis=1) + b * (scores**2).sum(axis=1)
    found += penalty * (users**2).sum(axis=1)
    worse = found > WORSE * pair_weight * mass
    assert not worse.any(), f"users {np.flatnonzero(worse)} are worse than none, and nothing tells"


def used(rng: np.random.Generator, model: Recommender, data: sp.csr_matrix) -> str:
    """Ask the model for everything; return what it has refused."""
    users, items = data.shape
    everybody = np.arange(users)
    other = random_matrix(rng)
    other = sp.csr_matrix(
        (other.data, other.indices % items, other.indptr), shape=(other.shape[0], items)
    )
    other.sum_duplicates()
    refused = []

    def ask(what: Callable[[], Any]) -> None:
        try:
            with refusing():
                finite(what())
        except RefusedError as problem:
            refused.append(str(problem))

    ask(lambda: model.recommend(everybody, data, N=items))
    ask(lambda: model.recommend(everybody, data, filter_already_liked_items=False))
    ask(lambda: model.recommend(np.arange(other.shape[0]), other, recalculate_user=True))
    ask(lambda: model.similar_items(np.arange(items), N=items))
    if isinstance(model, MatrixFactorization):
        ask(lambda: model.similar_users(everybody))
        ask(lambda: model.fold_in(other))
        ask(lambda: model.partial_fit_users(users + np.arange(other.shape[0]), other))
        audience = sp.random(2, len(model.both_factors()[0]), 0.5, "csr", random_state=1)
        if not isinstance(model, MultVAE):
            ask(lambda: model.partial_fit_items([0, items], audience))
        ask(lambda: model.recommend(everybody, data, N=items))
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    again = safecf.load(file)
    assert repr(again.get_params()) == repr(model.get_params()), "a saved model has other options"
    return "; ".join(sorted(set(refused)))


def finite(found: Any) -> None:
    """Raise if a result is not finite."""
    for array in found if isinstance(found, tuple) else () if found is None else (found,):
        assert np.isfinite(array).all(), f"a result is not finite: {array}"


@contextmanager
def refusing() -> Iterator[None]:
    """Turn the library's own errors into `RefusedError`, and let others pass."""
    try:
        yield
    except (ModelFitError, *REFUSALS) as problem:
        where = traceback.extract_tb(problem.__traceback__)[-1].filename
        ours = "/safecf/" in where and type(problem).__module__.split(".")[0] != "numpy"
        if not ours or len(str(problem)) < 30:
            raise
        raise RefusedError(f"{type(problem).__name__}: {str(problem)[:24]}") from problem


@contextmanager
def judged(told: str) -> Iterator[list[str]]:
    """Say what was tried if something fails; collect the library's warnings, refuse others."""
    warned: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield warned
        except RefusedError:
            raise
        except BaseException as problem:
            raise AssertionError(f"{told}: {type(problem).__name__}: {problem}") from problem
        finally:
            warned += [str(each.message) for each in caught if issubclass(each.category, OURS)]
    others = [each for each in caught if not issubclass(each.category, OURS)]
    for each in others:
        where = f"{each.filename}:{each.lineno}"
        raise AssertionError(f"{told}: {each.category.__name__}: {each.message} at {where}")


def shown(data: sp.csr_matrix) -> str:
    """Return how to make the matrix again."""
    dense = data.toarray()
    return f"csr_matrix({dense.tolist()})" if dense.size <= 200 else f"{data.shape}, {data.nnz}"
