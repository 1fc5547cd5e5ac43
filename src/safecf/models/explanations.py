"""Explanations of ALS scores: what each item of a history adds to the score of an item."""

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from safecf.als.rows import Rows, naming
from safecf.errors import SolveError
from safecf.models.factor_arrays import Factors32

Matrix = NDArray[np.float64]
Weights = tuple[Matrix, bool]  # scipy's Cholesky factor, and whether it is the lower one


def contributions(
    rows: Rows,
    history: tuple[NDArray[np.int32], NDArray[np.float64]],
    items: Factors32,
    gram: Matrix,
    item: int,
    weights: Weights | None,
) -> tuple[NDArray[np.float64], Weights]:
    """y_i' A_u^-1 p_uj y_j for every item j of the history: they add up to y_i' x_u.

        A_u = G + sum_{j in V_u} p_uj y_j y_j' + ridge_u I ,   p_uj = a_u c_uj

    The history are the items j and their confidences c_uj, `rows` the user's half-step, and
    `weights` the Cholesky factor of A_u, which is computed if it is None. All is in float64.
    Reference: Hu, Koren and Volinsky, Collaborative Filtering for Implicit Feedback Datasets,
    ICDM 2008, section 5.
    """
    columns, confidences = history
    pairs, own = rows.row_weight * confidences, items[columns].astype(np.float64)
    if weights is None:
        system = gram + own.T @ (pairs[:, None] * own)
        system[np.diag_indices_from(system)] += rows.ridge
        weights = _factorized(system, float(rows.ridge[0]))
    _check_weights(weights, items.shape[1])
    weighted = scipy.linalg.cho_solve(weights, items[item].astype(np.float64))
    return pairs * (own @ weighted), weights


def _factorized(system: Matrix, ridge: float) -> Weights:
    try:
        factor, lower = scipy.linalg.cho_factor(system)
    except (np.linalg.LinAlgError, ValueError):  # not definite, or not finite
        with naming("user"):
            raise SolveError.at(0, ridge) from None
    return factor, bool(lower)


def _check_weights(weights: Any, size: int) -> None:
    """Raise if these are not the weights that an earlier call returned."""
    if not isinstance(weights, tuple) or np.shape(weights[0]) != (size, size):
        raise ValueError(
            "user_weights is not what explain has returned for this user; leave it out"
        )
