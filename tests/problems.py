"""Small problems for the tests: matrices with chosen row lengths, and what is minimised on them."""

from functools import partial

import numpy as np
import scipy

from safecf.als.loss import Loss, Ridge
from safecf.als.rows import Problem
from safecf.data.matrices.csr import Csr
from safecf.data.matrices.interactions import Interactions

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
