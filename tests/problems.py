"""Small problems for the tests: matrices with chosen row lengths, and brute-force objectives."""

from functools import partial

import numpy as np
import scipy

from safecf.als.loss import Loss, Ridge
from safecf.als.rows import Problem
from safecf.data.matrices.csr import Csr
from safecf.data.matrices.interactions import Interactions

__all__ = [
    "LOSSES",
    "N_DIMENSIONAL",
    "dense",
    "gradient",
    "matrix_of",
    "objective",
    "problem_of",
    "user_losses",
]

# Whether scipy has sparse arrays with one dimension and with more than two.
N_DIMENSIONAL = tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 15)

# By name: the loss with a weight of the unobserved pairs.
LOSSES = {
    name: partial(Loss, normalisation=rho)
    for name, rho in (("plain", 0.0), ("in between", 0.7), ("normalised", 1.0))
}


def matrix_of(lengths, num_columns, rng, *, weighted=False) -> Csr:
    """Return a matrix whose rows have these lengths, with or without confidence weights."""
    rows = [np.sort(rng.choice(num_columns, n, replace=False)) for n in lengths]
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    indices = np.concatenate(rows).astype(np.int32)
    weights = rng.uniform(0.2, 3.0, len(indices)).astype(np.float32) if weighted else None
    return Csr(indptr, indices, weights, (len(lengths), num_columns))


def problem_of(
    users: Csr, loss: Loss, regularization=0.05, tail=0.3, exponent=1.0, counts=None
) -> Problem:
    """Return the problem on the interactions of `users`."""
    ridge = Ridge(regularization, exponent)
    return Problem(Interactions(users, users.transpose()), loss, ridge, tail, counts)


def dense(matrix: Csr) -> np.ndarray:
    """Return the confidences as a dense matrix."""
    out = np.zeros(matrix.shape)
    for row in range(matrix.num_rows):
        columns, confidence = matrix.row(row)
        out[row, columns] = confidence
    return out


def user_losses(users: Csr, loss: Loss, x, y) -> np.ndarray:
    """loss_u by the dense formula."""
    confidence, scores = dense(users), x @ y.T
    pair_weight = loss.pair_weight(users.row_mass())
    error = (confidence * (1 - scores) ** 2).sum(axis=1)
    return pair_weight / 2 * error + loss.unobserved_weight / 2 * (scores**2).sum(axis=1)


def objective(problem: Problem, weights, x, y) -> float:
    """sum_u count_u (w_u loss_u + ridge_u/2 |x_u|^2) + 1/2 sum_i ridge_i |y_i|^2, dense."""
    losses = user_losses(problem.interactions.users, problem.loss, x, y)
    ridge_users = problem.unit_user_rows.ridge / 2 * (x**2).sum(axis=1)
    ridge_items = problem.unit_item_rows.ridge @ (y**2).sum(axis=1)
    counts = np.ones(len(x)) if problem.user_count is None else problem.user_count
    return counts @ (weights * losses + ridge_users) + ridge_items / 2


def gradient(function, at, step=1e-5) -> np.ndarray:
    """Return the central differences of a scalar function of a matrix."""
    slopes = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[index] += step
        down[index] -= step
        slopes[index] = (function(up) - function(down)) / (2 * step)
    return slopes


def rotation_free(users, items):
    """What rotating both sides alike leaves as it is: the scores, and the items' products."""
    return np.concatenate([users, items]) @ items.T
