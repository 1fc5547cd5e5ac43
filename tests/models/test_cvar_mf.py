"""CVaR-MF: divergence, and what items are folded in with."""

import numpy as np
import pytest

from safecf import ConvergenceWarning, CVaRMF, SolveError
from tests.helpers import refused
from tests.models.runs import OPTIONS, assert_same, fit
from tests.models.saved import put_together, taken_apart

STEPS = {"sgd": 0.4, "adam": 0.05}


def make(optimizer="adam", **options):
    defaults = {"random_state": 1, "optimizer": optimizer, "step_size": STEPS[optimizer]}
    return CVaRMF(**(defaults | OPTIONS | options))


def test_huge_moments_of_a_file_are_harmless(data, tmp_path):
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
    np.testing.assert_array_equal(model.fold_in(data), model.user_factors)
    with pytest.warns(ConvergenceWarning, match=f"diverges at epoch {epochs + 1}"):
        assert_same(fit(make(iterations=50, **options), data, resume=path), model)


@pytest.mark.parametrize("before", ["unfitted", "fitted"])
def test_a_first_epoch_that_diverges_leaves_no_trace(data, before):
    model = make("sgd")
    if before == "fitted":
        fit(model, data)
    model.step_size = 1e6
    with refused(SolveError, "diverges at epoch 1: ", "step_size=0.2", unchanged=model):
        fit(model, data)


@pytest.mark.parametrize("optimizer", STEPS)
def test_backends_agree(data, optimizer):
    found, expected = (
        fit(make(optimizer, backend=backend), data).item_factors for backend in ("numpy", "cpu")
    )
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_items_are_folded_in_with_everybody_that_counted(data):
    """One epoch's weights leave most users out, and with them the items that only they have."""
    model = fit(make(iterations=400, step_size=0.02), data)
    assert ((model.user_weights > 0) & (model.user_weights < 1)).any()
    assert np.mean(model.user_weights) == pytest.approx(0.3, abs=0.02)
    again = model.recalculate_item(np.arange(20), data.T.tocsr())
    lengths = np.linalg.norm(again, axis=1) * np.linalg.norm(model.item_factors, axis=1)
    assert (np.sum(again * model.item_factors, axis=1) > 0.9 * lengths).all()
    assert lengths.min() > 0
