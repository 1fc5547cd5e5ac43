"""The users' ridge in the risk: f_u = loss_u + ridge_u/2 |x_u|^2, and weights that settle."""

import dataclasses

import numpy as np
import pytest

from safecf.als.kernels import KERNELS
from safecf.als.loss import Loss, Ridge
from safecf.als.population import Population
from safecf.als.quantile import smoothed_quantile
from safecf.als.risk import CVaR, GroupCVaR, Mean, SmoothedCVaR
from safecf.als.solvers import Exact, Subspace
from safecf.errors import ConvergenceWarning
from tests.als import trainings
from tests.als.trainings import BACKENDS, GAUSSIAN, run
from tests.reference import gradient, user_losses

every_backend = pytest.mark.parametrize("backend", BACKENDS, ids=lambda each: each.name)
every_loss = pytest.mark.parametrize("loss", [Loss(0.1, 0.0), Loss(0.02)], ids=str)


def training_of(risk, loss=None, *rest, in_risk=True, **options):
    loss = loss or Loss(0.02)
    return trainings.training_of(loss, risk, *rest, in_risk=in_risk, weighted=True, **options)


def measured(problem, x, y):
    """f_u by the dense formula."""
    losses = user_losses(problem.interactions.users, problem.loss, x, y)
    return losses + problem.unit_user_rows.ridge / 2 * (x**2).sum(axis=1)


@every_backend
@every_loss
def test_losses_with_the_ridge_are_the_dense_formula(loss, backend):
    problem = training_of(Mean(), loss).problem
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(60, 5)), rng.normal(size=(30, 5))
    users, items = backend.place(x), backend.place(y)
    shared = loss.unobserved_weight * backend.gram(items)
    matrix = backend.place_matrix(problem.interactions.users)
    expected = measured(problem, x, y)
    of_rows = backend.losses(
        matrix, problem.pair_weight, users, backend.fix(items, shared), problem.risk_ridge
    )
    of_scores = backend.scored_losses(
        matrix,
        problem.pair_weight,
        backend.scores(matrix, users, items),
        users,
        shared,
        problem.risk_ridge,
    )
    np.testing.assert_allclose(of_rows, expected, rtol=1e-5)
    np.testing.assert_allclose(of_scores, expected, rtol=1e-5)


@every_loss
def test_the_users_half_step_is_the_fold_in(loss):
    """Whatever the weights: the same rows as those of a new user."""
    bandwidth = 0.02 if loss.normalisation else 1.0  # about the spread of the losses
    training = training_of(SmoothedCVaR(0.3, GAUSSIAN, bandwidth), loss)
    problem, backend = training.problem, training.backend
    state = training.start(5, 0.5)
    folded, fixed = backend.copy(state.users), backend.copy(state.items)
    gram = loss.unobserved_weight * backend.gram(fixed)
    backend.solve_rows(problem.unit_user_rows, backend.fix(fixed, gram), folded, Exact())
    next(training.epochs(state, 1))
    assert np.ptp(state.weights) > 0.1
    np.testing.assert_allclose(state.users @ state.users.T, folded @ folded.T, atol=1e-8)
    weights = np.random.default_rng(1).uniform(0, 1, 60)
    outside = dataclasses.replace(problem, ridge=Ridge(problem.ridge.regularization))
    assert (outside.user_rows(weights).gram_weight == weights).all()


@every_loss
@every_backend
def test_an_infinite_bandwidth_is_the_mean(loss, backend):
    infinite = run(training_of(SmoothedCVaR(0.3, GAUSSIAN, np.inf), loss, None, backend), 6)
    equal = run(training_of(Mean(0.3), loss, None, backend), 6)
    assert infinite[1] == [dataclasses.replace(each, bandwidth=np.inf) for each in equal[1]]
    for side in ("users", "items"):
        assert (getattr(infinite[0], side) == getattr(equal[0], side)).all()


@pytest.mark.parametrize(("counted", "bandwidth"), [(False, 0.02), (True, 0.1)])
@pytest.mark.parametrize(
    "solver", [Exact(), pytest.param(Subspace(2), marks=pytest.mark.slow)], ids=str
)
def test_training_ends_where_the_gradient_of_the_risk_vanishes(solver, bandwidth, counted):
    """By numeric derivatives of min_xi tail N Psi(f, xi) + 1/2 sum_i ridge_i |y_i|^2."""
    counts = np.random.default_rng(2).integers(1, 4, 60).astype(float) if counted else None
    risk = SmoothedCVaR(0.3, GAUSSIAN, bandwidth, steps=50)
    training = training_of(risk, None, solver, counts=counts)
    problem = training.problem
    state, history = run(training, 300)
    assert history[-1].residual_weights < 1e-5
    x, y = state.users.copy(), state.items.copy()

    def objective(x, y):
        users = Population(measured(problem, x, y), counts)
        xi = smoothed_quantile(users, risk.smoothing, start=users.mean_loss, steps=50)
        return risk.total(users, xi) + problem.unit_item_rows.ridge @ (y**2).sum(axis=1) / 2

    total = risk.tail * problem.num_users * history[-1].objective
    assert objective(x, y) == pytest.approx(total, rel=1e-6)
    np.testing.assert_allclose(gradient(lambda at: objective(at, y), x), 0, atol=1e-5)
    np.testing.assert_allclose(gradient(lambda at: objective(x, at), y), 0, atol=1e-5)


@every_loss
@pytest.mark.parametrize("solver", [Exact(), Subspace(2)], ids=str)
@pytest.mark.parametrize("risk", [Mean(0.3), SmoothedCVaR(0.3, GAUSSIAN, 5.0)], ids=str)
def test_the_objective_never_rises(loss, solver, risk):
    _, history = run(training_of(risk, loss, solver), 20)
    values = np.array([record.objective for record in history])
    assert (np.diff(values) <= 1e-9 * np.abs(values[:-1])).all()
    assert values[-1] < values[0] - 1e-3


@pytest.mark.parametrize("share", [0.1])
def test_a_small_bandwidth_settles_where_the_papers_form_swings(share):
    """A share of the losses' spread: users of weight zero keep their factors, and weights damp."""
    spread = np.std(measured(*_solved()))
    risk = SmoothedCVaR(0.3, GAUSSIAN, share * spread)
    state, inside = run(training_of(risk), 300)
    with pytest.warns(ConvergenceWarning, match=r"collapses.*ridge_in_risk=True"):
        _, outside = run(training_of(risk, in_risk=False), 300)
    assert inside[-1].residual_weights < 1e-2 * outside[-1].residual_weights
    assert (np.linalg.norm(state.users, axis=1) > 0.1).all()


def _solved():
    training = training_of(Mean(0.3))
    state, _ = run(training, 30)
    return training.problem, state.users, state.items


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=lambda kernel: kernel.name)
def test_the_deviation_of_a_kernel(kernel):
    t = np.linspace(-60, 60, 2_000_001)
    variance = np.sum(t**2 * kernel.density(t)) * (t[1] - t[0])
    assert kernel.deviation**2 == pytest.approx(variance, rel=1e-4)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=lambda kernel: kernel.name)
def test_a_relative_bandwidth_means_the_same_on_any_scale(kernel):
    losses, counts = np.random.default_rng(3).gamma(2.0, size=(2, 200))
    risk = SmoothedCVaR(0.3, kernel, 1.5, steps=50, relative=True)
    found = []
    for scale, shift in ((1.0, 0.0), (1e-3, 0.0), (40.0, 7.0)):
        users = Population(scale * losses + shift, counts)
        fixed = risk.scaled(users)
        mean = np.average(users.losses, weights=counts)
        spread = np.sqrt(np.average((users.losses - mean) ** 2, weights=counts))
        assert fixed.bandwidth * kernel.deviation == pytest.approx(1.5 * spread)
        assert fixed.scaled(users) is fixed
        assert fixed.step(users) == pytest.approx(1.5 / 2.5)
        found.append(fixed.weights(users, fixed.quantile(users, users.mean_loss, None)))
    np.testing.assert_allclose(found[1], found[0], atol=1e-6)
    np.testing.assert_allclose(found[2], found[0], atol=1e-6)
    assert np.average(found[0], weights=counts) == pytest.approx(0.3, rel=1e-6)


def test_equal_losses_have_equal_weights():
    risk = SmoothedCVaR(0.3, GAUSSIAN, 1.5, relative=True)
    users = Population(np.full(5, 0.5))
    for known in (None, users):
        fixed = risk.scaled(known)
        assert fixed.bandwidth == np.inf
        assert fixed.step(users) == 1
        assert (fixed.weights(users, 0.5) == 0.3).all()


def test_a_relative_bandwidth_of_groups_is_that_of_their_means():
    losses, labels = np.arange(6.0), np.array(["a", "a", "b", "b", "c", "c"])
    risk = GroupCVaR.of(SmoothedCVaR(0.3, GAUSSIAN, 2.0, relative=True), labels)
    spread = np.std([0.5, 2.5, 4.5])
    users = Population(losses)
    assert risk.scaled(users).bandwidth == pytest.approx(2 * spread)
    assert risk.scaled(users).step(users) == pytest.approx(2 / 3)
    assert risk.scaled(None).bandwidth == np.inf


@pytest.mark.parametrize("risk", [Mean(0.3), CVaR(0.3)], ids=str)
def test_other_risks_have_no_scale(risk):
    users = Population(np.arange(5.0))
    assert risk.scaled(users) is risk
    assert (risk.bandwidth, risk.step(users)) == (None, 1.0)
