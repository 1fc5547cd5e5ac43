"""The catalogue: named models, each nothing but a composition of loss, ridge, risk and solver.

A model is a loss, a risk and a solver side by side, `class SAFER2(Rowwise, SmoothedTail,
NormalisedLoss)`: each of them brings its options and makes its part. Defaults that differ from
`ALSModel`'s stand in the named model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from safecf.als.kernels import KERNELS
from safecf.als.loss import Loss, Ridge
from safecf.als.optimizers import OPTIMIZERS
from safecf.als.risk import CVaR, Mean, SmoothedCVaR
from safecf.als.solvers import CG, SOLVERS, Gradient, RowSolver, Subspace
from safecf.defaults import AUTO, LEVEL
from safecf.models.als import ALSModel
from safecf.models.model import register
from safecf.models.options import (
    BANDWIDTH,
    EXPONENT,
    POSITIVE_INTEGER,
    SHARE,
    STEP_SIZE,
    STEPS,
    TOLERANCE,
    Auto,
    Name,
    Number,
    check_flag,
    option,
)
from safecf.models.scaling import RELATIVE_BANDWIDTH

__all__ = ["ERMMF", "IALS", "IALSPP", "SAFER2", "SAFER2CG", "SAFER2PP", "CVaRMF"]


@dataclass(eq=False, repr=False, kw_only=True)
class PlainLoss(ALSModel):
    """A user's loss is a sum over the history."""

    ridge_exponent: float = option(1.0, EXPONENT)

    def make_loss(self) -> Loss:
        """a_u = 1."""
        return Loss(self.number("unobserved_weight"), 0.0)

    def make_ridge(self) -> Ridge:
        """ridge_r = lambda (mass_r + b n_r)^nu."""
        return Ridge(self.number("regularization"), float(self.ridge_exponent))


@dataclass(eq=False, repr=False, kw_only=True)
class NormalisedLoss(ALSModel):
    """A user's loss is a mean over the history, or between a mean and a sum.

    The users' ridge is `ridge_in_risk`, or outside of it as in the paper; see `Ridge`.
    """

    normalisation: float = option(1.0, Number(0, 1, "[]"))
    ridge_in_risk: bool = option(True, check_flag)

    earlier_options: ClassVar[Mapping[str, bool]] = {"ridge_in_risk": False}

    def make_loss(self) -> Loss:
        """a_u = m_u^-rho."""
        return Loss(self.number("unobserved_weight"), float(self.normalisation))

    def make_ridge(self) -> Ridge:
        """ridge_r = lambda (mass_r + b n_r)."""
        return Ridge(self.number("regularization"), in_risk=bool(self.ridge_in_risk))


@dataclass(eq=False, repr=False, kw_only=True)
class Everybody(ALSModel):
    """Everybody counts the same, with weight 1."""

    def make_risk(self) -> Mean:
        """w_u = 1."""
        return Mean(1.0)


@dataclass(eq=False, repr=False, kw_only=True)
class EqualTail(ALSModel):
    """Everybody counts the same, with the weight `tail`."""

    tail: float = option(LEVEL, SHARE)

    def make_risk(self) -> Mean:
        """w_u = alpha."""
        return Mean(float(self.tail))


@dataclass(eq=False, repr=False, kw_only=True)
class ExactTail(ALSModel):
    """Only the worst-off share `tail` of the users counts."""

    tail: float = option(LEVEL, SHARE)

    def make_risk(self) -> CVaR:
        """w_u = 1{loss_u >= xi}."""
        return CVaR(float(self.tail))


@dataclass(eq=False, repr=False, kw_only=True)
class SmoothedTail(ALSModel):
    """The worst-off share `tail` of the users counts, smoothed."""

    tail: float = option(LEVEL, SHARE)
    kernel: str = option("gaussian", Name(KERNELS))
    bandwidth: float | str = option(AUTO, Auto(BANDWIDTH))
    quantile_steps: int = option(5, STEPS)
    quantile_sample: float = option(1.0, SHARE)

    def make_risk(self) -> SmoothedCVaR:
        """w_u = 1 - K((xi - loss_u) / h)."""
        relative = self.bandwidth == AUTO
        return SmoothedCVaR(
            tail=float(self.tail),
            kernel=KERNELS[self.kernel],
            bandwidth=RELATIVE_BANDWIDTH if relative else self.number("bandwidth"),
            steps=int(self.quantile_steps),
            sample=float(self.quantile_sample),
            relative=relative,
        )


@dataclass(eq=False, repr=False, kw_only=True)
class Rowwise(ALSModel):
    """Rows are solved one by one: exactly, or by conjugate gradients up to `tolerance`."""

    solver: str = option("auto", Name(SOLVERS))
    tolerance: float = option(1e-3, TOLERANCE)

    def make_solver(self) -> RowSolver:
        """Return the solver of that name."""
        return SOLVERS[self.solver](float(self.tolerance))


@dataclass(eq=False, repr=False, kw_only=True)
class PaperCG(ALSModel):
    """Rows are solved by at most 5 steps of plain conjugate gradients."""

    tolerance: float = option(1e-4, TOLERANCE)

    def make_solver(self) -> CG:
        """Return the paper's solver."""
        return CG(tolerance=float(self.tolerance))


@dataclass(eq=False, repr=False, kw_only=True)
class Blockwise(ALSModel):
    """Blocks of `block_size` coordinates are solved, users then items for each of them."""

    block_size: int = option(32, POSITIVE_INTEGER)

    def make_solver(self) -> Subspace:
        """Return the solver with its block size."""
        return Subspace(int(self.block_size))


@dataclass(eq=False, repr=False, kw_only=True)
class Stepwise(ALSModel):
    """Nothing is solved: every epoch is one gradient step."""

    step_size: float = option(0.4, STEP_SIZE)
    optimizer: str = option("sgd", Name(OPTIMIZERS))

    def make_solver(self) -> Gradient:
        """Return the step size with its optimizer."""
        return Gradient(float(self.step_size), OPTIMIZERS[self.optimizer])


@register
@dataclass(eq=False, repr=False, kw_only=True)
class IALS(Rowwise, Everybody, PlainLoss):
    """Implicit ALS: everybody counts by the length of their history.

        loss_u  = 1/2 sum_{i in V_u} (1 - x_u.y_i)^2 + b/2 x_u' Y'Y x_u ,   w_u = 1
        ridge_u = lambda (|V_u| + b |V|)^nu ,   ridge_i = lambda (|U_i| + b |U|)^nu

    `ridge_exponent` is nu. The other parameters are explained in `ALSModel`.
    Reference: Rendle et al., Revisiting the Performance of iALS, RecSys 2022.
    """


@register
@dataclass(eq=False, repr=False, kw_only=True)
class ERMMF(Rowwise, EqualTail, NormalisedLoss):
    """ERM-MF: every user counts the same, w_u = alpha; SAFER2 with an infinite bandwidth.

        loss_u  = 1/(2 |V_u|) sum_{i in V_u} (1 - x_u.y_i)^2 + b/2 x_u' Y'Y x_u
        ridge_u = lambda (1 + b |V|) ,   ridge_i = lambda (sum_{u in U_i} 1/|V_u| + b alpha |U|)

    `normalisation` is rho: for any but 1 read |V_u|^rho for |V_u|, and |V_u|^(1 - rho) for the 1 in
    ridge_u. Below 1, users with long histories count more, and losses, b and bandwidths have
    another scale. The other parameters are explained in `ALSModel`.
    Reference: Togashi et al., Safe Collaborative Filtering, ICLR 2024.
    """


@register
@dataclass(eq=False, repr=False, kw_only=True)
class CVaRMF(Stepwise, ExactTail, NormalisedLoss):
    """CVaR-MF: only the users with the worst losses count, a share `tail` of everybody.

        w_u = 1{loss_u >= xi} ,   xi the (1 - alpha) quantile of the losses, exact in every epoch

    with the loss and the ridges of `ERMMF`, outside the risk. The objective has kinks, so there is
    nothing to solve: every epoch is one step of size `step_size` (tau) against the gradients of all
    users and items, as they are ("sgd") or scaled ("adam", the `optimizer`, for steps of about
    0.01). It takes hundreds of epochs. A step size that is too large ends training with a
    `ConvergenceWarning`,
    and leaves the model of the epoch before. `user_weights` are the means of w_u over all
    epochs, since one epoch has zeros for most users. The other parameters are explained in
    `ALSModel`.
    Reference: Togashi et al., Safe Collaborative Filtering, ICLR 2024.
    """

    iterations: int = 500
    regularization: float = 0.002
    ridge_in_risk: bool = False


@register
@dataclass(eq=False, repr=False, kw_only=True)
class SAFER2(Rowwise, SmoothedTail, NormalisedLoss):
    """SAFER2: the users with the worst losses count most, a share `tail` of everybody in total.

        w_u = 1 - K((xi - loss_u) / h) ,   xi such that the mean of w_u is alpha

    with the loss and the ridges of `ERMMF`. `kernel` names K, `bandwidth` is h; "auto" is 1.5
    standard deviations of the losses, anew in every epoch. Each epoch takes at most
    `quantile_steps` Newton steps for xi, on the share `quantile_sample` of the users. The other
    parameters are explained in `ALSModel`.

    With `ridge_in_risk`, loss_u stands for loss_u + ridge_u/2 |x_u|^2, and the weights go from the
    last epoch's towards the new ones by the step h / (h + std(loss)): a user's factors do not
    depend on the weight, so that training cannot collapse. With a bandwidth far below the spread
    of the losses the weights move slowly, and want more epochs. False is the paper's form.

    With normalisation=0 it has the loss and the ridges of `IALS` (nu = 1), and with tail=1 as well
    it is `IALS`. The smaller it is, the larger are the losses, above all of users with long
    histories, and the larger the bandwidth and the `unobserved_weight` that fit.

    Given the `user_groups` of `fit`, the worst-off groups count most; see `GroupCVaR`.
    Reference: Togashi et al., Safe Collaborative Filtering, ICLR 2024.
    """


@register
@dataclass(eq=False, repr=False, kw_only=True)
class IALSPP(Blockwise, Everybody, PlainLoss):
    """iALS++: `IALS` by blocks pi of `block_size` coordinates, users then items for each of them.

        ( b Y_pi'Y_pi + sum_{i in V_u} y_ipi y_ipi' + ridge_u I ) step_u
            = sum_{i in V_u} (1 - x_u.y_i) y_ipi - b Y_pi'Y x_u - ridge_u x_upi ,
        x_upi += step_u ,   and the same for the items

    An epoch costs O(|S| d B + (|U| + |V|) (d^2 + d B^2)) for blocks of size B, and 8 bytes per
    interaction beside the data. With one block, B = d, it is the exact solver.
    Reference: Rendle et al., iALS++: Speeding up Matrix Factorization with Subspace Optimization,
    arXiv:2110.14044.
    """


@register
@dataclass(eq=False, repr=False, kw_only=True)
class SAFER2PP(Blockwise, SmoothedTail, NormalisedLoss):
    """SAFER2++: `SAFER2` by blocks pi of `block_size` coordinates, users then items for each.

        ( w_u b Y_pi'Y_pi + w_u/|V_u| sum_{i in V_u} y_ipi y_ipi' + ridge_u I ) step_u
            = w_u/|V_u| sum_{i in V_u} (1 - x_u.y_i) y_ipi - w_u b Y_pi'Y x_u - ridge_u x_upi ,
        x_upi += step_u ,   and the same for the items, with sums over users

    This is the paper's form, ridge_in_risk=False; with the ridge in the risk, read 1 for w_u in
    the users' step. What it costs is told in `IALSPP`.
    Reference: Togashi et al., Safe Collaborative Filtering, ICLR 2024, appendix.
    """


@register
@dataclass(eq=False, repr=False, kw_only=True)
class SAFER2CG(PaperCG, SmoothedTail, NormalisedLoss):
    """SAFER2-CG: `SAFER2` with the paper's solver, at most 5 conjugate gradient steps per row.

    They go from the last epoch's factors towards those with A x = b, see `Rows`, and end earlier
    where |b - A x| <= tolerance |b|.
    Reference: Togashi et al., Safe Collaborative Filtering, ICLR 2024.
    """
