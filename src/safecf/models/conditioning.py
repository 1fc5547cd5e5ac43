"""Users whose systems are too ill-conditioned for float32."""

import numpy as np

from safecf.als.capabilities import Fixed, HalfSteps
from safecf.als.loss import Vector
from safecf.als.rows import Rows
from safecf.errors import ConvergenceWarning, warn
from safecf.models.factor_arrays import Factors32

# Up to this condition number, a row solved in float32 is better than factors of zero; the attack
# `half-steps` states by how much.
ILL_CONDITIONED = 1e5
# A loss above this multiple of that of zero is no matter of rounding in the loss.
WORSE = 1.001


def condition_bound(
    backend: HalfSteps, rows: Rows, mass: Vector, unobserved: float, longest: float
) -> float:
    """Return the largest (p_r + g_r b n) max_j |y_j|^2 / ridge_r, which bounds cond A_r - 1.

    p_r = row_weight_r mass_r is the row's total pair weight, `unobserved` is b n, and `longest` is
    max_j |y_j|^2. With nu = 1 it is max_j |y_j|^2 / lambda, see `Ridge`.
    """
    with np.errstate(all="ignore"):
        weight = rows.row_weight * backend.place_vector(mass) + rows.gram_weight * unobserved
        bounds = backend.fetch(weight / rows.ridge)
        return float(np.max(np.where(mass > 0, bounds, 0), initial=0)) * longest


def check_users(
    backend: HalfSteps,
    rows: Rows,
    mass: Vector,
    fixed: Fixed,
    factors: Factors32,
    bound: float,
    regularization: float,
) -> None:
    """Warn of users whose objective is above that of x_u = 0, which only rounding explains.

    loss_u + ridge_u/2 |x_u|^2 > a_u m_u / 2 ; it is computed where the condition `bound` is large.
    """
    if bound <= ILL_CONDITIONED:
        return
    placed = backend.place(factors)
    losses = backend.losses(rows.matrix, rows.row_weight, placed, fixed, rows.ridge)
    found, pair_weight = backend.fetch(losses), backend.fetch(rows.row_weight)
    worse = np.count_nonzero(~(found <= WORSE * pair_weight * mass / 2))
    if worse:
        enough = (
            f", to {regularization * bound / ILL_CONDITIONED:.1g} or so" if bound < np.inf else ""
        )
        warn(
            f"{worse} of {mass.size} users have factors that are worse than none: in float32 their "
            f"systems are too ill-conditioned at regularization={regularization:g}; raise it"
            f"{enough}, or try backend='numpy', which computes in float64",
            ConvergenceWarning,
        )
