"""The quantile step's passes over losses in C++."""

from dataclasses import dataclass

import numpy as np

from safecf import _core
from safecf.als.kernels import KERNELS, Kernel
from safecf.als.loss import Vector
from safecf.als.population import NumpySums, Smoothing, Sums, Totals

NATIVE = [KERNELS[name] for name in _core.kernels]


@dataclass(frozen=True)
class NativeSums(NumpySums):
    """The passes over losses that cost most; others, and other kernels, take NumPy's way."""

    execution: _core.Execution

    def totals(self, losses: Vector, counts: Vector | None) -> Totals:
        """N = sum_u count_u, sum_u count_u loss_u, min and max."""
        return Totals(*_core.loss_summary(losses, counts, self.execution))

    def sums(self, losses: Vector, counts: Vector | None, smoothing: Smoothing, xi: float) -> Sums:
        """Sum K, k, the smoothed check function and |loss_u - xi|."""
        tail, kernel, bandwidth = smoothing
        if not _is_native(kernel):
            return super().sums(losses, counts, smoothing, xi)
        return Sums(
            *_core.quantile_sums(losses, counts, kernel.name, bandwidth, tail, xi, self.execution)
        )

    def weights(self, losses: Vector, smoothing: Smoothing, xi: float) -> Vector:
        """K((loss_u - xi) / h)."""
        _, kernel, bandwidth = smoothing
        if not _is_native(kernel):
            return super().weights(losses, smoothing, xi)
        weights = np.empty_like(losses)
        _core.kernel_weights(losses, kernel.name, bandwidth, xi, weights, self.execution)
        return weights


def _is_native(kernel: Kernel) -> bool:
    """Whether C++ has this kernel, and not only another one of the same name."""
    return kernel in NATIVE
