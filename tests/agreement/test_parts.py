"""A half-step by parts: rows cut anywhere have the same bits, and what is summed adds up."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from safecf.als.kernels import KERNELS, Gaussian
from safecf.als.population import Smoothing
from safecf.errors import SolveError
from tests.agreement.placed import TWIN, assert_same, fix, gram, losses, solve
from tests.agreement.test_backends import SOLVERS, floats, half_steps

CUTS = [(0, 23), (0, 1, 23), (0, 7, 8, 20, 23)]


def parts_of(rows, cuts):
    count = rows.matrix.num_rows
    edges = sorted({min(cut, count) for cut in (*cuts, count)})
    for start, stop in itertools.pairwise(edges):
        yield start, stop, rows.part(rows.matrix.part(start, stop), start, stop)


@pytest.mark.parametrize("cuts", CUTS, ids=str)
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_a_part_has_the_solutions_of_the_whole(native, solver, cuts):
    rng = np.random.default_rng(5)
    for rows, fixed, shared, start in half_steps("normalised", "cvar", 33, True, rng):
        side, weight = fix(native, fixed, shared), rng.random(len(start))
        whole, report = solve(native, rows, side, start, solver)
        factors, change, penalty, largest = [], 0.0, 0.0, 0.0
        total = np.zeros((33, 33))
        for begin, end, part in parts_of(rows, cuts):
            found, own = solve(native, part, side, start[begin:end], solver)
            factors.append(found)
            change, penalty = change + own.change(), penalty + own.penalty(part.ridge)
            largest = max(largest, own.largest())
            total += gram(native, found, weight[begin:end])
        assert_same(native, np.concatenate(factors), whole)
        close = 1e-6 if native.same_bits else 1e-5  # long rows are added up in any order on a GPU
        assert change == pytest.approx(report.change(), rel=close)
        assert penalty == pytest.approx(report.penalty(rows.ridge), rel=close)
        assert_same(native, largest, report.largest())
        expected = gram(native, whole, weight)
        np.testing.assert_allclose(total, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("cuts", CUTS, ids=str)
def test_losses_and_gramians_add_up(native, cuts):
    rng = np.random.default_rng(6)
    for rows, fixed, shared, start in half_steps("normalised", "cvar", 20, False, rng):
        side, pair_weight = fix(native, fixed, shared), rng.random(len(start))
        whole = losses(native, rows.matrix, pair_weight, start, side)
        weight, total = rng.random(len(start)), np.zeros((20, 20))
        for begin, end, part in parts_of(rows, cuts):
            found = losses(native, part.matrix, pair_weight[begin:end], start[begin:end], side)
            assert_same(native, found, whole[begin:end])
            total += gram(native, floats(start[begin:end]), weight[begin:end])
        np.testing.assert_allclose(total, gram(native, start, weight), rtol=1e-5, atol=1e-5)


def test_errors_name_the_row_of_the_whole(native):
    rng = np.random.default_rng(7)
    rows, fixed, shared, start = next(half_steps("normalised", "mean", 16, False, rng))
    rows.ridge[20], rows.gram_weight[20], rows.row_weight[20] = -1, 0, 1e-30
    for backend in (native, TWIN):
        for begin, end, part in parts_of(rows, (0, 9, 23)):
            if end < 20:
                continue
            side = fix(backend, fixed, shared)
            with pytest.raises(SolveError, match=r"^row 20: "):
                solve(backend, part, side, start[begin:end], SOLVERS[0])


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
@pytest.mark.parametrize("bandwidth", [1e-3, 0.15, 10.0])
def test_loss_sums_agree_and_merge(native, kernel, bandwidth, counted):
    rng = np.random.default_rng(8)
    smoothing = Smoothing(0.3, kernel, bandwidth)
    for users in (1, 17, 5000):
        values = 0.5 * rng.beta(4, 3, users)
        counts = rng.integers(1, 4, users).astype(float) if counted else None
        xi = float(np.quantile(values, 0.6))
        for backend in (native, TWIN):
            passes = backend.loss_sums
            own = passes.vector(values), None if counts is None else passes.vector(counts)
            totals, sums = passes.totals(*own), passes.sums(*own, smoothing, xi)
            assert totals == pytest.approx(TWIN.loss_sums.totals(values, counts), rel=1e-12)
            wanted = TWIN.loss_sums.sums(values, counts, smoothing, xi)
            assert sums == pytest.approx(wanted, rel=1e-11, abs=1e-13 * users)
            weights = backend.fetch(passes.weights(own[0], smoothing, xi))
            np.testing.assert_allclose(
                weights, TWIN.loss_sums.weights(values, smoothing, xi), rtol=1e-11, atol=1e-300
            )
            assert sums.weight == pytest.approx(
                np.sum(weights if counts is None else counts * weights), rel=1e-11
            )
            if users > 1:
                cut = users // 3
                halves = [
                    tuple(None if each is None else each[part] for each in own)
                    for part in (slice(None, cut), slice(cut, None))
                ]
                merged = passes.totals(*halves[0]).merge(passes.totals(*halves[1]))
                assert merged == pytest.approx(totals, rel=1e-12)
                both = [passes.sums(*half, smoothing, xi) for half in halves]
                assert both[0].merge(both[1]) == pytest.approx(sums, rel=1e-11, abs=1e-13 * users)


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


def test_a_part_may_be_empty(native):
    rng = np.random.default_rng(9)
    rows, fixed, shared, start = next(half_steps("normalised", "cvar", 16, False, rng))
    none = rows.part(rows.matrix.part(0, 0), 0, 0)
    side, solver = fix(native, fixed, shared), SOLVERS[0]
    found, report = solve(native, none, side, start[:0], solver)
    assert found.shape == (0, 16)
    assert (report.change(), report.penalty(none.ridge), report.largest()) == (0, 0, 0)
    assert not gram(native, found, np.ones(0)).any()
