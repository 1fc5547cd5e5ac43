"""Where training starts from."""

import numpy as np
import pytest

from safecf.als.loop import DRAWN, Training, normals
from safecf.als.loss import Loss, Ridge
from safecf.als.risk import Mean
from safecf.als.rows import Problem
from safecf.als.solvers import Exact
from safecf.backends.cpu import CpuBackend
from safecf.data.matrices.interactions import Interactions
from tests.problems import matrix_of


def test_the_initial_factors_have_the_papers_standard_deviation():
    matrix = matrix_of([2] * 4000, 50, np.random.default_rng(0))
    problem = Problem(Interactions(matrix, matrix.transpose()), Loss(0.1, 0.0), Ridge(0.1), 1.0)
    state = Training(problem, Mean(), Exact(), CpuBackend(), seed=0).start(64, 0.1)
    assert state.users.std() == pytest.approx(0.1 / np.sqrt(64), rel=0.01)
    assert state.items.std() == pytest.approx(0.1 / np.sqrt(64), rel=0.05)


def test_the_start_is_drawn_from_the_normal_distribution():
    found = normals(DRAWN + 100, 8, (3, 0)).astype(np.float64)
    assert abs(found.mean()) < 0.02
    assert abs(found.var() - 1) < 0.03
    assert abs((found**4).mean() - 3) < 0.2
    assert np.abs(np.corrcoef(found.T) - np.eye(8)).max() < 0.08


def test_a_row_does_not_depend_on_how_many_there_are():
    np.testing.assert_array_equal(normals(DRAWN + 9, 4, (0, 1))[:DRAWN], normals(DRAWN, 4, (0, 1)))


def test_no_two_generators_draw_the_same():
    """Those of blocks, of both sides, of other seeds, and of the epochs' quantile steps."""
    drawn = [normals(2 * DRAWN, 4, (seed, side)) for seed in (0, 1) for side in (0, 1)]
    firsts = [rows[first, 0] for rows in drawn for first in (0, DRAWN)]
    for seed in (0, 1):
        for epoch in range(3):
            rng = np.random.default_rng([seed, epoch])
            firsts.append(rng.standard_normal(dtype=np.float32))
    assert len(set(firsts)) == len(firsts)
