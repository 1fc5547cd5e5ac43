"""Sums over losses, the passes of the quantile step: alike on every backend, and of parts."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from safecf.als.kernels import KERNELS, Gaussian
from safecf.als.population import Smoothing
from tests.agreement.placed import TWIN


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_loss_sums_agree_and_merge(native, kernel):
    rng, twin = np.random.default_rng(8), TWIN.loss_sums
    for users, bandwidth, counted in product((1, 17, 5000), (1e-3, 0.15, 10.0), (False, True)):
        smoothing = Smoothing(0.3, kernel, bandwidth)
        values = 0.5 * rng.beta(4, 3, users)
        counts = rng.integers(1, 4, users).astype(float) if counted else None
        xi = float(np.quantile(values, 0.6))
        for backend in (native, TWIN):
            passes = backend.loss_sums
            own = passes.vector(values), None if counts is None else passes.vector(counts)
            totals, sums = passes.totals(*own), passes.sums(*own, smoothing, xi)
            close = {"rel": 1e-11, "abs": 1e-13 * users}
            assert totals == pytest.approx(twin.totals(values, counts), rel=1e-12)
            assert sums == pytest.approx(twin.sums(values, counts, smoothing, xi), **close)
            assert passes.tail(*own, 0.3) == pytest.approx(
                twin.tail(values, counts, 0.3), rel=1e-10
            )
            weights = backend.fetch(passes.weights(own[0], smoothing, xi))
            expected = smoothing.kernel.cdf((values - xi) / bandwidth)
            np.testing.assert_allclose(weights, expected, rtol=1e-11, atol=1e-300)
            total = np.sum(weights if counts is None else counts * weights)
            assert sums.weight == pytest.approx(total, rel=1e-11)
            cut = users // 3
            if cut:
                halves = [
                    tuple(None if each is None else each[part] for each in own)
                    for part in (slice(None, cut), slice(cut, None))
                ]
                merged = passes.totals(*halves[0]).merge(passes.totals(*halves[1]))
                assert merged == pytest.approx(totals, rel=1e-12)
                both = [passes.sums(*half, smoothing, xi) for half in halves]
                assert both[0].merge(both[1]) == pytest.approx(sums, **close)


def test_a_kernel_of_ones_own_is_not_taken_for_one_of_the_same_name(native):
    @dataclass(frozen=True)
    class Wider(Gaussian):
        def cdf(self, t):
            return super().cdf(t / 2)

    values, smoothing = np.linspace(0, 1, 50), Smoothing(0.3, Wider(), 0.1)
    for backend in (native, TWIN):
        passes = backend.loss_sums
        losses = passes.vector(values)
        weights = backend.fetch(passes.weights(losses, smoothing, 0.5))
        np.testing.assert_allclose(weights, Wider().cdf((values - 0.5) / 0.1))
        assert passes.sums(losses, None, smoothing, 0.5).weight == pytest.approx(weights.sum())
