"""The catalogue: named models, each nothing but a composition of loss, ridge, risk and solver."""

from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any

from safecf.als.kernels import KERNELS
from safecf.als.loss import Normalised, Plain, Ridge
from safecf.als.risk import Mean, SmoothedCVaR
from safecf.als.solvers import SOLVERS, Solver
from safecf.errors import choose
from safecf.models.als import ALSModel
from safecf.models.fold_in import Parts
from safecf.models.recommender import MODELS, register

__all__ = ["ERMMF", "IALS", "MODELS", "SAFER2", "SAFER2CG"]


@register
@dataclass(eq=False, repr=False)
class IALS(ALSModel):
    """Implicit ALS: everybody counts by the length of their history.

        loss_u  = 1/2 sum_{i in V_u} (1 - x_u.y_i)^2 + b/2 x_u' Y'Y x_u ,   w_u = 1
        ridge_u = lambda (|V_u| + b |V|)^nu ,   ridge_i = lambda (|U_i| + b |U|)^nu

    `ridge_exponent` is nu. The other parameters are explained in `ALSModel`.
    Reference: Rendle et al., Revisiting the Performance of iALS, RecSys 2022.
    """

    factors: int = 64
    _: KW_ONLY
    iterations: int = 30
    regularization: float = 0.006
    unobserved_weight: float = 0.2
    ridge_exponent: float = 1.0
    solver: str = "auto"
    tolerance: float = 1e-3
    init_std: float = 0.1
    random_state: Any = None
    num_threads: int = 0
    backend: str = "auto"

    def _compose(self) -> Parts:
        return Parts(
            loss=Plain(float(self.unobserved_weight)),
            ridge=Ridge(float(self.regularization), float(self.ridge_exponent)),
            risk=Mean(1.0),
            solver=_make_solver(self.solver, self.tolerance),
        )


@register
@dataclass(eq=False, repr=False)
class ERMMF(ALSModel):
    """ERM-MF: every user counts the same, w_u = alpha; SAFER2 with an infinite bandwidth.

        loss_u  = 1/(2 |V_u|) sum_{i in V_u} (1 - x_u.y_i)^2 + b/2 x_u' Y'Y x_u
        ridge_u = lambda (1 + b |V|) ,   ridge_i = lambda (sum_{u in U_i} 1/|V_u| + b alpha |U|)

    The parameters are explained in `ALSModel`.
    Reference: Togashi et al., Safe Collaborative Filtering, ICLR 2024.
    """

    factors: int = 64
    _: KW_ONLY
    iterations: int = 30
    regularization: float = 0.005
    unobserved_weight: float = 0.004
    tail: float = 0.3
    solver: str = "auto"
    tolerance: float = 1e-3
    init_std: float = 0.1
    random_state: Any = None
    num_threads: int = 0
    backend: str = "auto"

    def _compose(self) -> Parts:
        return Parts(
            loss=Normalised(float(self.unobserved_weight)),
            ridge=Ridge(float(self.regularization)),
            risk=Mean(float(self.tail)),
            solver=_make_solver(self.solver, self.tolerance),
        )


@register
@dataclass(eq=False, repr=False)
class SAFER2(ALSModel):
    """SAFER2: the users with the worst losses count most, a share `tail` of everybody in total.

        w_u = 1 - K((xi - loss_u) / h) ,   xi such that the mean of w_u is alpha

    with the loss and the ridges of `ERMMF`. `kernel` names K, `bandwidth` is h. Each epoch takes
    at most `quantile_steps` Newton steps for xi, on the share `quantile_sample` of the users. The
    other parameters are explained in `ALSModel`.
    Reference: Togashi et al., Safe Collaborative Filtering, ICLR 2024.
    """

    factors: int = 64
    _: KW_ONLY
    iterations: int = 30
    regularization: float = 0.004
    unobserved_weight: float = 0.004
    tail: float = 0.3
    kernel: str = "gaussian"
    bandwidth: float = 0.15
    quantile_steps: int = 5
    quantile_sample: float = 1.0
    solver: str = "auto"
    tolerance: float = 1e-3
    init_std: float = 0.1
    random_state: Any = None
    num_threads: int = 0
    backend: str = "auto"

    def _compose(self) -> Parts:
        return Parts(
            loss=Normalised(float(self.unobserved_weight)),
            ridge=Ridge(float(self.regularization)),
            risk=SmoothedCVaR(
                tail=float(self.tail),
                kernel=choose("kernel", self.kernel, KERNELS),
                bandwidth=float(self.bandwidth),
                steps=int(self.quantile_steps),
                sample=float(self.quantile_sample),
            ),
            solver=_make_solver(self.solver, self.tolerance),
        )


@register
@dataclass(eq=False, repr=False)
class SAFER2CG(SAFER2):
    """SAFER2-CG: `SAFER2` with the paper's solver, at most 5 conjugate gradient steps per row."""

    _: KW_ONLY
    solver: str = field(default="cg", init=False)
    tolerance: float = 1e-4


def _make_solver(name: str, tolerance: float) -> Solver:
    """Return the solver of that name, with the tolerance if it has one."""
    solver = choose("solver", name, SOLVERS)
    has_tolerance = "tolerance" in {option.name for option in fields(solver)}
    options: dict[str, Any] = {"tolerance": float(tolerance)} if has_tolerance else {}
    return solver(**options)
