"""Solvers: frozen records of options; the backends carry them out, one method each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from safecf.als.optimizers import Optimizer

# From this tolerance on, 8 bits of the fixed side's factors will do: each coordinate is off by up
# to 2^-8, which averages out to about 1e-3 in a residual.
ROUGH = 2**-10


@dataclass(frozen=True)
class Exact:
    """x = A^-1 b by Cholesky, primal (d x d) for rows with n >= d, dual (n x n) for n < d.

    In the eigenbasis of G the shared part D = g G + ridge I is diagonal. With P = diag(p_j),
    Y the row's n fixed factors, and B = P^1/2 Y D^-1/2 (n x d),

        primal:  x = D^-1/2 (I + B'B)^-1 B' P^1/2 1     n d^2 + d^3/3
        dual:    x = D^-1/2 B' (I + BB')^-1 P^1/2 1     n^2 d + n^3/3
    """

    name: ClassVar[str] = "exact"
    sweep: ClassVar[str] = "alternating"
    is_rough: ClassVar[bool] = False


@dataclass(frozen=True)
class CG:
    """Plain conjugate gradients from the previous factors, as in SAFER2-CG.

    Stops at |b - Ax| <= tolerance |b| or after `max_iterations`.
    """

    max_iterations: int = 5
    tolerance: float = 1e-4
    name: ClassVar[str] = "cg"
    sweep: ClassVar[str] = "alternating"
    is_rough: ClassVar[bool] = False


@dataclass(frozen=True)
class SpectralCG:
    """Conjugate gradients in the eigenbasis of G, preconditioned with the diagonal of A there.

    The shared part g G + ridge I is diagonal for every row at once, so that the preconditioner
    diag(g lambda + ridge) + sum_j p_j y_j^2 is exact on it and misses only the off-diagonal part
    of the row's own pairs. Stops at |b - Ax| <= tolerance |b|.

    The warm start x0, the previous factors, is a direction whose image A x0 = b - residual is
    known: the minimum along it costs nothing, and all steps are made conjugate to it. That saves
    half an iteration or more. Where the minimum is beyond `most_stretch` x0 on either side, x0 is
    an ordinary start.
    """

    tolerance: float = 1e-3
    max_iterations: int = 50
    name: ClassVar[str] = "spectral-cg"
    sweep: ClassVar[str] = "alternating"
    most_stretch: ClassVar[float] = 8.0

    @property
    def is_rough(self) -> bool:
        """Whether a backend may read the fixed side as bfloat16, and rotate by rough products."""
        return self.tolerance >= ROUGH


@dataclass(frozen=True)
class Subspace:
    """Newton steps on blocks of `block_size` coordinates, users then items, as in SAFER2++.

    The objective is quadratic in the block pi of a row, so that the step solves it given the
    other coordinates: with the scores s_j = x.y_j,

        ( g G_pipi + sum_j p_j y_jpi y_jpi' + ridge I ) step
            = sum_j p_j (1 - s_j) y_jpi - g G_pi. x - ridge x_pi ,   x_pi += step .

    One block is the exact solver.
    """

    block_size: int
    name: ClassVar[str] = "subspace"
    sweep: ClassVar[str] = "cyclic"
    is_rough: ClassVar[bool] = False


@dataclass(frozen=True)
class Gradient:
    """One step against the gradients of users and items, both taken at the old factors: CVaR-MF.

        x -= step_size * direction ,   g = A x - b
             = ( gamma G + sum_j p_j y_j y_j' + ridge I ) x - sum_j p_j y_j

    The optimizer makes the direction from the row's gradient g; see `Rows` for its system.
    """

    step_size: float
    optimizer: Optimizer
    name: ClassVar[str] = "gradient"
    sweep: ClassVar[str] = "simultaneous"
    is_rough: ClassVar[bool] = False


RowSolver = Exact | CG | SpectralCG
Solver = RowSolver | Subspace | Gradient

# By name: the row solver that stops at a relative residual, if it iterates.
SOLVERS: dict[str, Callable[[float], RowSolver]] = {
    "auto": lambda tolerance: SpectralCG(tolerance=tolerance),
    "exact": lambda tolerance: Exact(),
    "cg": lambda tolerance: CG(tolerance=tolerance),
    "spectral-cg": lambda tolerance: SpectralCG(tolerance=tolerance),
}
