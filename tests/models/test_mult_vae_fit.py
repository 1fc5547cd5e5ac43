"""Mult-VAE: early stopping, interruptions, divergence and memory of `fit`."""

import os
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import safecf
from safecf import ConvergenceWarning, ModelFitError, MultVAE, ParameterWarning
from tests.helpers import refused, state
from tests.models.vaes import assert_same, fit, make

torch = pytest.importorskip("torch", reason="MultVAE trains with torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from safecf.models.vae.trainer import Trainer  # noqa: E402


@pytest.fixture
def split(data):
    """Train on the first users, hold out the others."""
    target = data[20:].copy()
    for row in range(10):
        target.data[target.indptr[row] + 2 : target.indptr[row + 1]] = 0
    target.eliminate_zeros()
    history = data[20:] - target
    history.eliminate_zeros()
    heldout = SimpleNamespace(history=sp.csr_matrix(history), target=target)
    return SimpleNamespace(train=data[:20], validation=heldout, test=heldout)


@pytest.mark.parametrize(("metric", "level"), [("ndcg@5", 1.0), ("recall@3", 0.4), ("auc", 0.4)])
def test_the_best_epoch_is_kept(split, metric, level):
    states = []
    model = make(iterations=12)

    def callback(*call):
        scored = safecf.evaluate(model, split, on="validation", k=(3, 5))
        states.append((scored.tail(metric, level), model.item_factors, model.user_factors))

    how = {"validation": split.validation, "metric": metric, "level": level, "patience": 12}
    fit(model, split.train, callback=callback, **how)
    scores = [record.score for record in model.history]
    assert scores == pytest.approx([score for score, *_ in states])
    best = int(np.argmax(scores))  # the first of equals
    np.testing.assert_array_equal(model.item_factors, states[best][1])
    np.testing.assert_array_equal(model.user_factors, states[best][2])
    np.testing.assert_array_equal(model.fold_in(split.train), model.user_factors)
    assert model.history[0].seconds.keys() == {"training", "validation"}


def test_patience_ends_training(split):
    model = fit(make(iterations=300), split.train, validation=split.validation, patience=3)
    scores = [record.score for record in model.history]
    assert len(scores) < 300
    assert len(scores) - 1 - int(np.argmax(scores)) == 3


def test_validation_changes_nothing_in_training(split):
    seen = []
    fit(make(), split.train, callback=lambda *call: seen.append(call[2]))
    model = fit(make(), split.train, validation=split.validation, patience=9)
    assert [record.objective for record in model.history] == seen


BAD = [
    ({"validation": 3}, "validation is of type int"),
    ({"metric": "recall"}, "metric='recall' has no cutoff"),
    ({"metric": "ndcg@0"}, "metric='ndcg@0'"),
    ({"metric": "ndgc@10"}, "did you mean 'ndcg'"),
    ({"metric": 3}, "metric=3"),
    ({"level": 0}, "0"),
    ({"patience": 0}, "patience=0"),
    ({"patience": 1.5}, "patience=1.5"),
]


@pytest.mark.parametrize(("how", "message"), BAD)
def test_bad_ways_to_validate_are_refused(split, how, message):
    model = make()
    with refused((TypeError, ValueError), message, unchanged=model):
        fit(model, split.train, **({"validation": split.validation} | how))


@pytest.mark.parametrize("how", [{"metric": "ndcg@10"}, {"level": 0.5}, {"patience": 1}])
def test_how_to_validate_means_nothing_without_held_out_users(split, how):
    model, name = make(), next(iter(how))
    words = f"{name}=", "no effect without held-out users; pass vali"
    with refused(ValueError, *words, unchanged=model):
        fit(model, split.train, **how)


def test_validation_data_are_converted_once(split):
    whole, model = split.validation, make()
    other = SimpleNamespace(history=whole.history.tocoo(), target=whole.target.tocoo())
    with pytest.warns(ParameterWarning, match="tocsr") as caught:
        fit(model, split.train, validation=other)
    first_words = [str(warning.message).split()[0] for warning in caught]
    assert first_words == ["validation.history", "validation.target"]
    assert model.history == fit(make(), split.train, validation=whole).history


def test_validation_sets_that_do_not_fit_are_refused(split):
    whole = split.validation
    for part, message in (
        ({"history": whole.history[:, :9]}, "validation.history has 9 columns"),
        ({"target": whole.target[:3]}, "validation.history has 10 rows"),
        ({"target": sp.csr_matrix((10, 20))}, "validation.target has no interactions"),
    ):
        with pytest.raises(ValueError, match=message):
            fit(make(), split.train, validation=SimpleNamespace(**(vars(whole) | part)))


@pytest.fixture
def interrupted(monkeypatch):
    """Return a function that makes the training raise an error in the middle of an epoch."""

    def build(epoch, error):
        original = Trainer._step

        def step(self, rows, beta):
            if self.epoch == epoch - 1 and self.optimizer.steps % 5 == 2:
                raise error
            return original(self, rows, beta)

        monkeypatch.setattr(Trainer, "_step", step)

    return build


def test_interrupted_in_the_fourth_epoch(data, interrupted):
    states = []
    whole = make()
    fit(whole, data, callback=lambda *call: states.append((whole.user_factors, whole.item_factors)))
    interrupted(4, KeyboardInterrupt)
    model = make()
    with pytest.raises(KeyboardInterrupt):
        fit(model, data)
    np.testing.assert_array_equal(model.user_factors, states[2][0])
    np.testing.assert_array_equal(model.item_factors, states[2][1])
    np.testing.assert_array_equal(model.fold_in(data), model.user_factors)
    assert model.history == whole.history[:3]


@pytest.mark.parametrize(
    ("epoch", "error"), [(1, KeyboardInterrupt), (1, MemoryError), (4, MemoryError)]
)
def test_other_errors_leave_no_trace(data, interrupted, epoch, error):
    model = fit(make(), data[:9])
    before = state(model)
    interrupted(epoch, error)
    with pytest.raises(error):
        fit(model, data)
    assert state(model) == before


def test_callbacks(data):
    calls = []
    model = fit(make(), data, callback=lambda *call: calls.append(call))
    assert [epoch for epoch, _, _ in calls] == [0, 1, 2, 3, 4]
    assert [objective for *_, objective in calls] == [record.objective for record in model.history]
    short = fit(make(), data, callback=lambda epoch, *rest: epoch == 1)
    assert short.history == model.history[:2]


def test_divergence_is_told(data):
    model = fit(make(), data)
    model.step_size = 1e6
    words = "diverges at epoch 1", "; lower step_size, ", "=0.004"
    with refused(ModelFitError, *words, unchanged=model):
        fit(model, data)


@pytest.fixture
def likes():
    """Return data on which a step size of 10 goes well for a few epochs."""
    rng = np.random.default_rng(0)
    found = sp.random(300, 120, 0.1, format="csr", dtype=np.float32, random_state=rng)
    found.data[:] = 1
    return found


def make_diverging():
    options = {"step_size": 10, "random_state": 0, "device": "cpu", "num_threads": 1}
    return MultVAE(8, iterations=30, **options)


@pytest.mark.parametrize("validated", [False, True])
def test_a_late_divergence_leaves_the_last_or_best_epoch(likes, validated):
    states, model = [], make_diverging()
    held_out = SimpleNamespace(history=likes[:50], target=likes[50:100])
    with pytest.warns(
        ConvergenceWarning, match=r"lower step_size, e\.g\. step_size=0\.004"
    ) as caught:
        model.fit(
            likes,
            show_progress=False,
            validation=held_out if validated else None,
            callback=lambda *call: states.append((model.user_factors, model.item_factors)),
        )
    epochs = len(model.history)
    assert 0 < epochs < 30
    best = int(np.argmax([record.score for record in model.history])) if validated else -1
    text = str(caught[0].message)
    assert f"diverges at epoch {epochs + 1}" in text
    assert f"The model is that of epoch {best + 1 if validated else epochs}" in text
    assert caught[0].filename == __file__
    assert np.isfinite(model.user_factors).all()
    np.testing.assert_array_equal(model.user_factors, states[best][0])
    np.testing.assert_array_equal(model.item_factors, states[best][1])
    np.testing.assert_array_equal(model.fold_in(likes), model.user_factors)


def test_weights_that_scores_could_not_hold_diverge(data, monkeypatch):
    """One step per epoch: the first objective is fine, and so are the weights by themselves."""
    monkeypatch.setattr("safecf.models.vae.trainer.LARGEST", 1e5)
    with pytest.raises(ModelFitError, match="diverges at epoch 1"):
        fit(make(step_size=1e6, batch_size=30, iterations=1), data)


def test_the_bar_shows_the_score(split, capfd):
    make().fit(split.train, validation=split.validation, metric="recall@5", patience=9)
    out, err = capfd.readouterr()
    assert out == ""
    for part in ("MultVAE", "5/5", "objective", "recall@5 0."):
        assert part in err
    fit(make(), split.train)
    assert capfd.readouterr() == ("", "")


class Largest(TorchDispatchMode):
    """Note the largest tensor that any operation makes."""

    size = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for part in result if isinstance(result, tuple | list) else (result,):
            if isinstance(part, torch.Tensor):
                self.size = max(self.size, part.numel())
        return result


def test_no_more_than_a_batch_is_ever_dense(monkeypatch):
    rng = np.random.default_rng(0)
    wide = sp.random(300, 2000, 0.002, format="csr", dtype=np.float32, random_state=rng)
    monkeypatch.setattr(sp.csr_matrix, "toarray", None)
    monkeypatch.setattr(sp.csr_matrix, "todense", None)
    with Largest() as largest:
        model = fit(make(batch_size=10, iterations=1), wide)
    assert largest.size == 10 * 2000
    assert model.user_factors.shape == (300, 4)


def test_one_factor_is_too_few(data):
    with pytest.raises(ValueError, match="factors=1 leaves no latent dimension"):
        fit(make(factors=1), data)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("device", ["cuda", "cuda:3"])
def test_a_device_that_is_not_there(data, device):
    with pytest.raises(ValueError, match=rf"device='{device}': .*try device='cpu'"):
        fit(make(device=device), data)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_gpu_learns_the_same(data):
    one, other = fit(make(device="cuda"), data), fit(make(device="cuda"), data)
    assert_same(one, other)
    cpu = fit(make(device="cpu"), data)
    assert one.history[0].objective == pytest.approx(cpu.history[0].objective, rel=0.1)


def test_the_largest_seed(data):
    seed = 2**63 - 1
    assert_same(fit(make(random_state=seed), data), fit(make(random_state=seed), data))


def test_torch_gets_no_more_threads_than_are_of_use(data, monkeypatch):
    before, asked = torch.get_num_threads(), []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    fit(make(iterations=1, num_threads=2**31 - 1), data)
    most, after = asked
    assert 1 <= most <= max(16, os.cpu_count())
    assert after == before
