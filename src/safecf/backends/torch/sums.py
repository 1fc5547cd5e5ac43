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
    """K(t), and the sums of K(t), k(t) and E|t + Z| by as few operations as possible.

    These are linear in the sums of 1, t, |t| and `terms`, from which `sums` computes them.
    The formulas are those of `safecf.als.kernels`, where c is t cut to [-1, 1].
    """

    cdf: Formula
    terms: Callable[[Tensor], list[Tensor]]
    sums: Callable[..., tuple[float, float, float]]


def _normal_cdf(t: Tensor) -> Tensor:
    """Exact also where it is tiny, as `torch.special.ndtr` is not."""
    found: Tensor = torch.special.erfc(t * (-1 / math.sqrt(2)))
    return found.div_(2)


def _normal_terms(t: Tensor) -> list[Tensor]:
    """2 K(t), exp(-t^2 / 2) and 2 t K(t)."""
    twice = torch.special.erfc(t * (-1 / math.sqrt(2)))
    return [twice, t.square().mul_(-1 / 2).exp_(), t * twice]


def _normal_sums(
    n: float, t: float, absolute: float, twice: float, bell: float, moment: float
) -> tuple[float, float, float]:
    density = bell / math.sqrt(2 * math.pi)
    return twice / 2, density, 2 * density + moment - t


def _logistic_terms(t: Tensor) -> list[Tensor]:
    """K(t), K(t) K(-t) and log K(-t)."""
    cdf, opposite = torch.sigmoid(t), -t
    return [cdf, torch.sigmoid(opposite).mul_(cdf), torch.nn.functional.logsigmoid(opposite)]


def _epanechnikov_terms(t: Tensor) -> list[Tensor]:
    """|c|, c^2, (3 - c^2) c and (6 - c^2) c^2."""
    c = t.clamp(-1, 1)
    square = c * c
    return [c.abs(), square, (3 - square).mul_(c), (6 - square).mul_(square)]


def _uniform_terms(t: Tensor) -> list[Tensor]:
    """c, |c|, c^2 and 1{|t| <= 1}."""
    c = t.clamp(-1, 1)
    return [c, c.abs(), c * c, (t == c).double()]


def _triangular_terms(t: Tensor) -> list[Tensor]:
    """c, |c|, c |c|, c^2 and |c|^3."""
    c = t.clamp(-1, 1)
    distance, square = c.abs(), c * c
    return [c, distance, c * distance, square, square * distance]


FORMULAS: dict[str, Formulas] = {
    "gaussian": Formulas(_normal_cdf, _normal_terms, _normal_sums),
    "logistic": Formulas(
        torch.sigmoid,
        _logistic_terms,
        lambda n, t, absolute, cdf, density, log: (cdf, density, -2 * log - t),
    ),
    "epanechnikov": Formulas(
        lambda t: (1 + t.clamp(-1, 1)) ** 2 * (2 - t.clamp(-1, 1)) / 4,
        _epanechnikov_terms,
        lambda n, t, absolute, inside, square, odd, even: (
            n / 2 + odd / 4,
            3 / 4 * (n - square),
            absolute - inside + 3 / 8 * n + even / 8,
        ),
    ),
    "uniform": Formulas(
        lambda t: (1 + t.clamp(-1, 1)) / 2,
        _uniform_terms,
        lambda n, t, absolute, c, inside, square, within: (
            (n + c) / 2,
            within / 2,
            absolute - inside + (n + square) / 2,
        ),
    ),
    "triangular": Formulas(
        lambda t: torch.where(
            t < 0, (1 + t.clamp(-1, 1)) ** 2 / 2, 1 - (1 - t.clamp(-1, 1)) ** 2 / 2
        ),
        _triangular_terms,
        lambda n, t, absolute, c, inside, odd, square, cube: (
            n / 2 + c - odd / 2,
            n - inside,
            absolute - inside + n / 3 + square - cube / 3,
        ),
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
        ends = torch.aminmax(losses)
        if counts is None:
            return Totals(len(losses), *torch.stack([losses.sum(), *ends]).tolist())
        return Totals(*torch.stack([counts.sum(), counts @ losses, *ends]).tolist())

    def sums(self, losses: Tensor, counts: Tensor | None, smoothing: Smoothing, xi: float) -> Sums:
        """Sum K, k, the smoothed check function and |loss_u - xi|."""
        tail, kernel, bandwidth = smoothing
        if not _has_formulas(kernel):
            given = losses.cpu().numpy(), None if counts is None else counts.cpu().numpy()
            return NUMPY.sums(*given, smoothing, xi)
        formulas, t = FORMULAS[kernel.name], (losses - xi).div_(bandwidth)
        terms = torch.stack([t, t.abs(), *formulas.terms(t)])
        if counts is None:
            found = [len(t), *terms.sum(1).tolist()]
        else:
            found = torch.cat([counts.sum()[None], terms @ counts]).tolist()
        weight, density, smoothed_abs = formulas.sums(*found)
        _, above, distance, *_ = found
        check = bandwidth / 2 * smoothed_abs + (1 / 2 - tail) * bandwidth * above
        return Sums(weight, density, check, bandwidth * distance)

    def weights(self, losses: Tensor, smoothing: Smoothing, xi: float) -> Tensor:
        """K((loss_u - xi) / h)."""
        if not _has_formulas(smoothing.kernel):
            return self.vector(NUMPY.weights(losses.cpu().numpy(), smoothing, xi))
        return FORMULAS[smoothing.kernel.name].cdf((losses - xi).div_(smoothing.bandwidth))

    def tail(self, losses: Tensor, counts: Tensor | None, tail: float) -> Tail:
        """Sort, and find the VaR v, the ceil(tail N)-th largest one.

        The CVaR is v + 1/(tail N) sum_u count_u max(0, loss_u - v).
        """
        ordered, order = torch.sort(losses, descending=True)
        most = tail * (1 - ROUNDING)
        if counts is None:
            rank = math.ceil(most * len(losses))
            largest = ordered[rank - 1 : rank]
            excess = (losses - largest).clamp_(min=0).sum(0, keepdim=True)
            value, total = torch.cat([largest, excess]).tolist()
            return Tail(value, value + total / (tail * len(losses)))
        # `cumsum` of fractions may have other bits in every run on CUDA: it only finds the place,
        # where ROUNDING leaves room for that
        reached, everyone = counts[order].cumsum(0), counts.sum(0, keepdim=True)
        largest = ordered[torch.searchsorted(reached[:-1], most * everyone)]
        excess = (counts @ (losses - largest).clamp_(min=0))[None]
        value, total, size = torch.cat([largest, excess, everyone]).tolist()
        return Tail(value, value + total / (tail * size))

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
