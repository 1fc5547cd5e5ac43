"""Training: callbacks, interruptions and the progress bar."""

import io
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse

from safecf import EASE, IALS, SAFER2PP, ConvergenceWarning, CVaRMF, Interactions, SolveError
from tests.helpers import refused, state
from tests.models.runs import assert_same, fit, make, make_cvar


@pytest.mark.parametrize("answer", [True, np.True_, None, False, 0, 1, "stop", object()])
def test_only_true_stops_training(data, answer):
    model = fit(make(), data, callback=lambda epoch, *rest: answer if epoch == 1 else None)
    stops = isinstance(answer, bool | np.bool_) and bool(answer)
    assert_same(model, fit(make(iterations=2 if stops else 5), data))


@pytest.mark.parametrize("backend", ["cpu", "numpy"])
def test_the_callback_hears_of_every_epoch_and_can_use_the_model(data, backend):
    model, calls, seen = make(backend=backend), [], []

    def callback(*call):
        ids, _ = model.recommend([0, 1], data[:2], recalculate_user=True)
        seen.append((ids, model.fold_in(data), len(model.history)))
        calls.append(call)

    fit(model, data, callback=callback)
    assert [epoch for epoch, _, _ in calls] == [0, 1, 2, 3, 4]
    assert all(seconds > 0 for _, seconds, _ in calls)
    assert [objective for *_, objective in calls] == [record.objective for record in model.history]
    for epochs, (ids, users, length) in enumerate(seen, start=1):
        shorter = fit(make(backend=backend, iterations=epochs), data)
        assert length == epochs
        np.testing.assert_array_equal(users, shorter.user_factors)
        np.testing.assert_array_equal(ids, shorter.recommend([0, 1], data[:2])[0])


def test_an_error_in_the_callback_leaves_no_trace(data):
    def callback(*call):
        raise RuntimeError("mine")

    for model in (make(), fit(make(), data)):
        before = state(model)
        with pytest.raises(RuntimeError, match="mine"):
            fit(model, data[:9], callback=callback)
        assert state(model) == before


@pytest.mark.parametrize("call", [7, 8])
def test_interrupted_in_the_fourth_epoch(data, interrupted, call):
    """The 7th and 8th half-steps are the users and the items of epoch 4."""
    model = interrupted(call)
    with pytest.raises(KeyboardInterrupt):
        fit(model, data)
    assert_same(model, fit(make(iterations=3, backend="numpy"), data))
    np.testing.assert_array_equal(model.fold_in(data), model.user_factors)


ERRORS = (SolveError("row 3"), MemoryError(), SystemExit())


@pytest.mark.parametrize(
    ("call", "error"),
    [*((call, KeyboardInterrupt()) for call in (1, 2)), *((7, error) for error in ERRORS)],
)
@pytest.mark.parametrize("before", ["unfitted", "fitted"])
def test_the_first_epoch_and_other_errors_leave_no_trace(data, interrupted, call, error, before):
    model = interrupted(call, error=error)
    if before == "fitted":
        model.backend = "numpy"
        fit(model, data[:9])
        model.backend = "interrupting"
    shown = state(model)
    with pytest.raises(type(error), match=f"^.*{error}$"):  # the error itself, in its own words
        fit(model, data)
    assert state(model) == shown


@pytest.mark.parametrize("calls", [(7, 8), (8, 9)], ids=["users", "items"])
def test_interrupted_again_while_finishing(data, interrupted, calls):
    """The items and the history of the last full epoch stay; of the users nothing is known."""
    whole = fit(make(iterations=3, backend="numpy"), data)
    model = interrupted(*calls)
    with pytest.raises(KeyboardInterrupt):
        fit(model, data)
    assert not model.user_factors.any()
    np.testing.assert_array_equal(model.item_factors, whole.item_factors)
    assert model.history == whole.history
    np.testing.assert_array_equal(model.fold_in(data), whole.user_factors)


def test_interrupted_in_the_callback(data):
    def callback(epoch, *rest):
        if epoch == 1:
            raise KeyboardInterrupt

    model = make()
    with pytest.raises(KeyboardInterrupt):
        fit(model, data, callback=callback)
    assert_same(model, fit(make(iterations=2), data))


@pytest.mark.parametrize(
    ("build", "words"), [(make, ("SAFER2", "5/5", "objective", "CVaR")), (EASE, ("EASE", "1/1"))]
)
def test_the_bar_goes_to_stderr(data, capfd, build, words):
    build().fit(data)
    out, err = capfd.readouterr()
    assert out == ""
    assert all(word in err for word in words)
    fit(build(), data)
    assert capfd.readouterr() == ("", "")


class Broken(io.StringIO):
    def write(self, text):
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.parametrize("stderr", [None, Broken()])
def test_a_broken_stderr_does_not_stop_training(data, monkeypatch, stderr):
    monkeypatch.setattr(sys, "stderr", stderr)
    model = make().fit(data)
    assert_same(model, fit(make(), data))


def test_the_bar_ends_when_training_does(data, capfd):
    make().fit(data, callback=lambda epoch, *rest: epoch == 1)
    assert "2/5" in capfd.readouterr().err


def test_a_fold_in_that_fails_leaves_the_model_as_it_was(data):
    model = CVaRMF(4, iterations=2, regularization=0, unobserved_weight=0, random_state=0)
    with pytest.raises(SolveError, match=r"^user row \d+: its system"):
        model.fit(data, show_progress=False)
    assert not model.is_fitted
    assert model.history == []
    named = Interactions.from_csr(data, [f"user {n}" for n in range(30)], range(20))
    with pytest.raises(SolveError, match=r"^user 'user \d+', row \d+: .*; raise regularization"):
        model.fit(named, show_progress=False)


@pytest.mark.parametrize("exponent", [2, 10])
def test_ridges_beyond_float32_are_refused_before_training(data, exponent):
    huge = {"regularization": 1e15, "unobserved_weight": 1e15, "ridge_exponent": exponent}
    model, epochs = IALS(4, random_state=0, **huge), []
    with pytest.raises(ValueError, match=r"the ridge of a row is .* beyond float32; lower regul"):
        model.fit(data, show_progress=False, callback=lambda *rest: epochs.append(rest))
    assert not epochs


def test_a_gramian_beyond_float32_is_one_clear_error(data):
    model = fit(make(), data)
    model.item_factors = np.full_like(model.item_factors, 1e20)
    with refused(SolveError, "the Gramian is beyond float32: lower init_std or"):
        model.fold_in(data)


def test_losses_without_numbers_are_no_fault_of_the_bandwidth():
    heavy = np.zeros((3, 3))
    heavy[[0, 1, 2, 2], [0, 1, 2, 0]] = 1e12
    model = SAFER2PP(3, iterations=3, regularization=1e-12, unobserved_weight=0.0, random_state=0)
    with pytest.raises(SolveError, match=r"^mean_loss of epoch 1 is nan: losses or factors are"):
        fit(model, scipy.sparse.csr_matrix(heavy))


@pytest.mark.parametrize("stopped", [False, True])
def test_a_training_that_learns_nothing_is_told_however_it_ends(data, stopped):
    model = make(regularization=1e4, iterations=2 + stopped)
    with pytest.warns(ConvergenceWarning, match="nothing was learned"):
        fit(model, data, callback=lambda *_: stopped)
    assert len(model.history) == (1 if stopped else 2)


@pytest.mark.parametrize("regularization", [0.2, 1.0])
def test_factors_that_vanish_are_no_error(regularization):
    """Large confidences and ridges: what is left of the residuals has squares beyond float32."""
    rng = np.random.default_rng(0)
    matrix = scipy.sparse.random(300, 200, 0.05, format="csr", random_state=0)
    matrix.data = 10 ** rng.uniform(-1, 4, matrix.nnz)
    options = {"regularization": regularization, "unobserved_weight": 600.0}
    model = IALS(16, iterations=60, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(matrix, show_progress=False)
    assert np.isfinite(model.item_factors).all()
    assert np.abs(model.item_factors).max() < 1e-6


@pytest.mark.parametrize("before", ["unfitted", "fitted"])
def test_a_first_epoch_that_diverges_leaves_no_trace(data, before):
    model = make_cvar("sgd")
    if before == "fitted":
        fit(model, data)
    model.step_size = 1e6
    with refused(SolveError, "diverges at epoch 1: ", "step_size=0.2", unchanged=model):
        fit(model, data)


def test_items_are_folded_in_with_everybody_that_counted(data):
    """One epoch's weights leave most users out, and with them the items that only they have."""
    model = fit(make_cvar(iterations=400, step_size=0.02), data)
    assert ((model.user_weights > 0) & (model.user_weights < 1)).any()
    assert np.mean(model.user_weights) == pytest.approx(0.3, abs=0.02)
    again = model.recalculate_item(np.arange(20), data.T.tocsr())
    lengths = np.linalg.norm(again, axis=1) * np.linalg.norm(model.item_factors, axis=1)
    assert (np.sum(again * model.item_factors, axis=1) > 0.9 * lengths).all()
    assert lengths.min() > 0
