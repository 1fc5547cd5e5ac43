"""The quantile step's passes over losses in PyTorch."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from safecf.als.kernels import KERNELS, Kernel
from safecf.als.population import NUMPY, Smoothing, Sums, Tail, Totals
from safecf.measures.tails import ROUNDING

Formula = Callable[[Tensor], Tensor]


class Formulas(NamedTuple):
    """K(t), k(t), and E|t + Z| given t and these two; see `safecf.als.kernels`."""

    cdf: Formula
    density: Formula
    smoothed_abs: Callable[[Tensor, Tensor, Tensor], Tensor]


def _normal_density(t: Tensor) -> Tensor:
    return t.square().mul_(-1 / 2).exp_().mul_(1 / math.sqrt(2 * math.pi))


def _normal_cdf(t: Tensor) -> Tensor:
    """Exact also where it is tiny, as `torch.special.ndtr` is not."""
    found: Tensor = torch.special.erfc(t * (-1 / math.sqrt(2))).div_(2)
    return found


def _cut(inside: Formula) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """E|t + Z| of a kernel on [-1, 1]: as given inside of it, and |t| outside."""
    return lambda t, cdf, density: torch.where(t.abs() <= 1, inside(t.clamp(-1, 1)), t.abs())


FORMULAS: dict[str, Formulas] = {
    "gaussian": Formulas(
        _normal_cdf,
        _normal_density,
        lambda t, cdf, density: torch.addcmul(2 * density, t, 2 * cdf - 1),
    ),
    "logistic": Formulas(
        torch.sigmoid,
        lambda t: torch.sigmoid(t) * torch.sigmoid(-t),
        lambda t, cdf, density: t.abs() + 2 * torch.log1p(torch.exp(-t.abs())),
    ),
    "epanechnikov": Formulas(
        lambda t: (1 + t.clamp(-1, 1)) ** 2 * (2 - t.clamp(-1, 1)) / 4,
        lambda t: 3 / 4 * (1 - t.clamp(-1, 1) ** 2),
        _cut(lambda t: 3 / 8 + 3 / 4 * t**2 - 1 / 8 * t**4),
    ),
    "uniform": Formulas(
        lambda t: (1 + t.clamp(-1, 1)) / 2,
        lambda t: (t.abs() <= 1) / 2,
        _cut(lambda t: (1 + t**2) / 2),
    ),
    "triangular": Formulas(
        lambda t: torch.where(
            t < 0, (1 + t.clamp(-1, 1)) ** 2 / 2, 1 - (1 - t.clamp(-1, 1)) ** 2 / 2
        ),
        lambda t: 1 - t.abs().clamp(max=1),
        _cut(lambda t: 1 / 3 + t**2 - t.abs() ** 3 / 3),
    ),
}


@dataclass(frozen=True)
class TorchSums:
    """Passes on a device; only sums come back. A kernel without formulas here takes NumPy's way."""

    device: torch.device

    def vector(self, values: Any) -> Tensor:
        """Return a tensor."""
        if isinstance(values, np.ndarray):
            values = values.copy()
        return torch.as_tensor(values, dtype=torch.float64, device=self.device)

    def totals(self, losses: Tensor, counts: Tensor | None) -> Totals:
        """N = sum_u count_u, sum_u count_u loss_u, min and max."""
        size = losses.new_tensor(len(losses)) if counts is None else counts.sum()
        total = losses.sum() if counts is None else counts @ losses
        return Totals(*torch.stack([size, total, losses.min(), losses.max()]).tolist())

    def sums(self, losses: Tensor, counts: Tensor | None, smoothing: Smoothing, xi: float) -> Sums:
        """Sum K, k, the smoothed check function and |loss_u - xi|."""
        tail, kernel, bandwidth = smoothing
        if not _has_formulas(kernel):
            given = losses.cpu().numpy(), None if counts is None else counts.cpu().numpy()
            return NUMPY.sums(*given, smoothing, xi)
        formulas, above = FORMULAS[kernel.name], losses - xi
        t = above / bandwidth
        cdf, density = formulas.cdf(t), formulas.density(t)
        smoothed_abs = formulas.smoothed_abs(t, cdf, density)
        check = torch.add((bandwidth / 2) * smoothed_abs, above, alpha=1 / 2 - tail)
        terms = torch.stack([cdf, density, check, above.abs()])
        return Sums(*(terms.sum(1) if counts is None else terms @ counts).tolist())

    def weights(self, losses: Tensor, smoothing: Smoothing, xi: float) -> Tensor:
        """K((loss_u - xi) / h)."""
        if not _has_formulas(smoothing.kernel):
            return self.vector(NUMPY.weights(losses.cpu().numpy(), smoothing, xi))
        return FORMULAS[smoothing.kernel.name].cdf((losses - xi) / smoothing.bandwidth)

    def tail(self, losses: Tensor, counts: Tensor | None, tail: float) -> Tail:
        """Sort, find the ceil(tail N)-th largest one, and add up to there.

        That on the boundary counts by the fraction that is left.
        """
        ordered, order = torch.sort(losses, descending=True)
        counted = torch.ones_like(ordered) if counts is None else counts[order]
        reached = counted.cumsum(0)
        budget = tail * reached[-1:]
        place = torch.searchsorted(reached[:-1], budget * (1 - ROUNDING))
        share = (budget - (reached - counted)).clamp(min=0).minimum(counted)
        mean = (share @ ordered)[None] / budget
        return Tail(*torch.cat([ordered[place], mean]).tolist())

    def group_sums(self, group: NDArray[np.intp], values: Tensor | None, groups: int) -> Tensor:
        """Sort by group, and add up, so that the order is always the same."""
        order = torch.as_tensor(np.argsort(group, kind="stable"), device=self.device)
        sizes = torch.as_tensor(np.bincount(group, minlength=groups), device=self.device)
        if values is None:
            return sizes.double()
        return torch.segment_reduce(values[order], "sum", lengths=sizes, initial=0)


def _has_formulas(kernel: Kernel) -> bool:
    """Whether there are formulas for this kernel, and not only another one of the same name."""
    return kernel.name in FORMULAS and KERNELS.get(kernel.name) == kernel
