"""A half-step by parts: rows cut anywhere have the same bits, and what is summed adds up."""

import itertools

import numpy as np
import pytest

from safecf import SolveError
from safecf.als.solvers import CG, Exact, SpectralCG
from tests.agreement.placed import TWIN, assert_same, fix, gram, half_steps, losses, solve

SOLVERS = [Exact(), CG(4, 1e-6), SpectralCG(1e-6, 3)]
CUTS = [(0, 23), (0, 1, 23), (0, 7, 8, 20, 23)]
MAIN = (33, ("normalised", "cvar", True))


def parts_of(rows, cuts):
    count = rows.matrix.num_rows
    edges = sorted({min(cut, count) for cut in (*cuts, count)})
    for start, stop in itertools.pairwise(edges):
        yield start, stop, rows.part(rows.matrix.part(start, stop), start, stop)


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: s.name)
def test_a_part_has_the_solutions_of_the_whole(native, solver):
    for (rows, fixed, shared, start), cuts in itertools.product(half_steps(*MAIN), CUTS):
        side, weight = fix(native, fixed, shared), np.random.default_rng(5).random(len(start))
        whole, report = solve(native, rows, side, start, solver)
        lost = losses(native, rows.matrix, weight, start, side)
        factors, change, penalty, largest = [], 0.0, 0.0, 0.0
        total, found_losses = np.zeros((33, 33)), []
        for begin, end, part in parts_of(rows, cuts):
            found, own = solve(native, part, side, start[begin:end], solver)
            factors.append(found)
            change, penalty = change + own.change(), penalty + own.penalty(part.ridge)
            largest = max(largest, own.largest())
            total += gram(native, found, weight[begin:end])
            here = weight[begin:end], start[begin:end]
            found_losses.append(losses(native, part.matrix, *here, side))
        assert_same(native, np.concatenate(factors), whole)
        assert_same(native, np.concatenate(found_losses), lost)
        close = 1e-6 if native.same_bits else 1e-5  # long rows are added up in any order on a GPU
        assert change == pytest.approx(report.change(), rel=close)
        assert penalty == pytest.approx(report.penalty(rows.ridge), rel=close)
        assert_same(native, largest, report.largest())
        expected = gram(native, whole, weight)
        np.testing.assert_allclose(total, expected, atol=1e-5 * np.abs(expected).max())


def test_errors_name_the_row_of_the_whole(native):
    rows, fixed, shared, start = next(half_steps(16, ("normalised", "mean", False)))
    rows.ridge[20], rows.gram_weight[20], rows.row_weight[20] = -1, 0, 1e-30
    for backend in (native, TWIN):
        side = fix(backend, fixed, shared)
        for begin, end, part in parts_of(rows, (0, 9, 23)):
            if end > 20:
                with pytest.raises(SolveError, match=r"^row 20: "):
                    solve(backend, part, side, start[begin:end], Exact())


def test_a_part_may_be_empty(native):
    rows, fixed, shared, start = next(half_steps(16, ("normalised", "cvar", False)))
    none = rows.part(rows.matrix.part(0, 0), 0, 0)
    found, report = solve(native, none, fix(native, fixed, shared), start[:0], Exact())
    assert found.shape == (0, 16)
    assert (report.change(), report.penalty(none.ridge), report.largest()) == (0, 0, 0)
    assert not gram(native, found, np.ones(0)).any()
