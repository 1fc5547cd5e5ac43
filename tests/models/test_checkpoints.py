"""Checkpoints: a run that was stopped goes on with the same bits, or says why it cannot."""

import errno
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import safetensors.numpy
import scipy.sparse as sp

from safecf import IALS, SAFER2, CVaRMF, FileFormatError
from tests.helpers import refused, state
from tests.models.runs import OPTIONS, assert_same, fit, make
from tests.models.saved import put_together, taken_apart
from tests.problems import rotation_free

GROUPS, WEIGHTS = np.array(list("aaab" * 7 + "cc")), np.arange(30) % 4


def make_cvar(optimizer, step_size, **options):
    chosen = {"random_state": 1, "optimizer": optimizer, "step_size": step_size}
    return CVaRMF(**OPTIONS | chosen | options)


# What a file has to hold, by model and by what `fit` is given.
RUNS = {
    "seed": (make, {}),
    "no seed": (lambda **options: make(random_state=None, **options), {}),
    "generator": (lambda **options: make(random_state=np.random.default_rng(5), **options), {}),
    "groups": (make, {"user_groups": GROUPS}),
    "weights": (make, {"user_weight": WEIGHTS}),
    "sgd": (lambda **options: make_cvar("sgd", 0.4, **options), {}),
    "adam": (lambda **options: make_cvar("adam", 0.05, **options), {}),
}


@pytest.mark.parametrize("backend", ["cpu", "numpy"])
@pytest.mark.parametrize("run", RUNS)
def test_resuming_gives_the_same_bits(data, tmp_path, backend, run):
    (build, given), path = RUNS[run], tmp_path / "run"
    first = fit(build(backend=backend, iterations=2), data, checkpoint=path, **given)
    assert [file.name for file in tmp_path.iterdir()] == ["run.safetensors"]
    resumed = fit(build(backend=backend), data, checkpoint=path, resume=path, **given)
    whole = build(backend=backend)
    whole.random_state = first.seed
    assert_same(resumed, fit(whole, data, **given))
    assert resumed.resolved == whole.resolved
    assert resumed.group_weights == whole.group_weights
    assert_same(fit(build(backend=backend), data, resume=path, **given), resumed)


def test_what_may_differ_when_resuming(data, tmp_path):
    fit(make(iterations=2, tolerance=1e-6), data, checkpoint=tmp_path / "run")
    for options in ({"iterations": 9}, {"num_threads": 1}, {"backend": "numpy"}):
        model = fit(make(**options, tolerance=1e-6), data, resume=tmp_path / "run")
        assert len(model.history) == options.get("iterations", 5)
        same = fit(make(iterations=model.iterations, tolerance=1e-6), data)
        np.testing.assert_allclose(
            rotation_free(model.user_factors, model.item_factors),
            rotation_free(same.user_factors, same.item_factors),
            rtol=1e-3,
            atol=1e-4,
        )


def other(data):
    changed = data.copy()
    changed.indices[0] += 1 if changed.indices[1] > changed.indices[0] + 1 else -1
    return changed


MISMATCHES = {
    "model SAFER2 in the file, IALS here": {"build": lambda: IALS(random_state=1, **OPTIONS)},
    "factors=4 in the file, 5 here": {"factors": 5},
    "tail=0.3 in the file, 0.5 here": {"tail": 0.5},
    "bandwidth='auto' in the file, inf here": {"bandwidth": np.inf},
    "kernel='gaussian' in the file, 'uniform' here": {"kernel": "uniform"},
    "random_state=1 in the file, 2 here": {"random_state": 2},
    "at epoch 2, beyond iterations=1": {"iterations": 1},
    "user_items is not what the file": {"change": other},
    "user_items is": {"change": lambda data: data * 2},
    "user_groups is not what the file": {"user_groups": GROUPS},
    "user_weight is not what the file": {"user_weight": WEIGHTS},
}


@pytest.mark.parametrize("message", MISMATCHES)
def test_another_run_is_refused_and_replaces_nothing(data, tmp_path, message):
    path = tmp_path / "run.safetensors"
    fit(make(iterations=2), data, checkpoint=path)
    before, case = path.read_bytes(), dict(MISMATCHES[message])
    given = {name: case.pop(name) for name in ("user_groups", "user_weight") if name in case}
    data = case.pop("change", lambda data: data)(data)
    model = case.pop("build", lambda: make(**case))()
    with refused(ValueError, "cannot resume: ", message, unchanged=model):
        fit(model, data, resume=path, **given)
    words = "is the checkpoint of another run, ", message, "resume=; else give another path"
    with refused(FileExistsError, *words, unchanged=model):
        fit(model, data, checkpoint=path, **given)
    fit(make(tail=0.9), data, checkpoint=tmp_path / "other")
    with refused(FileExistsError, "is the checkpoint of another run"):
        fit(make(tail=0.9), data, checkpoint=path, resume=tmp_path / "other")
    assert path.read_bytes() == before


def test_another_shape_is_refused(data, tmp_path):
    fit(make(iterations=2), data, checkpoint=tmp_path / "run")
    with refused(ValueError, "30 users x 20 items with 4 factors in the file, 9 x 20"):
        fit(make(), data[:9], resume=tmp_path / "run")


def test_values_of_a_file_are_shortened_in_messages(data, tmp_path):
    path = tmp_path / "run.safetensors"
    fit(make(iterations=2), data, checkpoint=path)
    arrays, header = taken_apart(path.read_bytes())
    header["options"]["tail"] = list(range(9999))
    path.write_bytes(put_together(arrays, header))
    with refused(ValueError, "cannot resume: tail=[0, 1, ", "… in the file, 0.3 here") as caught:
        fit(make(), data, resume=path)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("seed", [1, None])
def test_the_same_run_replaces_its_checkpoint(data, tmp_path, seed):
    path = tmp_path / "run"
    for iterations in (2, 3):
        model = fit(make(random_state=seed, iterations=iterations), data, checkpoint=path)
        assert_same(fit(make(random_state=seed, iterations=iterations), data, resume=path), model)


def test_bad_paths(data, tmp_path):
    with refused(FileNotFoundError, "no checkpoint to resume from", "nothing.safetensors"):
        fit(make(), data, resume=tmp_path / "nothing")
    with refused(FileNotFoundError, "there is no folder"):
        fit(make(), data, checkpoint=tmp_path / "nowhere" / "run")
    (tmp_path / "folder.safetensors").mkdir()
    with refused(IsADirectoryError, "is a folder"):
        fit(make(), data, checkpoint=tmp_path / "folder")


def test_a_checkpoint_replaces_nothing_but_checkpoints(data, tmp_path):
    """And says so before the first epoch."""
    model = fit(make(), data)
    model.save(tmp_path / "model")
    (tmp_path / "notes.safetensors").write_text("some text")
    (tmp_path / "foreign.safetensors").write_bytes(
        safetensors.numpy.save({"a": np.ones(3)}, metadata={"format": "pt"})
    )
    whole = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "damaged.safetensors").write_bytes(whole[:50])
    for name, kind in [
        ("model", "a model"),
        ("notes", "no checkpoint"),
        ("foreign", "no checkpoint"),
        ("damaged", "no checkpoint"),
    ]:
        before = (tmp_path / f"{name}.safetensors").read_bytes()
        for rest in ({}, {"resume": tmp_path / name}):
            with refused(FileExistsError, f"{name}.safetensors is {kind}, ", "give another path"):
                fit(make(), data, checkpoint=tmp_path / name, **rest)
        assert (tmp_path / f"{name}.safetensors").read_bytes() == before
    (tmp_path / "empty.safetensors").touch()
    fit(make(iterations=1), data, checkpoint=tmp_path / "empty")
    again = fit(make(iterations=2), data, checkpoint=tmp_path / "empty")  # another run of the same
    assert len(again.history) == 2


def test_a_folder_that_cannot_be_written_is_found_before_training(data, tmp_path, monkeypatch):
    works = os.open

    def refuse(path, flags, *rest, **named):
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, "Read-only file system")
        return works(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refuse)
    epochs = []
    with pytest.raises(OSError, match=r"cannot write the file: Read-only.*run\.safetensors"):
        fit(make(), data, checkpoint=tmp_path / "run", callback=lambda *rest: epochs.append(rest))
    assert not epochs


def test_the_same_file_by_another_name_need_not_exist_yet(data, tmp_path):
    path = tmp_path / "run"
    model = fit(make(), data, checkpoint=path, resume=f"{path}.safetensors")
    assert_same(model, fit(make(), data))


def test_models_and_checkpoints_are_not_mixed_up(data, tmp_path):
    model = fit(make(), data, checkpoint=tmp_path / "run")
    model.save(tmp_path / "model")
    with refused(FileFormatError, "it is a model, not a checkpoint", "safecf.load"):
        fit(make(), data, resume=tmp_path / "model")
    with refused(FileFormatError, "it is a checkpoint, not a model", "resume"):
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
    before = state(model)
    with pytest.raises(OSError, match=r"cannot write the file: No space left.*run\.safetensors"):
        fit(model, data, checkpoint=path)
    assert state(model) == before
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


def test_killed_runs_go_on(data, tmp_path):
    """kill -9 in the middle of the third checkpoint."""
    sp.save_npz(tmp_path / "data.npz", data)
    script = f"""
        import os, signal, stat
        import scipy.sparse
        from safecf import SAFER2

        calls = []

        def die_in_fsync(descriptor):
            if stat.S_ISREG(os.fstat(descriptor).st_mode):  # not that of the folder
                calls.append(descriptor)
                if len(calls) == 3:
                    os.kill(os.getpid(), signal.SIGKILL)

        os.fsync = die_in_fsync
        model = SAFER2(random_state=None, quantile_sample=0.5, **{OPTIONS})
        data = scipy.sparse.load_npz("data.npz")
        model.fit(data, show_progress=False, checkpoint="run")
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == -signal.SIGKILL
    assert len([name for name in os.listdir(tmp_path) if name.endswith(".tmp")]) == 1
    model, epochs, run = make(random_state=None), [], tmp_path / "run"
    fit(model, data, resume=run, checkpoint=run, callback=lambda epoch, *rest: epochs.append(epoch))
    assert sorted(os.listdir(tmp_path)) == ["data.npz", "run.safetensors"]
    assert epochs == [2, 3, 4]
    assert_same(model, fit(make(random_state=model.seed), data))


def test_interrupted_while_resuming(data, tmp_path, interrupted):
    fit(make(iterations=2, backend="numpy"), data, checkpoint=tmp_path / "run")
    model = interrupted(1)
    with pytest.raises(KeyboardInterrupt):
        fit(model, data, resume=tmp_path / "run")
    assert_same(model, fit(make(iterations=2, backend="numpy"), data))
