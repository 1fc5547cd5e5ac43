"""Losses: what an observed pair weighs against the unobserved ones, and the ridge that fits."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class Loss(Protocol):
    """loss_u = a_u/2 sum_{i in V_u} c_ui (1 - x_u.y_i)^2 + b/2 x_u' (Y'Y) x_u.

    A loss is its `pair_weight` a_u, a function of the user's mass m_u = sum_i c_ui (the number
    of interactions |V_u| when they carry no confidence weights), and its `unobserved_weight` b.
    """

    @property
    def unobserved_weight(self) -> float:
        """The paper's beta_0: what every score, observed or not, is pulled to zero with."""

    def pair_weight(self, mass: Vector) -> Vector:
        """a_u as a function of the users' masses; anything finite where the mass is zero."""


@dataclass(frozen=True)
class Plain:
    """a_u = 1: users weigh by the length of their history, as in iALS."""

    unobserved_weight: float

    def pair_weight(self, mass: Vector) -> Vector:
        """Return a_u = 1."""
        return np.ones_like(mass)


@dataclass(frozen=True)
class Normalised:
    """a_u = 1/m_u: every user's observed pairs weigh one in total, as in SAFER2."""

    unobserved_weight: float

    def pair_weight(self, mass: Vector) -> Vector:
        """Return a_u = 1/m_u."""
        return np.divide(1.0, mass, out=np.zeros_like(mass), where=mass > 0)


LOSSES: dict[str, type[Normalised] | type[Plain]] = {"normalised": Normalised, "plain": Plain}


@dataclass(frozen=True)
class Ridge:
    """ridge_r = lambda (mass_r + b n_r)^nu, the bound on the row's Hessian per unit of |y|^2.

    `mass_r` is the total pair weight of the row, `n_r` the total weight of the other side.
    With the plain loss this is the frequency ridge of iALS, lambda (|V_u| + b |V|)^nu. With the
    normalised loss it is the paper's condition-number ridge on the scale of the systems:
    lambda (1 + b |V|) for users, lambda (sum_{u in U_i} 1/|V_u| + b alpha |U|) for items.
    Where the weights are at most 1, with mean alpha, nu = 1 bounds the condition number of every
    row by max |y|^2 / lambda + 1.
    """

    regularization: float
    exponent: float = 1.0

    def weights(self, mass: Vector, unobserved: float) -> Vector:
        """Return lambda (mass + unobserved)^nu, with unobserved = b n."""
        return np.asarray(self.regularization * (mass + unobserved) ** self.exponent)
