"""The loss: what an observed pair weighs against the unobserved ones, and the ridge that fits."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

LARGEST_RIDGE = 1e37  # sums with it are finite in float32


@dataclass(frozen=True)
class Loss:
    """loss_u = a_u/2 sum_{i in V_u} c_ui (1 - x_u.y_i)^2 + b/2 x_u' (Y'Y) x_u ,   a_u = m_u^-rho.

    m_u = sum_i c_ui is the user's mass, the number of interactions |V_u| when they carry no
    confidence weights. `unobserved_weight` is b, the paper's beta_0: what every score, observed or
    not, is pulled to zero with. `normalisation` is rho: with 1 every user's observed pairs weigh
    one in total, as in SAFER2, with 0 users weigh by the length of their history, as in iALS.
    """

    unobserved_weight: float
    normalisation: float = 1.0

    def pair_weight(self, mass: Vector) -> Vector:
        """Return a_u; 1 where the mass is zero."""
        return np.asarray(np.where(mass > 0, mass, 1.0) ** -self.normalisation)


@dataclass(frozen=True)
class Ridge:
    """ridge_r = lambda (mass_r + b n_r)^nu, the bound on the row's Hessian per unit of |y|^2.

    `mass_r` is the total pair weight of the row, `n_r` the total weight of the other side.
    With the plain loss this is the frequency ridge of iALS, lambda (|V_u| + b |V|)^nu. With the
    normalised loss it is the paper's condition-number ridge on the scale of the systems:
    lambda (1 + b |V|) for users, lambda (sum_{u in U_i} 1/|V_u| + b alpha |U|) for items.
    Where the weights are at most 1, with mean alpha, nu = 1 bounds the condition number of every
    row by max |y|^2 / lambda + 1.

    The users' ridge stands outside the risk, as in the paper, or `in_risk`: then the risk is that
    of loss_u + ridge_u/2 |x_u|^2. No weight w_u changes what is best for x_u, so that users of
    small weight are not pulled to zero; the users' half-step is the fold-in.
    """

    regularization: float
    exponent: float = 1.0
    in_risk: bool = False

    def weights(self, mass: Vector, unobserved: float) -> Vector:
        """Return lambda (mass + unobserved)^nu, with unobserved = b n; raise if beyond float32."""
        with np.errstate(over="ignore"):
            found = np.asarray(self.regularization * (mass + unobserved) ** self.exponent)
        largest = found.max(initial=0.0)
        if not largest <= LARGEST_RIDGE:
            raise ValueError(
                f"the ridge of a row is {largest:g}, beyond float32; lower regularization, which "
                f"is {self.regularization:g}, or ridge_exponent or unobserved_weight"
            )
        return found
