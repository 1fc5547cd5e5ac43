"""Counts: a user who counts twice is two users with the same history, in every part of the loop."""

import numpy as np
import pytest

from safecf.als.kernels import KERNELS
from safecf.als.loop import Training
from safecf.als.loss import Loss
from safecf.als.optimizers import SGD, Adam
from safecf.als.risk import CVaR, Mean, SmoothedCVaR
from safecf.als.solvers import CG, Exact, Gradient, SpectralCG, Subspace
from safecf.als.state import State
from safecf.backends.numpy import NumpyBackend
from safecf.data.matrices.csr import Csr
from tests.problems import matrix_of, problem_of
from tests.reference import rotation_free

NUMBERS = ("objective", "mean_loss", "var", "cvar", "xi", "mean_weight")
MEANS = [(Loss(0.1, 0.0), Mean(1.0)), (Loss(0.02), Mean(0.3))]
TAILS = [
    (Loss(0.02), SmoothedCVaR(0.3, KERNELS["gaussian"], 0.1)),
    (Loss(0.1, 0.0), SmoothedCVaR(0.3, KERNELS["gaussian"], 5.0)),
]
# the iterative ones end by the number of iterations: the same iterates, step by step
ALS = [Exact(), CG(4, 1e-9), SpectralCG(1e-9, 3), Subspace(2)]
GRADIENT = [Gradient(0.1, SGD()), Gradient(0.01, Adam())]
CASES = [(*parts, solver) for parts, solver in zip(MEANS + TAILS, ALS, strict=True)]
CASES += [(Loss(0.02), CVaR(0.3), solver) for solver in GRADIENT]


def some_users(*, weighted=False):
    """60 users, the first without interactions, and how often each counts: 0 to 3 times."""
    rng = np.random.default_rng(0)
    users = matrix_of(np.append(0, rng.integers(1, 12, 59)), 30, rng, weighted=weighted)
    return users, rng.permutation(np.arange(60) % 4)


def repeated(users, counts):
    """Return the matrix in which every user is there as often as they count."""
    rows = np.repeat(np.arange(users.num_rows), counts)
    places = [np.arange(*users.indptr[row : row + 2]) for row in rows]
    indptr = np.append(0, np.cumsum([place.size for place in places]))
    weights = None if users.weights is None else users.weights[np.concatenate(places)]
    return Csr(indptr, users.indices[np.concatenate(places)], weights, (rows.size, 30))


def trainings(loss, risk, solver):
    """Return two trainings with the same start: users who count, and users who are repeated."""
    users, counts = some_users(weighted=True)
    short = problem_of(users, loss, tail=risk.tail, counts=counts.astype(np.float64))
    long = problem_of(repeated(users, counts), loss, tail=risk.tail)
    one, other = (
        Training(problem, risk, solver, NumpyBackend(), seed=1) for problem in (short, long)
    )
    state = one.start(4, 0.5)
    copies = State(
        users=np.repeat(state.users, counts, axis=0),
        items=state.items.copy(),
        weights=np.repeat(state.weights, counts),
    )
    return (one, state), (other, copies), counts


@pytest.mark.parametrize(("loss", "risk", "solver"), CASES, ids=str)
def test_a_user_who_counts_twice_is_two_users(loss, risk, solver):
    (one, state), (other, copies), counts = trainings(loss, risk, solver)
    records = list(one.epochs(state, 3)), list(other.epochs(copies, 3))
    close = {"rtol": 0, "atol": 1e-9}
    expanded = np.repeat(state.users, counts, axis=0)
    np.testing.assert_allclose(
        rotation_free(expanded, state.items), rotation_free(copies.users, copies.items), **close
    )
    np.testing.assert_allclose(np.repeat(state.weights, counts), copies.weights, **close)
    for short, long in zip(*records, strict=True):
        for name in NUMBERS:
            assert getattr(short, name) == pytest.approx(getattr(long, name), rel=close["atol"])


@pytest.mark.parametrize("exponent", [1.0, 0.5])
@pytest.mark.parametrize(("loss", "risk"), MEANS, ids=str)
def test_the_ridges_are_those_of_the_repeated_users(loss, risk, exponent):
    users, counts = some_users(weighted=True)
    many = counts.astype(np.float64)
    short = problem_of(users, loss, tail=risk.tail, exponent=exponent, counts=many)
    long = problem_of(repeated(users, counts), loss, tail=risk.tail, exponent=exponent)
    assert (short.num_users, short.num_items) == (long.num_users, long.num_items)
    ridges = np.repeat(short.unit_user_rows.ridge, counts)
    np.testing.assert_allclose(ridges, long.unit_user_rows.ridge)
    np.testing.assert_allclose(short.unit_item_rows.ridge, long.unit_item_rows.ridge)


def test_users_who_count_zero_times_count_nowhere():
    """The 3rd user alone has item 9, which is therefore no item of the problem."""
    indices = np.array([0, 1, 2, 1, 3, 4, 2, 9], dtype=np.int32)
    users = Csr(np.array([0, 3, 6, 8]), indices, None, (3, 10))
    problem = problem_of(users, Loss(0.02), counts=np.array([2.0, 0.5, 0.0]))
    assert problem.active_users.tolist() == [True, True, False]
    assert np.flatnonzero(problem.active_items).tolist() == [0, 1, 2, 3, 4]
    assert (problem.num_users, problem.num_items) == (2.5, 5)
    population = problem.population(np.array([1.0, 3.0, 7.0]))
    assert (population.size, population.mean(population.losses)) == (2.5, 1.4)
    state = Training(problem, Mean(0.3), Exact(), NumpyBackend(), seed=0).start(4, 0.1)
    assert state.users.any(axis=1).tolist() == [True, True, False]
    assert state.items.any(axis=1).tolist() == [True] * 5 + [False] * 5
    assert state.weights.tolist() == [0.3, 0.3, 0.0]
