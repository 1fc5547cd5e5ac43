"""Users whose systems float32 cannot solve are told; nobody else is, and nothing is computed."""

import numpy as np
import pytest
import scipy.sparse as sp

from safecf import IALS, ConvergenceWarning, SolveError
from safecf.als.loss import Loss
from safecf.als.rows import gramian
from safecf.als.solvers import Exact
from safecf.backends import BACKENDS
from safecf.backends.numpy import NumpyBackend
from safecf.models import conditioning
from safecf.models.conditioning import check_users, condition_bound
from tests.models.runs import fit, make
from tests.problems import matrix_of, problem_of
from tests.reference import dense

LOSS = Loss(0.1)


def half_step(exponent=1.0, regularization=1e-6):
    """Return the users' rows, the items, and their squared lengths."""
    rng = np.random.default_rng(0)
    users = matrix_of(rng.integers(0, 12, 40), 30, rng, weighted=True)
    problem = problem_of(users, LOSS, regularization, exponent=exponent)
    items = rng.normal(size=(30, 5)) * 10.0 ** rng.uniform(-1, 1, size=(30, 1))
    return problem, items, np.sum(items**2, axis=1)


@pytest.mark.parametrize("exponent", [0.3, 1.0])
def test_the_bound_is_one_of_every_condition(exponent):
    problem, items, squares = half_step(exponent)
    rows, b = problem.unit_user_rows, LOSS.unobserved_weight
    mass, backend = problem.user_mass, NumpyBackend()
    bound = condition_bound(backend, rows, mass, b * len(items), squares.max())
    pairs = rows.row_weight[:, None] * dense(rows.matrix)
    systems = np.einsum("rj,jk,jl->rkl", pairs + b, items, items)
    systems += rows.ridge[:, None, None] * np.eye(5)
    assert np.linalg.cond(systems[problem.active_users]).max() - 1 <= bound
    if exponent == 1:
        assert bound == pytest.approx(squares.max() / 1e-6, rel=0.2)


def solved(problem, items):
    backend, factors = NumpyBackend(), np.zeros((40, 5))
    fixed = backend.fix(items, gramian(LOSS, backend, items))
    backend.solve_rows(problem.unit_user_rows, fixed, factors, Exact())
    return backend, fixed, factors.astype(np.float32)


@pytest.mark.parametrize("wrong", [0, 1, 4])
def test_users_that_are_worse_than_none_are_counted(wrong, recwarn):
    problem, items, _ = half_step()
    backend, fixed, factors = solved(problem, items)
    factors[np.flatnonzero(problem.active_users)[:wrong]] *= -1
    arguments = problem.unit_user_rows, problem.user_mass, fixed, factors, 1e9, 1e-6
    check_users(backend, *arguments)
    found = [str(each.message) for each in recwarn if each.category is ConvergenceWarning]
    assert len(found) == bool(wrong)
    if wrong:
        assert found[0].startswith(f"{wrong} of 40 users have factors that are worse than none")
        assert "at regularization=1e-06; raise it, to 0.01 or so, or try backend=" in found[0]


def test_nothing_is_computed_where_the_bound_is_small():
    problem, _, _ = half_step()
    arguments = problem.unit_user_rows, problem.user_mass, None, None, 1e4, 0.01
    check_users(None, *arguments)  # there is no backend that could be asked


class Rounding(NumpyBackend):
    """Solutions of the wrong sign, as rounding may make them."""

    def solve_rows(self, rows, fixed, factors, solver):
        report = super().solve_rows(rows, fixed, factors, solver)
        factors *= -1
        return report


@pytest.mark.parametrize(("regularization", "told"), [(1e-8, True), (1.0, False)])
def test_fit_and_fold_in_tell(data, monkeypatch, recwarn, regularization, told):
    model = fit(make(backend="numpy", regularization=regularization), data)
    recwarn.clear()
    monkeypatch.setitem(BACKENDS, "rounding", Rounding)
    model.backend = "rounding"
    model.fold_in(data[:3])
    assert any("3 of 3 users have factors" in str(each.message) for each in recwarn) == told
    recwarn.clear()
    fit(make(backend="rounding", regularization=regularization), data)
    assert any("30 of 30 users have" in str(each.message) for each in recwarn) == told


def test_defaults_are_far_from_it(data, monkeypatch):
    bounds = []
    monkeypatch.setattr(
        "safecf.models.als.check_users", lambda *arguments: bounds.append(arguments[-2])
    )
    for model in (make(), IALS(factors=16, random_state=0)):
        fit(model, data)
    assert 1 < max(bounds) < conditioning.ILL_CONDITIONED / 10


def test_errors_of_fold_ins_name_the_side():
    data = sp.csr_matrix(np.ones((3, 2), dtype=np.float32))
    model = fit(make(), data)
    model.regularization = model.unobserved_weight = 0
    model.item_factors, model.user_factors = (
        np.full_like(side, 1e-30) for side in (model.item_factors, model.user_factors)
    )
    for side, solve in (
        ("user", lambda: model.fold_in(data)),
        ("user", lambda: model.partial_fit_users([0], data[:1])),
        ("item", lambda: model.partial_fit_items([0], data.T.tocsr()[:1])),
    ):
        with pytest.raises(SolveError, match=rf"^{side} row 0: its system"):
            solve()
