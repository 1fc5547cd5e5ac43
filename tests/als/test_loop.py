"""The loop: identities of the algebra that hold for every loss, risk and solver."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse

from safecf.als.kernels import KERNELS
from safecf.als.loop import Training
from safecf.als.loss import Loss, Ridge
from safecf.als.population import Population
from safecf.als.risk import Mean, SmoothedCVaR
from safecf.als.rows import Problem
from safecf.als.solvers import CG, Exact, SpectralCG, Subspace
from safecf.backends.cpu import CpuBackend
from safecf.backends.numpy import NumpyBackend
from safecf.data.matrices.csr import Csr
from safecf.data.matrices.csr_from_scipy import check_matrix
from safecf.data.matrices.interactions import Interactions
from safecf.errors import ConvergenceWarning
from tests.als.trainings import GAUSSIAN, run, training_of
from tests.problems import matrix_of, problem_of
from tests.reference import dense, gradient, objective, rotation_free, user_losses

LOSSES = [Loss(0.1, 0.0), Loss(0.05, 0.6), Loss(0.02)]
# plain losses grow with the history, so they need a wider bandwidth than normalised ones
CASES = [
    (loss, risk)
    for loss, bandwidth in zip(LOSSES, (5.0, 0.5, 0.1), strict=True)
    for risk in (Mean(1.0), Mean(0.3), SmoothedCVaR(0.3, GAUSSIAN, bandwidth))
]


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize(("loss", "risk"), CASES[::2], ids=str)
def test_the_brute_force_gradient_vanishes_after_an_exact_half_step(loss, risk, counted):
    counts = np.random.default_rng(2).uniform(0.2, 3, 60) if counted else None
    training = training_of(loss, risk, weighted=not counted, counts=counts)
    problem, backend = training.problem, training.backend
    state = training.start(5, 0.5)
    users, items = state.users, state.items
    weights = np.random.default_rng(1).uniform(0.05, 1, len(users))

    gram = loss.unobserved_weight * backend.gram(items)
    backend.solve_rows(problem.user_rows(weights), backend.fix(items, gram), users, training.solver)
    slopes = gradient(lambda x: objective(problem, weights, x, items), users)
    np.testing.assert_allclose(slopes, 0, atol=1e-7)

    gram = loss.unobserved_weight * backend.gram(users, problem.counted(weights))
    backend.solve_rows(problem.item_rows(weights), backend.fix(users, gram), items, training.solver)
    slopes = gradient(lambda y: objective(problem, weights, users, y), items)
    np.testing.assert_allclose(slopes, 0, atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("backend", [NumpyBackend(), CpuBackend()], ids=lambda b: b.name)
def test_the_losses_of_the_backends_are_the_dense_formula(loss, backend):
    training = training_of(loss, Mean(), weighted=True)
    state = training.start(5, 0.5)
    gram = loss.unobserved_weight * backend.gram(state.items.astype(backend.dtype))
    fixed = backend.fix(state.items.astype(backend.dtype), gram)
    users = training.problem.interactions.users
    factors = state.users.astype(backend.dtype)
    losses = backend.losses(users, training.problem.pair_weight, factors, fixed)
    np.testing.assert_allclose(losses, user_losses(users, loss, state.users, state.items), 1e-5)


@pytest.mark.parametrize(("loss", "risk"), CASES, ids=str)
def test_history_states_what_the_factors_say(loss, risk):
    training = training_of(loss, risk)
    state, history = run(training, 3)
    problem = training.problem
    losses = user_losses(problem.interactions.users, loss, state.users, state.items)
    users, last = Population(losses), history[-1]
    assert last.epoch == 3
    assert last.mean_loss == pytest.approx(losses.mean())
    assert last.var == pytest.approx(users.value_at_risk(risk.tail))
    assert last.cvar == pytest.approx(users.tail_mean(risk.tail))
    ridges = objective(problem, np.zeros(len(losses)), state.users, state.items)
    total = (risk.total(users, last.xi) + ridges) / (risk.tail * len(losses))
    assert last.objective == pytest.approx(total)
    assert last.mean_weight == pytest.approx(state.weights.mean())
    assert set(last.seconds) == {"quantile", "users", "items", "rotate", "losses"}


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("risk", [Mean(1.0), Mean(0.3), SmoothedCVaR(0.3, GAUSSIAN, 5.0)], ids=str)
def test_the_objective_never_rises(loss, risk):
    """Every block is minimised exactly, and a smoothed CVaR lies below its weighted losses."""
    _, history = run(training_of(loss, risk), 15)
    values = np.array([record.objective for record in history])
    assert (np.diff(values) <= 1e-9 * np.abs(values[:-1])).all()


def test_residual_norms_are_those_of_the_change():
    changes = []

    class Watched(NumpyBackend):
        def solve_rows(self, rows, fixed, factors, solver):
            before = factors.copy()
            solved = super().solve_rows(rows, fixed, factors, solver)
            changes.append(np.linalg.norm(factors - before))
            return solved

    risk = SmoothedCVaR(0.3, GAUSSIAN, 0.2)
    training = training_of(Loss(0.02), risk, Exact(), Watched())
    state = training.start(5, 0.5)
    weights = state.weights.copy()
    record = next(training.epochs(state, 1))
    assert [record.residual_users, record.residual_items] == pytest.approx(changes)
    assert record.residual_weights == pytest.approx(np.linalg.norm(state.weights - weights))


def test_training_settles():
    training = training_of(Loss(0.02), SmoothedCVaR(0.3, GAUSSIAN, 0.3), SpectralCG(1e-6))
    _, history = run(training, 150)
    first, last = history[0], history[-1]
    assert last.residual_users < 1e-3 * first.residual_users
    assert last.residual_items < 1e-3 * first.residual_items
    assert last.residual_weights < 1e-3 * first.residual_weights


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=lambda kernel: kernel.name)
def test_the_mean_weight_is_the_tail(kernel):
    training = training_of(Loss(0.02), SmoothedCVaR(0.3, kernel, 0.3))
    _, history = run(training, 10)
    assert [record.mean_weight for record in history[2:]] == pytest.approx([0.3] * 8, abs=1e-6)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=lambda kernel: kernel.name)
def test_an_infinite_bandwidth_is_erm_mf(kernel):
    safer, _ = run(training_of(Loss(0.02), SmoothedCVaR(0.3, kernel, 1e16)), 4)
    erm, _ = run(training_of(Loss(0.02), Mean(0.3)), 4)
    found, expected = (rotation_free(state.users, state.items) for state in (safer, erm))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("solver", [CG(100, 1e-12), SpectralCG(1e-12, 200)], ids=str)
def test_converged_iterative_solvers_train_the_exact_model(solver):
    risk = SmoothedCVaR(0.3, GAUSSIAN, 0.2)
    exact, _ = run(training_of(Loss(0.02), risk), 4)
    other, _ = run(training_of(Loss(0.02), risk, solver), 4)
    found, expected = (rotation_free(state.users, state.items) for state in (other, exact))
    np.testing.assert_allclose(found, expected, atol=1e-7)


SOLVERS = [Exact(), CG(), SpectralCG(), SpectralCG(1e-4), Subspace(2)]
DIAGONAL = list(zip(CASES[::2], SOLVERS, strict=True))


@pytest.mark.parametrize(("parts", "solver"), DIAGONAL, ids=str)
def test_a_whole_training_agrees_between_the_backends(parts, solver):
    slow, slow_history = run(training_of(*parts, solver, weighted=True), 3)
    fast, fast_history = run(training_of(*parts, solver, CpuBackend(), weighted=True), 3)
    loose = 10 if solver == SpectralCG() else 1  # its fixed side may be in low precision
    found, expected = (rotation_free(state.users, state.items) for state in (fast, slow))
    np.testing.assert_allclose(found, expected, atol=loose * 2e-3 * np.abs(expected).max())
    np.testing.assert_allclose(fast.weights, slow.weights, atol=loose * 1e-3)
    for ours, theirs in zip(fast_history, slow_history, strict=True):
        assert ours.objective == pytest.approx(theirs.objective, rel=loose * 1e-4)
        assert ours.cvar == pytest.approx(theirs.cvar, rel=loose * 1e-3)
        assert ours.residual_items == pytest.approx(theirs.residual_items, rel=loose * 2e-3)


def test_a_confidence_of_two_is_the_interaction_twice():
    """c_ui = 2 in one matrix; the same user twice, each with half the weight, in the other."""
    rng = np.random.default_rng(0)
    once = matrix_of([4, 7, 3], 10, rng)
    doubled = Csr(once.indptr, once.indices, np.full(once.nnz, 2, dtype=np.float32), once.shape)
    problem_once, problem_doubled = (problem_of(m, Loss(0.1, 0.0)) for m in (once, doubled))
    backend = NumpyBackend()
    y = rng.normal(size=(10, 4))
    fixed = backend.fix(y, np.zeros((4, 4)))
    rows = problem_doubled.unit_user_rows
    twice = np.zeros((3, 4))
    backend.solve_rows(rows, fixed, twice, Exact())
    expected = np.zeros((3, 4))
    base = problem_once.unit_user_rows
    heavier = dataclasses.replace(base, row_weight=2 * base.row_weight, ridge=rows.ridge)
    backend.solve_rows(heavier, fixed, expected, Exact())
    np.testing.assert_allclose(twice, expected)
    assert rows.ridge == pytest.approx(
        0.05 * (2 * np.array([4, 7, 3]) + 0.1 * problem_once.num_items)
    )


def test_the_ridges_are_the_papers():
    rng = np.random.default_rng(0)
    users = matrix_of([4, 7, 3], 10, rng)
    plain = problem_of(users, Loss(0.2, 0.0), 0.006, tail=1.0, exponent=0.5)
    counts = np.bincount(users.indices, minlength=10)
    np.testing.assert_allclose(
        plain.unit_user_rows.ridge, 0.006 * np.sqrt(np.array([4, 7, 3]) + 0.2 * plain.num_items)
    )
    np.testing.assert_allclose(plain.unit_item_rows.ridge, 0.006 * np.sqrt(counts + 0.2 * 3))

    paper = problem_of(users, Loss(0.004), 0.005, tail=0.3)
    np.testing.assert_allclose(
        paper.unit_user_rows.ridge, 0.005 * (1 + 0.004 * paper.num_items) * np.ones(3)
    )
    shares = np.bincount(users.indices, np.repeat(1 / np.array([4, 7, 3]), [4, 7, 3]), 10)
    np.testing.assert_allclose(paper.unit_item_rows.ridge, 0.005 * (shares + 0.004 * 0.3 * 3))

    between = problem_of(users, Loss(0.01, 0.75), 0.005, tail=0.3)
    np.testing.assert_allclose(
        between.unit_user_rows.ridge,
        0.005 * (np.array([4, 7, 3]) ** 0.25 + 0.01 * between.num_items),
    )


def test_an_epoch_that_fails_leaves_the_items_of_the_last_one():
    class Failing(NumpyBackend):
        calls = 0

        def solve_rows(self, rows, fixed, factors, solver):
            self.calls += 1
            if self.calls == 4:  # the items' half-step of the second epoch
                factors[: len(factors) // 2] = np.nan
                raise KeyboardInterrupt
            return super().solve_rows(rows, fixed, factors, solver)

    training = training_of(Loss(0.02), Mean(0.3), backend=Failing())
    state = training.start(5, 0.5)
    epochs = training.epochs(state, 5)
    next(epochs)
    kept = state.items.copy()
    with pytest.raises(KeyboardInterrupt):
        next(epochs)
    assert state.epoch == 1
    np.testing.assert_array_equal(state.items, kept)


@pytest.mark.parametrize(("bad", "warned"), [({2}, False), ({2, 4}, False), ({2, 3}, True)])
def test_one_epoch_that_overshoots_is_no_collapse(bad, warned, recwarn):
    seen = []

    class Overshooting(SmoothedCVaR):
        def weights(self, population, xi):
            found = super().weights(population, xi)
            seen.append(len(found))
            return found if len(seen) not in bad else 3 * found

    run(training_of(Loss(0.02), Overshooting(0.3, GAUSSIAN, 0.3)), 6)
    found = [each for each in recwarn if issubclass(each.category, ConvergenceWarning)]
    assert bool(found) == warned


def test_every_epoch_goes_on_from_the_last_xi_and_draws_users_of_its_own():
    class Spy(SmoothedCVaR):
        def quantile(self, losses, xi, rng):
            starts.append(xi)
            draws.append(rng.integers(1 << 60))
            ends.append(super().quantile(losses, xi, np.random.default_rng(0)))
            return ends[-1]

    starts, ends, draws = [], [], []
    run(training_of(Loss(0.02), Spy(0.3, GAUSSIAN, 0.3, sample=0.5)), 4)
    assert starts[1:] == ends[:-1]
    assert len(set(draws)) == 4


def test_too_much_regularization_is_reported():
    training = training_of(Loss(0.1, 0.0), Mean(1.0))
    problem = problem_of(training.problem.interactions.users, Loss(0.1, 0.0), 1e8, tail=1.0)
    with pytest.warns(ConvergenceWarning, match="lower regularization") as caught:
        run(dataclasses.replace(training, problem=problem, backend=CpuBackend()), 30)
    (warning,) = caught
    assert "weight is" not in str(warning.message)  # of which iALS has none
    assert "bandwidth" not in str(warning.message)


def test_what_is_zero_is_not_to_be_lowered():
    users = check_matrix(scipy.sparse.diags_array([1e12, 1e-12, 1, 1], format="csr"))
    problem = problem_of(users, Loss(1e12, 0.0), 0.0, tail=1.0)
    training = Training(problem, Mean(1.0), Exact(), CpuBackend(), seed=0)
    expected = "; lower unobserved_weight or the largest weights of the interactions$"
    with pytest.warns(ConvergenceWarning, match=expected):
        run(training, 3)


@pytest.mark.parametrize("in_risk", [False, True])
def test_users_that_vanish_together_are_reported(in_risk):
    """None of them is small beside the largest one."""
    users = training_of(Loss(0.02), Mean(0.3)).problem.interactions.users
    ridge = Ridge(0.3, in_risk=in_risk)
    problem = Problem(Interactions(users, users.transpose()), Loss(0.02), ridge, 1e-3)
    risk = SmoothedCVaR(1e-3, GAUSSIAN, 0.3)
    training = Training(problem, risk, Exact(), NumpyBackend(), seed=0)
    with pytest.warns(ConvergenceWarning, match=r"nothing was learned: .* zero 0\.5; lower regul"):
        run(training, 6)


def test_weights_that_hardly_move_are_reported():
    training = training_of(Loss(0.02), SmoothedCVaR(0.3, GAUSSIAN, 1e-6))
    ridge = dataclasses.replace(training.problem.ridge, in_risk=True)
    problem = dataclasses.replace(training.problem, ridge=ridge)
    with pytest.warns(
        ConvergenceWarning, match=r"weights have only gone 0\.0% of their way: bandwidth=1e-06"
    ):
        run(dataclasses.replace(training, problem=problem), 5)


def dense_block(confidence, weights, ridge, b, x, y, pi):
    """x_pi of all rows, given everything else; weights w_r of rows, or w_j of columns as a row."""
    steps = np.zeros((len(x), pi.stop - pi.start))
    for row, own in enumerate(x):
        seen = weights[row] if weights.ndim == 2 else np.full(len(y), weights[row])
        pairs = confidence[row] * seen
        hessian = y[:, pi].T @ ((pairs + b * seen)[:, None] * y[:, pi])
        slope = y[:, pi].T @ (pairs * (y @ own - 1) + b * seen * (y @ own))
        steps[row] = -np.linalg.solve(
            hessian + ridge[row] * np.eye(steps.shape[1]), slope + ridge[row] * own[pi]
        )
    x[:, pi] += steps


@pytest.mark.parametrize("backend", [NumpyBackend(), CpuBackend(2)], ids=lambda each: each.name)
def test_an_epoch_by_blocks_updates_users_and_items_block_by_block(backend):
    loss, risk = Loss(0.02), SmoothedCVaR(0.3, GAUSSIAN, 0.1)
    training = training_of(loss, risk, Subspace(2), backend)
    problem, state = training.problem, training.start(5, 0.5)
    x, y = state.users.astype(np.float64), state.items.astype(np.float64)
    list(training.epochs(state, 1))
    confidence = dense(problem.interactions.users) * problem.pair_weight[:, None]
    w, rows = state.weights, (problem.unit_user_rows, problem.unit_item_rows)
    for pi in (slice(0, 2), slice(2, 4), slice(4, 5)):
        dense_block(confidence, w, rows[0].ridge, 0.02, x, y, pi)
        by_user = np.broadcast_to(w, (len(y), len(x)))
        dense_block(confidence.T, by_user, rows[1].ridge, 0.02, y, x, pi)
    np.testing.assert_allclose(state.users, x, atol=1e-5)
    np.testing.assert_allclose(state.items, y, atol=1e-5)
