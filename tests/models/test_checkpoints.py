"""Checkpoints: a run that was stopped goes on with the same bits, or says why it cannot."""

import errno
import os

import numpy as np
import pytest
import safetensors.numpy

from safecf import IALS, ConvergenceWarning, FileFormatError
from tests.helpers import refused, state
from tests.models.runs import OPTIONS, assert_same, fit, make, make_cvar
from tests.models.saved import put_together, taken_apart
from tests.reference import rotation_free

GROUPS, WEIGHTS = np.array(list("aaab" * 7 + "cc")), np.arange(30) % 4


# What a file has to hold, by model and by what `fit` is given.
RUNS = {
    "seed": (make, {}),
    "no seed": (lambda **options: make(random_state=None, **options), {}),
    "generator": (lambda **options: make(random_state=np.random.default_rng(5), **options), {}),
    "groups": (make, {"user_groups": GROUPS}),
    "weights": (make, {"user_weight": WEIGHTS}),
    "sgd": (lambda **options: make_cvar("sgd", **options), {}),
    "adam": (make_cvar, {}),
}


@pytest.mark.parametrize("backend", ["cpu", "numpy"])
@pytest.mark.parametrize("run", RUNS)
def test_resuming_gives_the_same_bits(data, tmp_path, backend, run):
    (build, given), path, epochs = RUNS[run], tmp_path / "run", []
    given = {**given, "callback": lambda epoch, *rest: epochs.append(epoch)}
    first = fit(build(backend=backend, iterations=2), data, checkpoint=path, **given)
    assert [file.name for file in tmp_path.iterdir()] == ["run.safetensors"]
    resumed = fit(build(backend=backend), data, checkpoint=path, resume=path, **given)
    assert epochs == [0, 1, 2, 3, 4]
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
        found, expected = (
            rotation_free(each.user_factors, each.item_factors) for each in (model, same)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


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


def test_other_values_and_shapes_are_named_in_short(data, tmp_path):
    path = tmp_path / "run.safetensors"
    fit(make(iterations=2), data, checkpoint=path)
    arrays, header = taken_apart(path.read_bytes())
    header["options"]["tail"] = list(range(9999))
    path.write_bytes(put_together(arrays, header))
    with refused(ValueError, "cannot resume: tail=[0, 1, ", "… in the file, 0.3 here") as caught:
        fit(make(), data, resume=path)
    assert len(str(caught.value)) < 300
    with refused(ValueError, "30 users x 20 items with 4 factors in the file, 9 x 20"):
        fit(make(), data[:9], resume=path)


@pytest.mark.parametrize("seed", [1, None])
def test_the_same_run_replaces_its_checkpoint(data, tmp_path, seed):
    path = tmp_path / "run"  # and the file to resume from may be the one that is written
    fit(make(random_state=seed, iterations=1), data, checkpoint=path, resume=f"{path}.safetensors")
    for iterations in (2, 3):
        model = fit(make(random_state=seed, iterations=iterations), data, checkpoint=path)
        assert_same(fit(make(random_state=seed, iterations=iterations), data, resume=path), model)


def test_a_checkpoint_replaces_nothing_but_checkpoints(data, tmp_path):
    """And says so before the first epoch."""
    fit(make(), data).save(tmp_path / "model")
    foreign = safetensors.numpy.save({"a": np.ones(3)}, metadata={"format": "pt"})
    (tmp_path / "notes.safetensors").write_text("some text")
    (tmp_path / "foreign.safetensors").write_bytes(foreign)
    whole = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "damaged.safetensors").write_bytes(whole[:50])
    for name in ("model", "notes", "foreign", "damaged"):
        before = (tmp_path / f"{name}.safetensors").read_bytes()
        kind = "a model" if name == "model" else "no checkpoint"
        for rest in ({}, {"resume": tmp_path / name}):
            with refused(FileExistsError, f"{name}.safetensors is {kind}, ", "give another path"):
                fit(make(), data, checkpoint=tmp_path / name, **rest)
        assert (tmp_path / f"{name}.safetensors").read_bytes() == before
    with refused(FileFormatError, "it is a model, not a checkpoint", "safecf.load"):
        fit(make(), data, resume=tmp_path / "model")
    (tmp_path / "empty.safetensors").touch()
    fit(make(iterations=1), data, checkpoint=tmp_path / "empty")
    again = fit(make(iterations=2), data, checkpoint=tmp_path / "empty")  # another run of the same
    assert len(again.history) == 2


def test_a_folder_that_cannot_be_written_is_found_before_training(data, tmp_path, monkeypatch):
    works, epochs = os.open, []

    def refuse(path, flags, *rest, **named):
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, "Read-only file system")
        return works(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(OSError, match=r"cannot write the file: Read-only.*run\.safetensors"):
        fit(make(), data, checkpoint=tmp_path / "run", callback=lambda *rest: epochs.append(rest))
    assert not epochs


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_the_previous_checkpoint_stays_when_one_cannot_be_written(
    data, tmp_path, monkeypatch, error
):
    """A full disk leaves no trace of the training, Ctrl-C the epoch that was to be written."""

    def fail(descriptor):
        raise error

    path, model = tmp_path / "run", make()
    fit(make(iterations=1), data, checkpoint=path)
    before = state(model)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(type(error)) as caught:
        fit(model, data, checkpoint=path, resume=path)
    monkeypatch.undo()
    assert [file.name for file in tmp_path.iterdir()] == ["run.safetensors"]
    if isinstance(error, KeyboardInterrupt):
        assert_same(model, fit(make(iterations=2), data))
    else:
        assert "cannot write the file: No space left" in str(caught.value)
        assert state(model) == before
    assert_same(fit(model, data, resume=path), fit(make(), data))


def test_interrupted_while_resuming(data, tmp_path, interrupted):
    fit(make(iterations=2, backend="numpy"), data, checkpoint=tmp_path / "run")
    model = interrupted(1)
    with pytest.raises(KeyboardInterrupt):
        fit(model, data, resume=tmp_path / "run")
    assert_same(model, fit(make(iterations=2, backend="numpy"), data))


def test_huge_moments_of_a_file_are_harmless(data, tmp_path):
    path = tmp_path / "run.safetensors"
    fit(make_cvar(), data, checkpoint=path)
    arrays, header = taken_apart(path.read_bytes())
    arrays["users.mean"][:] = 3e38
    path.write_bytes(put_together(arrays, header))
    with pytest.warns(ConvergenceWarning, match="diverges at epoch 6"):
        model = fit(make_cvar(iterations=9), data, resume=path)
    assert len(model.history) == 5
    assert np.isfinite(model.item_factors).all()


@pytest.mark.parametrize("backend", ["cpu", "numpy"])
def test_a_diverging_step_size_leaves_the_last_good_epoch(data, tmp_path, backend):
    options = {"optimizer": "sgd", "step_size": 20.0, "backend": backend}
    model, path = make_cvar(iterations=50, **options), tmp_path / "run"
    with pytest.warns(
        ConvergenceWarning, match=r"lower step_size, e\.g\. step_size=0\.2"
    ) as caught:
        fit(model, data, checkpoint=path)
    assert caught[0].filename.endswith("runs.py")
    epochs = len(model.history)
    assert 0 < epochs < 50
    assert_same(model, fit(make_cvar(iterations=epochs, **options), data))
    np.testing.assert_array_equal(model.fold_in(data), model.user_factors)
    with pytest.warns(ConvergenceWarning, match=f"diverges at epoch {epochs + 1}"):
        assert_same(fit(make_cvar(iterations=50, **options), data, resume=path), model)
