"""Training: callbacks, interruptions, checkpoints and the progress bar."""

import io
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp

from safecf import IALS, SAFER2, FileFormatError, SolveError
from safecf.backends import BACKENDS, NumpyBackend

OPTIONS = {"factors": 4, "iterations": 5, "backend": "cpu"}


@pytest.fixture
def data():
    rng = np.random.default_rng(11)
    likes = rng.random((30, 20)) < 0.3
    return sp.csr_matrix(likes * rng.choice([1, 2], size=likes.shape), dtype=np.float32)


def make(**options):
    return SAFER2(**({"random_state": 1, "quantile_sample": 0.5} | OPTIONS | options))


def fit(model, data, **rest):
    return model.fit(data, show_progress=False, **rest)


def assert_same(one, other):
    np.testing.assert_array_equal(one.user_factors, other.user_factors)
    np.testing.assert_array_equal(one.item_factors, other.item_factors)
    np.testing.assert_array_equal(one.user_weights, other.user_weights)
    assert one.history == other.history
    assert one.seed == other.seed


def held(model):
    return {
        key: value.tobytes() if isinstance(value, np.ndarray) else value
        for key, value in vars(model).items()
        if key != "_cache"
    }


# Callback and history


def test_the_callback_hears_of_every_epoch(data):
    calls = []
    model = make()
    fit(model, data, callback=lambda *call: calls.append(call))
    assert [epoch for epoch, _, _ in calls] == [0, 1, 2, 3, 4]
    assert all(seconds > 0 for _, seconds, _ in calls)
    assert [objective for *_, objective in calls] == [record.objective for record in model.history]


@pytest.mark.parametrize("stop", [True, np.True_])
def test_the_callback_stops_training(data, stop):
    model = fit(
        make(), data, callback=lambda epoch, seconds, objective: stop if epoch == 1 else None
    )
    assert_same(model, fit(make(iterations=2), data))


def test_only_true_stops_training(data):
    for answer in (None, False, 0, 1, "stop", object()):
        model = fit(make(iterations=2), data, callback=lambda *call, answer=answer: answer)
        assert len(model.history) == 2


@pytest.mark.parametrize("backend", ["cpu", "numpy"])
def test_the_callback_can_use_the_model(data, backend):
    seen = []
    model = make(backend=backend)

    def callback(epoch, seconds, objective):
        ids, _ = model.recommend([0, 1], data[:2], recalculate_user=True)
        seen.append((ids, model.fold_in(data), len(model.history)))

    fit(model, data, callback=callback)
    assert [length for *_, length in seen] == [1, 2, 3, 4, 5]
    for epochs, (ids, users, _) in enumerate(seen, start=1):
        shorter = fit(make(backend=backend, iterations=epochs), data)
        np.testing.assert_array_equal(users, shorter.user_factors)
        np.testing.assert_array_equal(ids, shorter.recommend([0, 1], data[:2])[0])


def test_an_error_in_the_callback_leaves_no_trace(data):
    def callback(*call):
        raise RuntimeError("mine")

    for model in (make(), fit(make(), data)):
        before = held(model)
        with pytest.raises(RuntimeError, match="mine"):
            fit(model, data[:9], callback=callback)
        assert held(model) == before


def test_a_callback_that_cannot_be_called_is_refused(data):
    with pytest.raises(TypeError, match="callback='print'"):
        fit(make(), data, callback="print")


def test_history(data):
    model = fit(make(), data)
    last = model.history[-1]
    assert last.epoch == 5
    assert last.seconds.keys() == {"losses", "quantile", "users", "items"}
    assert last.mean_loss < last.var < last.cvar
    assert last.mean_weight == pytest.approx(np.mean(model.user_weights))
    assert last.residual_items < model.history[0].residual_items
    everybody = fit(IALS(**OPTIONS), data).history[-1]
    assert everybody.cvar == pytest.approx(everybody.mean_loss)


# Ctrl-C


class Interrupting(NumpyBackend):
    """Raise at the chosen calls of solve_rows; two of them are one epoch."""

    def __init__(self, error, calls):
        self.error, self.calls, self.count = error, calls, 0

    def solve_rows(self, rows, fixed, factors, solver):
        self.count += 1
        if self.count in self.calls:
            factors[: len(factors) // 2] = np.nan
            raise self.error
        return super().solve_rows(rows, fixed, factors, solver)


@pytest.fixture
def interrupted(monkeypatch):
    """Return a function that makes a model whose training is interrupted."""

    def build(*calls, error=KeyboardInterrupt, **options):
        backend = Interrupting(error, calls)
        monkeypatch.setitem(BACKENDS, "interrupting", lambda num_threads: backend)
        return make(backend="interrupting", **options)

    return build


@pytest.mark.parametrize("call", [7, 8])
def test_interrupted_in_the_fourth_epoch(data, interrupted, call):
    """The 7th and 8th half-steps are the users and the items of epoch 4."""
    model = interrupted(call)
    with pytest.raises(KeyboardInterrupt):
        fit(model, data)
    assert_same(model, fit(make(iterations=3, backend="numpy"), data))
    np.testing.assert_array_equal(model.fold_in(data), model.user_factors)


@pytest.mark.parametrize("call", [1, 2])
@pytest.mark.parametrize("before", ["unfitted", "fitted"])
def test_interrupted_in_the_first_epoch(data, interrupted, call, before):
    model = interrupted(call)
    if before == "fitted":
        model.backend = "numpy"
        fit(model, data[:9])
        model.backend = "interrupting"
    state = held(model)
    with pytest.raises(KeyboardInterrupt):
        fit(model, data)
    assert held(model) == state


def test_interrupted_again_while_finishing(data, interrupted):
    model = interrupted(7, 8)
    state = held(model)
    with pytest.raises(KeyboardInterrupt):
        fit(model, data)
    assert held(model) == state


def test_interrupted_in_the_callback(data):
    def callback(epoch, *rest):
        if epoch == 1:
            raise KeyboardInterrupt

    model = make()
    with pytest.raises(KeyboardInterrupt):
        fit(model, data, callback=callback)
    assert_same(model, fit(make(iterations=2), data))


@pytest.mark.parametrize("error", [SolveError("row 3"), MemoryError(), SystemExit()])
def test_other_errors_leave_no_trace(data, interrupted, error):
    model = interrupted(7, error=error)
    state = held(model)
    with pytest.raises(type(error)):
        fit(model, data)
    assert held(model) == state


# Checkpoints


@pytest.mark.parametrize("backend", ["cpu", "numpy"])
@pytest.mark.parametrize("seed", [1, None, "generator"])
def test_resuming_gives_the_same_bits(data, tmp_path, backend, seed):
    path = tmp_path / "run"
    random_state = np.random.default_rng(5) if seed == "generator" else seed
    first = make(backend=backend, random_state=random_state, iterations=2)
    fit(first, data, checkpoint=path)
    assert [file.name for file in tmp_path.iterdir()] == ["run.safetensors"]
    resumed = make(backend=backend, random_state=random_state)
    fit(resumed, data, checkpoint=path, resume=path)
    assert_same(resumed, fit(make(backend=backend, random_state=first.seed), data))
    done = fit(make(backend=backend, random_state=random_state), data, resume=path)
    assert_same(done, resumed)


def test_checkpoints_do_not_change_training(data, tmp_path):
    assert_same(fit(make(), data, checkpoint=tmp_path / "run"), fit(make(), data))


def test_what_may_differ_when_resuming(data, tmp_path):
    fit(make(iterations=2), data, checkpoint=tmp_path / "run")
    for options in ({"iterations": 9}, {"num_threads": 1}, {"backend": "numpy"}):
        model = fit(make(**options), data, resume=tmp_path / "run")
        assert len(model.history) == options.get("iterations", 5)
        np.testing.assert_allclose(
            model.item_factors,
            fit(make(iterations=model.iterations), data).item_factors,
            rtol=1e-3,
            atol=1e-4,
        )


def other(data):
    changed = data.copy()
    changed.indices[0] += 1 if changed.indices[1] > changed.indices[0] + 1 else -1
    return changed


MISMATCHES = {
    "model": (lambda: IALS(random_state=1, **OPTIONS), None, "model SAFER2 in the file, IALS here"),
    "factors": (lambda: make(factors=5), None, "factors=4 in the file, 5 here"),
    "tail": (lambda: make(tail=0.5), None, r"tail=0\.3 in the file, 0\.5 here"),
    "bandwidth": (lambda: make(bandwidth=np.inf), None, r"bandwidth=0\.15 in the file, inf here"),
    "kernel": (
        lambda: make(kernel="uniform"),
        None,
        "kernel='gaussian' in the file, 'uniform' here",
    ),
    "seed": (lambda: make(random_state=2), None, "random_state=1 in the file, 2 here"),
    "epochs": (lambda: make(iterations=1), None, "at epoch 2, beyond iterations=1"),
    "shape": (make, lambda data: data[:9], "30 users x 20 items .* in the file, 9 x 20"),
    "weights": (make, lambda data: data * 2, "user_items is not the matrix"),
    "interactions": (make, other, "user_items is not the matrix"),
}


@pytest.mark.parametrize("case", MISMATCHES)
def test_another_run_is_refused(data, tmp_path, case):
    build, change, message = MISMATCHES[case]
    fit(make(iterations=2), data, checkpoint=tmp_path / "run")
    model = build()
    state = held(model)
    with pytest.raises(ValueError, match=f"cannot resume: .*{message}"):
        fit(model, data if change is None else change(data), resume=tmp_path / "run")
    assert held(model) == state


def test_bad_paths(data, tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"no checkpoint to resume from.*nothing\.safetensors"
    ):
        fit(make(), data, resume=tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        fit(make(), data, checkpoint=tmp_path / "nowhere" / "run")
    (tmp_path / "folder.safetensors").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        fit(make(), data, checkpoint=tmp_path / "folder")


def test_models_and_checkpoints_are_not_mixed_up(data, tmp_path):
    model = fit(make(), data, checkpoint=tmp_path / "run")
    model.save(tmp_path / "model")
    with pytest.raises(FileFormatError, match=r"it is a model, not a checkpoint.*safecf\.load"):
        fit(make(), data, resume=tmp_path / "model")
    with pytest.raises(FileFormatError, match=r"it is a checkpoint, not a model.*resume"):
        SAFER2.load(tmp_path / "run")


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_full_disk_leaves_the_previous_checkpoint(data, tmp_path, monkeypatch, broken):
    path, works, calls = tmp_path / "run", getattr(os, broken), []

    def fail(*rest):
        calls.append(rest)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        return works(*rest)

    monkeypatch.setattr(os, broken, fail)
    model = make()
    state = held(model)
    with pytest.raises(OSError, match=r"cannot write the file: No space left.*run\.safetensors"):
        fit(model, data, checkpoint=path)
    assert held(model) == state
    assert [file.name for file in tmp_path.iterdir()] == ["run.safetensors"]
    monkeypatch.undo()
    resumed = fit(model, data, resume=path)
    assert_same(resumed, fit(make(), data))


def test_ctrl_c_while_writing_keeps_the_epoch(data, tmp_path, monkeypatch):
    def interrupt(descriptor):
        raise KeyboardInterrupt

    fit(make(iterations=1), data, checkpoint=tmp_path / "run")
    monkeypatch.setattr(os, "fsync", interrupt)
    model = make()
    with pytest.raises(KeyboardInterrupt):
        fit(model, data, checkpoint=tmp_path / "run", resume=tmp_path / "run")
    assert [file.name for file in tmp_path.iterdir()] == ["run.safetensors"]
    monkeypatch.undo()
    assert_same(model, fit(make(iterations=2), data))


@pytest.mark.parametrize("moment", ["between epochs", "while writing"])
def test_killed_runs_go_on(data, tmp_path, moment):
    """kill -9 in the third epoch's callback, or in the middle of its checkpoint."""
    sp.save_npz(tmp_path / "data.npz", data)
    script = f"""
        import os, signal
        import scipy.sparse
        from safecf import SAFER2

        calls = []

        def die(*rest):
            calls.append(rest)
            if len(calls) == 3:
                os.kill(os.getpid(), signal.SIGKILL)

        callback = die if {moment!r} == "between epochs" else None
        if callback is None:
            os.fsync = die
        model = SAFER2(random_state=None, quantile_sample=0.5, **{OPTIONS})
        data = scipy.sparse.load_npz("data.npz")
        model.fit(data, show_progress=False, callback=callback, checkpoint="run")
    """
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], cwd=tmp_path, check=False
    )
    assert process.returncode == -signal.SIGKILL
    model = make(random_state=None)
    epochs = []
    fit(model, data, resume=tmp_path / "run", callback=lambda epoch, *rest: epochs.append(epoch))
    assert epochs == ([3, 4] if moment == "between epochs" else [2, 3, 4])
    assert_same(model, fit(make(random_state=model.seed), data))


def test_interrupted_while_resuming(data, tmp_path, interrupted):
    fit(make(iterations=2, backend="numpy"), data, checkpoint=tmp_path / "run")
    model = interrupted(1)
    with pytest.raises(KeyboardInterrupt):
        fit(model, data, resume=tmp_path / "run")
    assert_same(model, fit(make(iterations=2, backend="numpy"), data))


# Progress


def test_silence(data, capfd):
    fit(make(), data)
    assert capfd.readouterr() == ("", "")


def test_the_bar_goes_to_stderr(data, capfd):
    make().fit(data)
    out, err = capfd.readouterr()
    assert out == ""
    assert "SAFER2" in err
    assert "5/5" in err
    assert "objective" in err
    assert "CVaR" in err


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
    with pytest.raises(ZeroDivisionError):
        make().fit(data, callback=lambda *call: 1 / 0)
    assert capfd.readouterr().out == ""
