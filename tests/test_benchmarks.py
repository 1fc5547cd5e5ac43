"""The yardsticks of the benchmarks themselves: objective, sampled solves, counted work."""

import numpy as np
import pytest

from benchmarks.floors import Limits, Work, epoch_work
from benchmarks.matrices import long_tailed
from benchmarks.peers import Flat, ials, safer2
from benchmarks.sampled import check
from safecf.als.solvers import CG, Exact, SpectralCG, Subspace
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.interactions import Interactions

MATRIX = long_tailed(300, 120, 4000)
INTERACTIONS = Interactions.from_csr(MATRIX)


def test_the_evaluated_objective_is_that_of_training():
    flat = Flat.like_ials(MATRIX)
    rival = ials(flat.problem(INTERACTIONS), Exact(), 16, CpuBackend(1))
    rival.epoch()
    value = flat.value(MATRIX, *rival.factors())
    active = np.count_nonzero(np.diff(MATRIX.indptr))
    assert value / active == pytest.approx(rival.records[-1].objective, rel=1e-5)


@pytest.mark.parametrize(
    ("solver", "limit"), [(Exact(), 1e-5), (SpectralCG(1e-4), 1e-3), (CG(40, 1e-5), 1e-3)]
)
def test_sampled_solves_agree_with_the_half_steps_of_safer2(solver, limit):
    rival = safer2("ml-20m", INTERACTIONS, solver, 16, CpuBackend(1))
    rival.epoch()
    iterative = None if isinstance(solver, Exact) else solver
    for side in check(rival, sample=40, solver=iterative):
        assert side.error < limit
        assert side.steps is None if iterative is None else 1 <= side.steps <= 40


def test_exact_work_takes_the_cheaper_form_of_each_row():
    lengths, d = np.array([2, 100]), 8
    work = epoch_work(lengths, lengths, d, Exact(), (1, 1))
    dual, primal = 2**2 * d + 2**3 / 3, 100 * d**2 + d**3 / 3
    assert work.passes[0] == pytest.approx(4 * 102 * d + dual + primal)
    assert work.products == pytest.approx(5 * 4 * d**2 + 20 / 3 * d**3)


def test_one_block_has_the_systems_of_the_exact_solver():
    lengths, d = np.array([3, 40, 9]), 8
    exact = epoch_work(lengths, lengths, d, Exact(), (1, 1))
    blocks = epoch_work(lengths, lengths, d, Subspace(8), (1, 1))
    assert blocks.passes[0] - exact.passes[0] == pytest.approx(2 * lengths.sum() * d)


def test_a_half_step_costs_its_flops_or_its_bytes():
    work = Work(10.0, (4.0, 1.0), (1.0, 6.0), 2)
    found = work.seconds(Limits(1, gemm=2.0, copy=1.0), (1.0, 3.0))
    assert found == {"products": 5.0, "users": 2.0, "items": 2.0, "total": 9.0}
