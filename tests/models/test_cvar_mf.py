"""CVaR-MF: checkpoints with Adam's moments, files that were tampered with, and divergence."""

import numpy as np
import pytest

from safecf import CVaRMF, FileFormatError, SolveError
from safecf.errors import ConvergenceWarning
from tests.models.runs import OPTIONS, assert_same, fit, held
from tests.models.saved import put_together, taken_apart

STEPS = {"sgd": 0.4, "adam": 0.05}


def make(optimizer="adam", **options):
    defaults = {"random_state": 1, "optimizer": optimizer, "step_size": STEPS[optimizer]}
    return CVaRMF(**(defaults | OPTIONS | options))


@pytest.mark.parametrize("backend", ["cpu", "numpy"])
@pytest.mark.parametrize("optimizer", STEPS)
def test_resuming_gives_the_same_bits(data, tmp_path, optimizer, backend):
    path = tmp_path / "run"
    fit(make(optimizer, backend=backend, iterations=2), data, checkpoint=path)
    resumed = make(optimizer, backend=backend)
    fit(resumed, data, checkpoint=path, resume=path)
    assert_same(resumed, fit(make(optimizer, backend=backend), data))
    assert_same(fit(make(optimizer, backend=backend), data, resume=path), resumed)


@pytest.mark.parametrize("optimizer", STEPS)
def test_resuming_on_another_backend(data, tmp_path, optimizer):
    fit(make(optimizer, iterations=3), data, checkpoint=tmp_path / "run")
    model = fit(make(optimizer, backend="numpy"), data, resume=tmp_path / "run")
    whole = fit(make(optimizer), data)
    np.testing.assert_allclose(model.item_factors, whole.item_factors, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("option", "value"), [("step_size", 0.01), ("optimizer", "sgd"), ("tail", 0.5)]
)
def test_another_run_is_refused(data, tmp_path, option, value):
    fit(make(iterations=2), data, checkpoint=tmp_path / "run")
    with pytest.raises(ValueError, match=f"cannot resume: .*{option}="):
        fit(make(**{option: value}), data, resume=tmp_path / "run")


def test_only_adam_has_moments(data, tmp_path):
    names = {"users.mean", "users.square", "items.mean", "items.square"}
    for optimizer, wanted in (("adam", names), ("sgd", set())):
        path = tmp_path / f"{optimizer}.safetensors"
        fit(make(optimizer), data, checkpoint=path)
        arrays, _ = taken_apart(path.read_bytes())
        assert arrays.keys() == {"users", "items", "weights"} | wanted


HOSTILE = {
    "negative squares": ("users.square", lambda moment: -moment, "'users.square' are negative"),
    "not finite": ("items.mean", lambda moment: moment * np.float32(np.nan), "not finite"),
    "another shape": ("items.square", lambda moment: moment[:, :3].copy(), r"\[20, 3\]"),
    "the wrong side": ("users.mean", lambda moment: moment[:20].copy(), r"\[20, 4\]"),
    "integers": ("users.mean", lambda moment: moment.astype(np.int32), "'users.mean' is int32"),
    "one without the other": ("items.mean", None, "'items.mean' is missing"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_moments_that_were_tampered_with(data, tmp_path, case):
    name, change, message = HOSTILE[case]
    path = tmp_path / "run.safetensors"
    fit(make(), data, checkpoint=path)
    arrays, header = taken_apart(path.read_bytes())
    if change is None:
        del arrays[name]
    else:
        arrays[name] = change(arrays[name])
    path.write_bytes(put_together(arrays, header))
    model = make(iterations=9)
    with pytest.raises(FileFormatError, match=message):
        fit(model, data, resume=path)
    assert model.user_factors is None


@pytest.mark.parametrize("sides", [("users",), ("items",), ("users", "items")])
def test_adam_needs_its_moments(data, tmp_path, sides):
    path = tmp_path / "run.safetensors"
    fit(make(), data, checkpoint=path)
    arrays, header = taken_apart(path.read_bytes())
    kept = {name: array for name, array in arrays.items() if name.split(".")[0] not in sides}
    kept |= {side: arrays[side] for side in sides}
    path.write_bytes(put_together(kept, header))
    model = make(iterations=9)
    with pytest.raises(FileFormatError, match=f"'{sides[0]}.mean' is missing"):
        fit(model, data, resume=path)
    assert model.user_factors is None


def test_huge_moments_are_harmless(data, tmp_path):
    path = tmp_path / "run.safetensors"
    fit(make(), data, checkpoint=path)
    arrays, header = taken_apart(path.read_bytes())
    arrays["users.mean"][:] = 3e38
    path.write_bytes(put_together(arrays, header))
    with pytest.warns(ConvergenceWarning, match="diverges at epoch 6"):
        model = fit(make(iterations=9), data, resume=path)
    assert len(model.history) == 5
    assert np.isfinite(model.item_factors).all()


@pytest.mark.parametrize("backend", ["cpu", "numpy"])
def test_a_diverging_step_size_leaves_the_last_good_epoch(data, tmp_path, backend):
    options = {"optimizer": "sgd", "step_size": 20.0, "backend": backend}
    model, path = make(iterations=50, **options), tmp_path / "run"
    with pytest.warns(
        ConvergenceWarning, match=r"lower step_size, e\.g\. step_size=0\.2"
    ) as caught:
        fit(model, data, checkpoint=path)
    assert caught[0].filename.endswith("runs.py")
    epochs = len(model.history)
    assert 0 < epochs < 50
    assert_same(model, fit(make(iterations=epochs, **options), data))
    assert np.isfinite(model.user_factors).all()
    ids, scores = model.recommend(0, data[0])
    assert np.isfinite(scores[ids >= 0]).all()
    np.testing.assert_array_equal(model.fold_in(data), model.user_factors)
    with pytest.warns(ConvergenceWarning, match=f"diverges at epoch {epochs + 1}"):
        assert_same(fit(make(iterations=50, **options), data, resume=path), model)


@pytest.mark.parametrize("before", ["unfitted", "fitted"])
def test_a_first_epoch_that_diverges_leaves_no_trace(data, before):
    model = make("sgd")
    if before == "fitted":
        fit(model, data)
    model.step_size = 1e6
    state = held(model)
    with pytest.raises(SolveError, match=r"diverges at epoch 1: .*step_size=0\.2"):
        fit(model, data)
    assert held(model) == state


def test_ctrl_c_keeps_the_last_full_epoch(data):
    def callback(epoch, *rest):
        if epoch == 1:
            raise KeyboardInterrupt

    model = make()
    with pytest.raises(KeyboardInterrupt):
        fit(model, data, callback=callback)
    assert_same(model, fit(make(iterations=2), data))


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_changes_no_bit(data, threads):
    assert_same(fit(make(num_threads=threads), data), fit(make(), data))


def test_items_are_folded_in_with_everybody_that_counted(data):
    """One epoch's weights leave most users out, and with them the items that only they have."""
    model = fit(make(iterations=400, step_size=0.02), data)
    assert ((model.user_weights > 0) & (model.user_weights < 1)).any()
    assert np.mean(model.user_weights) == pytest.approx(0.3, abs=0.02)
    again = model.recalculate_item(np.arange(20), data.T.tocsr())
    lengths = np.linalg.norm(again, axis=1) * np.linalg.norm(model.item_factors, axis=1)
    assert (np.sum(again * model.item_factors, axis=1) > 0.9 * lengths).all()
    assert lengths.min() > 0
