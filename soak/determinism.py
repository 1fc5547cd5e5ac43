"""The same bits whoever computes them: threads, processes, copies, orders of users."""

import copy
import hashlib
import io
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

import safecf
from safecf.errors import ModelFitError
from safecf.models import MODELS, Recommender
from safecf.models.als import ALSModel
from safecf.models.factorization import MatrixFactorization
from safecf.models.mult_vae import MultVAE
from soak.attack import attack
from soak.draws import log_uniform, random_model, random_options, random_weights

Answers = dict[str, bytes]
NO_MODEL = "no model"  # training has failed, in the library's own words


@attack(
    "Factors, history, rankings, fold-ins and evaluations with intervals have the same bits for "
    "any number of threads.",
    cases=1_000,
)
def threads(rng: np.random.Generator) -> str:
    """Train and ask with 1 thread, and with several."""
    number = int(rng.integers(2**62))
    several = int(rng.choice([2, 3, 8]))
    return same(lambda count: trained_answers(number, num_threads=count), 1, several)


@attack(
    "Answers have the same bits after save and load, pickle and deepcopy, and so have fits.",
    cases=1_000,
)
def copies(rng: np.random.Generator) -> str:
    """Ask a model and its copies, before and after they are fitted again."""
    number = int(rng.integers(2**62))
    model, data = random_problem(number)
    if not is_fitted(model, data):
        return NO_MODEL
    asked_before = bool(rng.integers(2))
    expected = answers(model, data) if asked_before else None
    made = copied(model)
    expected = expected or answers(model, data)
    for name, other in made.items():
        compare(expected, answers(other, data), f"{name}, {model!r}")
    other = made[str(rng.choice(list(made)))]
    is_fitted(other, data)
    compare(expected, answers(other, data), f"fitted again, {model!r}")
    return type(model).__name__


@attack("A forked process finds the same bits, and so does its parent afterwards.", cases=300)
def forks(rng: np.random.Generator) -> str:
    """Train here, in a child, and here again."""
    number = int(rng.integers(2**62))
    expected = trained_answers(number, num_threads=2)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with open(write, "wb") as file:
                pickle.dump(trained_answers(number, num_threads=2), file)
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as file:
        found = file.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the child has died"
    compare(expected, pickle.loads(found), "in a forked process")
    compare(expected, trained_answers(number, num_threads=3), "after a fork")
    return "same bits" if expected else NO_MODEL


@attack("A spawned process finds the same bits, and so does a model that is sent to it.", cases=50)
def spawns(rng: np.random.Generator) -> str:
    """Train and ask here, and in a process that starts from nothing."""
    number = int(rng.integers(2**62))
    model, data = random_problem(number, num_threads=2)
    if not is_fitted(model, data):
        return NO_MODEL
    expected = answers(model, data)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        trained = pool.submit(trained_answers, number, num_threads=3)
        sent = pool.submit(answers, model, data)
        compare(expected, trained.result(), f"in a spawned process, {model!r}")
        compare(expected, sent.result(), f"sent to a spawned process, {model!r}")
    return type(model).__name__


@attack(
    "On one machine, a MultVAE has the same bits for the same seed and number of threads, and in "
    "copies of it; its answers have the same bits for any number of threads. Other numbers of "
    "threads in training give other bits.",
    cases=200,
)
def mult_vae(rng: np.random.Generator) -> str:
    """Train twice, copy, and ask with other numbers of threads."""
    _, data = random_problem(int(rng.integers(2**62)))
    options = random_options(rng, MultVAE, wild=0)
    model, twin = MultVAE(**options), MultVAE(**options)
    if not is_fitted(model, data):
        return NO_MODEL
    expected = answers(model, data)
    assert is_fitted(twin, data)
    compare(expected, answers(twin, data), f"trained again, {model!r}")
    for name, other in copied(model).items():
        compare(expected, answers(other, data), f"{name}, {model!r}")
    twin.num_threads = int(rng.choice([1, 2, 3, 8]))
    compare(expected, answers(twin, data), f"{twin.num_threads} threads, {model!r}")
    return "same bits"


@attack(
    "A new process finds the same bits, whatever the threads of OpenMP and of BLAS, and the seed "
    "of hashes.",
    cases=200,
)
def environments(rng: np.random.Generator) -> str:
    """Train here, and in a new process with other settings."""
    number = int(rng.integers(2**62))
    settings = {
        "PYTHONHASHSEED": str(rng.integers(1000)),
        **{f"{name}_NUM_THREADS": str(rng.choice([1, 2, 8])) for name in ("OMP", "OPENBLAS")},
    }
    command = [sys.executable, "-m", "soak.determinism", str(number)]
    paths = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        command, env=os.environ | settings | {"PYTHONPATH": paths}, capture_output=True, check=True
    )
    expected = trained_answers(number)
    assert done.stdout.decode().strip() == digest(expected), f"{settings}, {number}"
    return "same bits" if expected else NO_MODEL


@attack("Threads that ask one model at once get the answers that each gets alone.", cases=500)
def concurrency(rng: np.random.Generator) -> str:
    """Ask a fresh copy of a model from many threads at once, in random orders."""
    model, data = random_problem(int(rng.integers(2**62)))
    if not is_fitted(model, data):
        return NO_MODEL
    expected = answers(model, data)
    fresh, problems = copy.deepcopy(model), []
    gate = threading.Barrier(6)

    def work(order: list[str]) -> None:
        try:
            gate.wait()
            for name in order:
                found = packed(questions(fresh, data)[name]())
                assert found == expected[name], f"{name} of {model!r}"
        except BaseException as problem:
            problems.append(problem)

    names = list(expected)
    orders = [list(rng.permutation(names)) for _ in range(gate.parties)]
    workers = [threading.Thread(target=work, args=[order]) for order in orders]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if problems:
        raise problems[0]
    return type(model).__name__


@attack(
    "Users in another order, or a few of them alone, get the bits that each of them gets among "
    "all: factors from fold-in, rankings, ranks, scores of an evaluation.",
    cases=1_000,
)
def orders(rng: np.random.Generator) -> str:
    """Ask for users in a random order, and for a part of them."""
    model, data = random_problem(int(rng.integers(2**62)))
    if not is_fitted(model, data):
        return NO_MODEL
    everybody = np.arange(data.shape[0])
    chosen = rng.permutation(everybody)[: rng.integers(1, data.shape[0] + 1)]

    def asked(users: Any) -> list[Any]:
        found = list(model.recommend(users, data[users], N=7, recalculate_user=True))
        found += list(model.recommend(users, data[users], N=3))
        if isinstance(model, MatrixFactorization):
            found.append(model.fold_in(data[users]))
        return found

    for whole, part in zip(asked(everybody), asked(chosen), strict=True):
        np.testing.assert_array_equal(whole[chosen], part, f"{model!r}")
    _, target = halves(data)
    if target[chosen].nnz:  # else `evaluate` has nothing to measure, and refuses
        scores = evaluated(model, data).scores
        for name, part in evaluated(model, data, chosen).scores.items():
            np.testing.assert_array_equal(scores[name][chosen], part, f"{name}, {model!r}")
    return type(model).__name__


@attack(
    "A fit to users in another order gives the same model up to rounding, where the start of the "
    "users does not matter: scores within 1e-3 of the largest for IALS and ERMMF with the exact "
    "solver and regularization from 1e-3 on, 1e-5 for EASE; for EASE with items in another order, "
    "too. Other models start from other factors, and may end elsewhere.",
    cases=1_000,
)
def reordered(rng: np.random.Generator) -> str:
    """Fit to data with permuted rows, and for EASE permuted columns."""
    kind = MODELS[str(rng.choice(["IALS", "ERMMF", "EASE"]))]
    _, data = random_problem(int(rng.integers(2**62)))
    users, items = rng.permutation(data.shape[0]), np.arange(data.shape[1])
    options: dict[str, Any] = {"regularization": log_uniform(rng, 1e-3, 1)}
    if kind.__name__ == "EASE":
        options["regularization"] *= 100
        items = rng.permutation(items)
    else:
        options |= {"factors": int(rng.integers(1, 70)), "solver": "exact", "iterations": 3,
                    "random_state": 0}  # fmt: skip
    model, other = kind(**options), kind(**options)
    if not (is_fitted(model, data) and is_fitted(other, data[users][:, items])):
        return NO_MODEL
    expected, found = all_scores(model, data), all_scores(other, data[users][:, items])
    bound = (1e-5 if kind.__name__ == "EASE" else 1e-3) * np.abs(expected).max()
    off = np.abs(expected[users][:, items] - found).max()
    assert off <= bound, f"{model!r}: off by {off:g}, where {bound:g} is allowed"
    return kind.__name__


def all_scores(model: Any, data: sp.csr_matrix) -> Any:
    """Return the scores of all users and items."""
    if isinstance(model, MatrixFactorization):
        users, items = model.both_factors()
        return users @ items.T
    return data @ model.item_weights


def same(find: Callable[[int], Answers], *settings: int) -> str:
    """Compare what is found at all the settings with the first."""
    first, *others = settings
    expected = find(first)
    for setting in others:
        compare(expected, find(setting), f"{setting} instead of {first}")
    return "same bits" if expected else NO_MODEL


def compare(expected: Answers, found: Answers, where: str) -> None:
    """Raise if answers differ."""
    names = sorted(expected.keys() | found.keys())
    differing = [name for name in names if expected.get(name) != found.get(name)]
    assert not differing, f"{where}: {differing} differ"


def random_problem(number: int, **fixed: Any) -> tuple[Recommender, sp.csr_matrix]:
    """Return an unfitted model with moderate options, and data: the same for the same number."""
    rng = np.random.default_rng(number)
    fixed = {"iterations": int(rng.integers(1, 5)), "factors": int(rng.integers(1, 70)), **fixed}
    model = random_model(rng, wild=0, fixed=fixed)
    users, items = (int(rng.choice([3, 17, 80, 400])) for _ in range(2))
    likes = rng.random((users, items)) < rng.choice([0.03, 0.2, 0.6])
    likes[0, 0] = True
    return model, sp.csr_matrix(likes * random_weights(rng, likes.shape, hostile=False))


def is_fitted(model: Recommender, data: sp.csr_matrix) -> bool:
    """Fit; False where the library says that these options will not do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(data, show_progress=False)
        except (ModelFitError, ValueError):
            return False
    return True


def trained_answers(number: int, **options: Any) -> Answers:
    """Train the model of this number, and return all its answers; none if it cannot be trained."""
    model, data = random_problem(number, **options)
    return answers(model, data) if is_fitted(model, data) else {}


def answers(model: Recommender, data: sp.csr_matrix) -> Answers:
    """Return what training has found, and the answers to all questions, as bytes."""
    return {name: packed(ask()) for name, ask in questions(model, data).items()}


def questions(model: Recommender, data: sp.csr_matrix) -> dict[str, Callable[[], Any]]:
    """Return all that a model may be asked, by name."""
    users, items = (np.arange(size) for size in data.shape)
    half = sp.csr_matrix(data.multiply(np.arange(data.shape[1]) % 2))
    found: dict[str, Callable[[], Any]] = {
        "recommend": lambda: model.recommend(users, data, N=5),
        "recalculate": lambda: model.recommend(users, half, N=5, recalculate_user=True),
        "similar items": lambda: model.similar_items(items, N=5),
        "ranks": lambda: model.ranks(half, data),
        "evaluate": lambda: measured(model, data),
    }
    if isinstance(model, MatrixFactorization):
        found |= {
            "factors": model.both_factors,
            "history": lambda: [numbers(record) for record in getattr(model, "history", [])],
            "similar users": lambda: model.similar_users(users, N=5),
            "fold-in": lambda: model.fold_in(half),
        }
    if isinstance(model, ALSModel):
        found["items"] = lambda: model.recalculate_item(items, data.T.tocsr())
    return found


def numbers(record: Any) -> list[float]:
    """Return the numbers of an epoch's record, but for its seconds."""
    return [value for value in vars(record).values() if isinstance(value, int | float)]


def halves(data: sp.csr_matrix) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Return the histories and the held-out items: every other item, or all if these are none."""
    kept = np.arange(data.shape[1]) % 2
    history, target = (sp.csr_matrix(data.multiply(part)) for part in (kept, 1 - kept))
    for part in (history, target):
        part.eliminate_zeros()
    if not target.nnz:
        target = data.astype(bool).astype(np.float32)
        history = sp.csr_matrix(data.multiply(0))
    return history, target


def evaluated(model: Recommender, data: sp.csr_matrix, users: Any = slice(None)) -> Any:
    """Evaluate a model on users, half of whose items are held out."""
    history, target = halves(data)
    held_out = SimpleNamespace(history=history[users], target=target[users])
    split = SimpleNamespace(train=data, test=held_out, item_ids=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return safecf.evaluate(model, split, k=(3, 10), tails=(0.3, 1.0))


def measured(model: Recommender, data: sp.csr_matrix) -> list[Any]:
    """Return scores and an interval."""
    evaluation = evaluated(model, data)
    return [*evaluation.scores.values(), *evaluation.interval("recall@3", 0.3)]


def packed(found: Any) -> bytes:
    """Return arrays and numbers as bytes."""
    if isinstance(found, list | tuple):
        return b"|".join(map(packed, found))
    return np.ascontiguousarray(found).tobytes()


def copied(model: Recommender) -> dict[str, Recommender]:
    """Return copies of a model by how they are made."""
    return {
        "saved": saved(model),
        "pickled": pickle.loads(pickle.dumps(model)),
        "copied": copy.deepcopy(model),
    }


def saved(model: Recommender) -> Recommender:
    """Save and load."""
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    return safecf.load(file)


def digest(found: Answers) -> str:
    """Return a checksum of answers."""
    return hashlib.sha256(b"\n".join(found[name] for name in sorted(found))).hexdigest()


if __name__ == "__main__":
    print(digest(trained_answers(int(sys.argv[1]))))
