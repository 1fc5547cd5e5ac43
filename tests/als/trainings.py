"""Small trainings: 60 users with short histories of 30 items."""

import dataclasses

import numpy as np

from safecf.als.kernels import KERNELS
from safecf.als.loop import Training
from safecf.als.solvers import Exact
from safecf.backends.cpu import CpuBackend
from safecf.backends.numpy import NumpyBackend
from tests.problems import matrix_of, problem_of

GAUSSIAN = KERNELS["gaussian"]
BACKENDS = [NumpyBackend(), CpuBackend()]


def training_of(
    loss,
    risk,
    solver=None,
    backend=None,
    *,
    regularization=0.05,
    in_risk=False,
    counts=None,
    lengths=None,
    columns=30,
    weighted=False,
):
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 12, 60) if lengths is None else lengths
    users = matrix_of(lengths, columns, rng, weighted=weighted)
    problem = problem_of(users, loss, regularization, tail=risk.tail, counts=counts)
    ridge = dataclasses.replace(problem.ridge, in_risk=in_risk)
    problem = dataclasses.replace(problem, ridge=ridge)
    return Training(problem, risk, solver or Exact(), backend or NumpyBackend(), seed=1)


def run(training, iterations, factors=5):
    state = training.start(factors, 0.5)
    return state, list(training.epochs(state, iterations))


def held(state):
    """Everything that a state holds, to be compared before and after."""
    shown = [state.users.tobytes(), state.items.tobytes(), state.weights.tobytes()]
    for moments in state.moments:
        shown += [] if moments is None else [moment.tobytes() for moment in moments]
    return [*shown, state.xi, state.epoch]
