"""The catalogue: named models, each nothing but a composition of loss, ridge, risk and solver."""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from safecf.als.group_risk import GroupCVaR
from safecf.als.kernels import KERNELS
from safecf.als.loss import Loss, Ridge
from safecf.als.optimizers import OPTIMIZERS
from safecf.als.risk import CVaR, Mean, SmoothedCVaR
from safecf.als.solvers import Gradient, Solver, Subspace
from safecf.data.matrices.ids import IdArray
from safecf.errors import choose
from safecf.models.als import ALSModel
from safecf.models.fold_in import Parts
from safecf.models.recommender import MODELS, register

__all__ = ["ERMMF", "IALS", "IALSPP", "MODELS", "SAFER2", "SAFER2CG", "SAFER2PP", "CVaRMF"]


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
            loss=Loss(float(self.unobserved_weight), 0.0),
            ridge=Ridge(float(self.regularization), float(self.ridge_exponent)),
            risk=Mean(1.0),
            solver=self._make_solver(),
        )


@register
@dataclass(eq=False, repr=False)
class ERMMF(ALSModel):
    """ERM-MF: every user counts the same, w_u = alpha; SAFER2 with an infinite bandwidth.

        loss_u  = 1/(2 |V_u|) sum_{i in V_u} (1 - x_u.y_i)^2 + b/2 x_u' Y'Y x_u
        ridge_u = lambda (1 + b |V|) ,   ridge_i = lambda (sum_{u in U_i} 1/|V_u| + b alpha |U|)

    `normalisation` is rho: for any but 1 read |V_u|^rho for |V_u|, and |V_u|^(1 - rho) for the 1 in
    ridge_u. Below 1, users with long histories count more, and losses, b and bandwidths have
    another scale. The other parameters are explained in `ALSModel`.
    Reference: Togashi et al., Safe Collaborative Filtering, ICLR 2024.
    """

    factors: int = 64
    _: KW_ONLY
    iterations: int = 30
    regularization: float = 0.005
    unobserved_weight: float = 0.004
    tail: float = 0.3
    normalisation: float = 1.0
    solver: str = "auto"
    tolerance: float = 1e-3
    init_std: float = 0.1
    random_state: Any = None
    num_threads: int = 0
    backend: str = "auto"

    def _compose(self) -> Parts:
        return Parts(
            loss=Loss(float(self.unobserved_weight), float(self.normalisation)),
            ridge=Ridge(float(self.regularization)),
            risk=Mean(float(self.tail)),
            solver=self._make_solver(),
        )


@register
@dataclass(eq=False, repr=False)
class CVaRMF(ALSModel):
    """CVaR-MF: only the users with the worst losses count, a share `tail` of everybody.

        w_u = 1{loss_u >= xi} ,   xi the (1 - alpha) quantile of the losses, exact in every epoch

    with the loss and the ridges of `ERMMF`. The objective has kinks, so there is nothing to solve:
    every epoch is one step of size `step_size` (tau) against the gradients of all users and items,
    as they are ("sgd") or scaled ("adam", the `optimizer`, for steps of about 0.01). It takes
    hundreds of epochs. A step size that is too large ends training with a `ConvergenceWarning`,
    and leaves the model of the epoch before. `user_weights` are the means of w_u over all
    epochs, since one epoch has zeros for most users. The other parameters are explained in
    `ALSModel`.
    Reference: Togashi et al., Safe Collaborative Filtering, ICLR 2024.
    """

    factors: int = 64
    _: KW_ONLY
    iterations: int = 500
    regularization: float = 0.002
    unobserved_weight: float = 0.008
    tail: float = 0.3
    normalisation: float = 1.0
    step_size: float = 0.4
    optimizer: str = "sgd"
    init_std: float = 0.1
    random_state: Any = None
    num_threads: int = 0
    backend: str = "auto"

    def _compose(self) -> Parts:
        return Parts(
            loss=Loss(float(self.unobserved_weight), float(self.normalisation)),
            ridge=Ridge(float(self.regularization)),
            risk=CVaR(float(self.tail)),
            solver=self._make_solver(),
        )

    def _make_solver(self) -> Solver:
        optimizer = choose("optimizer", self.optimizer, OPTIMIZERS)
        return Gradient(float(self.step_size), optimizer)


@register
@dataclass(eq=False, repr=False)
class SAFER2(ALSModel):
    """SAFER2: the users with the worst losses count most, a share `tail` of everybody in total.

        w_u = 1 - K((xi - loss_u) / h) ,   xi such that the mean of w_u is alpha

    with the loss and the ridges of `ERMMF`. `kernel` names K, `bandwidth` is h. Each epoch takes
    at most `quantile_steps` Newton steps for xi, on the share `quantile_sample` of the users. The
    other parameters are explained in `ALSModel`.

    With normalisation=0 it has the loss and the ridges of `IALS` (nu = 1), and with tail=1 as well
    it is `IALS`. The smaller it is, the larger are the losses, above all of users with long
    histories, and the larger the bandwidth and the `unobserved_weight` that fit.

    Given the `user_groups` of `fit`, the worst-off groups count most; see `GroupCVaR`.
    Reference: Togashi et al., Safe Collaborative Filtering, ICLR 2024.
    """

    factors: int = 64
    _: KW_ONLY
    iterations: int = 30
    regularization: float = 0.004
    unobserved_weight: float = 0.004
    tail: float = 0.3
    normalisation: float = 1.0
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
            loss=Loss(float(self.unobserved_weight), float(self.normalisation)),
            ridge=Ridge(float(self.regularization)),
            risk=self._make_risk(),
            solver=self._make_solver(),
        )

    def _make_risk(self) -> SmoothedCVaR:
        return SmoothedCVaR(
            tail=float(self.tail),
            kernel=choose("kernel", self.kernel, KERNELS),
            bandwidth=float(self.bandwidth),
            steps=int(self.quantile_steps),
            sample=float(self.quantile_sample),
        )

    def _group_risk(self, labels: IdArray) -> GroupCVaR:
        return GroupCVaR.of(self._make_risk(), labels)


class Blockwise:
    """The solver of iALS++ and SAFER2++: blocks of `block_size` coordinates, users then items."""

    block_size: int

    def _make_solver(self) -> Solver:
        return Subspace(int(self.block_size))


@register
@dataclass(eq=False, repr=False)
class IALSPP(Blockwise, IALS):
    """iALS++: `IALS` by blocks pi of `block_size` coordinates, users then items for each of them.

        ( b Y_pi'Y_pi + sum_{i in V_u} y_ipi y_ipi' + ridge_u I ) step_u
            = sum_{i in V_u} (1 - x_u.y_i) y_ipi - b Y_pi'Y x_u - ridge_u x_upi ,
        x_upi += step_u ,   and the same for the items

    An epoch costs O(|S| d B + (|U| + |V|) (d^2 + d B^2)) for blocks of size B, and 8 bytes per
    interaction beside the data. With one block, B = d, it is the exact solver.
    Reference: Rendle et al., iALS++: Speeding up Matrix Factorization with Subspace Optimization,
    arXiv:2110.14044.
    """

    _: KW_ONLY
    block_size: int = 32
    solver: str = field(default="subspace", init=False)
    tolerance: float = field(default=0.0, init=False)


@register
@dataclass(eq=False, repr=False)
class SAFER2PP(Blockwise, SAFER2):
    """SAFER2++: `SAFER2` by blocks pi of `block_size` coordinates, users then items for each.

        ( w_u b Y_pi'Y_pi + w_u/|V_u| sum_{i in V_u} y_ipi y_ipi' + ridge_u I ) step_u
            = w_u/|V_u| sum_{i in V_u} (1 - x_u.y_i) y_ipi - w_u b Y_pi'Y x_u - ridge_u x_upi ,
        x_upi += step_u ,   and the same for the items, with sums over users

    What it costs is told in `IALSPP`.
    Reference: Togashi et al., Safe Collaborative Filtering, ICLR 2024, appendix.
    """

    _: KW_ONLY
    block_size: int = 32
    solver: str = field(default="subspace", init=False)
    tolerance: float = field(default=0.0, init=False)


@register
@dataclass(eq=False, repr=False)
class SAFER2CG(SAFER2):
    """SAFER2-CG: `SAFER2` with the paper's solver, at most 5 conjugate gradient steps per row.

    They go from the last epoch's factors towards those with A x = b, see `Rows`, and end earlier
    where |b - A x| <= tolerance |b|.
    Reference: Togashi et al., Safe Collaborative Filtering, ICLR 2024.
    """

    _: KW_ONLY
    solver: str = field(default="cg", init=False)
    tolerance: float = 1e-4
