"""Gradient steps: both sides from the old factors, and what happens when they diverge."""

import dataclasses
import warnings

import numpy as np
import pytest

from safecf.als.loop import COLLAPSED
from safecf.als.loss import Loss
from safecf.als.optimizers import SGD, Adam
from safecf.als.risk import CVaR, Mean
from safecf.als.solvers import Gradient
from safecf.als.sweeps import HOPELESS
from safecf.backends.numpy import NumpyBackend
from safecf.errors import ConvergenceWarning, DivergenceError, SolveError
from tests.als import trainings
from tests.als.trainings import BACKENDS, held, run
from tests.reference import gradient, objective, user_losses

every_backend = pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
every_optimizer = pytest.mark.parametrize("optimizer", [SGD(), Adam()], ids=str)


def training_of(solver, backend=None, *, loss=None, risk=None, lengths=None, **options):
    lengths = np.random.default_rng(0).integers(0, 12, 60) if lengths is None else lengths
    options |= {"lengths": lengths, "weighted": True}
    return trainings.training_of(loss or Loss(0.02), risk or CVaR(0.3), solver, backend, **options)


@every_backend
@every_optimizer
@pytest.mark.parametrize("loss", [Loss(0.1, 0.0), Loss(0.02)], ids=str)
def test_an_epoch_is_a_step_against_the_slopes_of_both_sides(loss, optimizer, backend):
    """By hand: dense losses, a sorted quantile, numeric derivatives, all at the old factors."""
    lengths = np.random.default_rng(0).integers(0, 12, 20)
    training = training_of(Gradient(0.02, optimizer), backend, loss=loss, lengths=lengths)
    problem, state = training.problem, training.start(5, 0.5)
    active = problem.active_users
    of_users = of_items = None
    seen = []
    for epoch, _ in enumerate(training.epochs(twin := training.start(5, 0.5), 3), start=1):
        x, y = state.users.astype(float), state.items.astype(float)
        losses = user_losses(problem.interactions.users, loss, x, y)
        xi = np.sort(losses[active])[::-1][int(np.ceil(0.3 * active.sum())) - 1]
        weights = np.where(active, losses >= xi, 0.0)
        slopes_x = gradient(lambda at, w=weights, y=y: objective(problem, w, at, y), x)
        slopes_y = gradient(lambda at, w=weights, x=x: objective(problem, w, x, at), y)
        step_x, of_users = optimizer.direction(slopes_x, of_users, epoch)
        step_y, of_items = optimizer.direction(slopes_y, of_items, epoch)
        state = dataclasses.replace(twin, users=x - 0.02 * step_x, items=y - 0.02 * step_y)
        close = 1e-6 if backend.name == "numpy" else 1e-4
        assert twin.xi == pytest.approx(xi, rel=close)
        seen.append(weights)
        np.testing.assert_allclose(twin.weights, np.mean(seen, axis=0), atol=1e-15)
        np.testing.assert_allclose(twin.users, state.users, rtol=0, atol=close)
        np.testing.assert_allclose(twin.items, state.items, rtol=0, atol=close)


@pytest.mark.parametrize(("optimizer", "step"), [(SGD(), 0.2), (Adam(), 0.02)])
def test_training_gets_somewhere(optimizer, step):
    _, history = run(training_of(Gradient(step, optimizer), regularization=0.01), 200)
    assert history[-1].cvar < 0.7 * history[0].cvar
    assert history[-1].objective < history[20].objective < history[0].objective
    last = history[-1]
    assert last.xi == pytest.approx(last.var, rel=0.1)
    assert last.mean_weight == pytest.approx(0.3, abs=0.02)


def test_the_mean_is_plain_gradient_descent():
    """With equal weights the objective is smooth, and small steps never raise it."""
    solver = Gradient(0.05, SGD())
    _, history = run(training_of(solver, risk=Mean(0.3)), 50)
    assert (np.diff([record.objective for record in history]) <= 0).all()


@pytest.mark.parametrize("verb", ["gram", "gradients", "losses"])
@every_optimizer
def test_an_interrupted_epoch_leaves_everything_as_it_was(optimizer, verb):
    class Interrupting(NumpyBackend):
        calls = limit = 0

    def interrupt(self, *rest):
        Interrupting.calls += 1
        if Interrupting.calls == Interrupting.limit:
            raise KeyboardInterrupt
        return getattr(NumpyBackend, verb)(self, *rest)

    setattr(Interrupting, verb, interrupt)
    training = training_of(Gradient(0.05, optimizer), Interrupting())
    state = training.start(5, 0.5)
    epochs = training.epochs(state, 9)
    next(epochs)
    next(epochs)
    kept = held(state)
    twice = 2 if verb == "gradients" else 1
    Interrupting.limit = Interrupting.calls + twice
    with pytest.raises(KeyboardInterrupt):
        next(epochs)
    assert held(state) == kept
    whole, _ = run(training_of(Gradient(0.05, optimizer)), 3)
    Interrupting.limit = 0
    next(training.epochs(state, 3))
    assert held(state) == held(whole)


@every_backend
@pytest.mark.parametrize("step", [2.0, 4.0])
def test_a_diverging_step_ends_training_at_the_epoch_before(backend, step):
    training = training_of(Gradient(step, SGD()), backend)
    state = training.start(5, 0.5)
    remedy = r"lower step_size, e\.g\. step_size=0\.2"
    with pytest.warns(ConvergenceWarning, match=f"diverges at epoch .*{remedy}") as caught:
        history = list(training.epochs(state, 100))
    assert len(caught) == 1
    assert 0 < len(history) < 50
    assert state.epoch == len(history)
    assert f"at epoch {state.epoch + 1}: " in str(caught[0].message)
    assert f"The model is that of epoch {state.epoch}" in str(caught[0].message)
    assert np.isfinite(state.users).all()
    assert np.isfinite(state.items).all()
    losses = user_losses(
        training.problem.interactions.users, training.problem.loss, state.users, state.items
    )
    assert losses[training.problem.active_users].mean() <= HOPELESS * 0.5
    again, _ = run(training, state.epoch)
    assert held(again) == held(state)


@every_backend
@every_optimizer
@pytest.mark.parametrize("step", [10.0, 1e20, 1e300])
def test_a_first_epoch_that_diverges_is_an_error(optimizer, backend, step):
    training = training_of(Gradient(step, optimizer), backend)
    state = training.start(5, 0.5)
    kept = held(state)
    with pytest.raises(DivergenceError, match=r"at epoch 1: .*lower step_size, e\.g\. step_size="):
        next(training.epochs(state, 5))
    assert held(state) == kept
    assert issubclass(DivergenceError, SolveError)


@every_backend
def test_a_start_that_is_hopeless_is_an_error(backend):
    training = training_of(Gradient(0.1, SGD()), backend)
    state = training.start(5, 1e5)
    with pytest.raises(DivergenceError, match="or init_std"):
        next(training.epochs(state, 5))


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("tail", [0.05, 0.3])
def test_few_users_are_no_collapse(count, tail):
    """The worst of two users is half of all, whatever the tail."""
    training = training_of(Gradient(0.1, SGD()), risk=CVaR(tail), lengths=[3] * count)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, history = run(training, 5)
    assert history[-1].mean_weight == pytest.approx(1 / count)


def test_users_that_vanish_are_no_collapse():
    """A ridge of 1 / step_size takes all users of weight zero to zero at once."""
    lengths, solver, risk = np.arange(1, 21), Gradient(0.5, SGD()), CVaR(0.1)
    training = training_of(solver, risk=risk, lengths=lengths, columns=60)
    ridge = training.problem.unit_user_rows.ridge[0]
    regularization = training.problem.ridge.regularization / (0.5 * ridge)
    training = training_of(
        solver, risk=risk, lengths=lengths, columns=60, regularization=regularization
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state, _ = run(training, 1)
    norms = np.linalg.norm(state.users, axis=1)
    assert np.mean(norms <= 1e-4 * norms.max()) > COLLAPSED
