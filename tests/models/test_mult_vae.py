"""Mult-VAE: loss and gradients against numpy; early stopping, interruptions and divergence."""

import os
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import safecf
from safecf import ConvergenceWarning, Interactions, ModelFitError, MultVAE, ParameterWarning
from tests.helpers import refused, state

torch = pytest.importorskip("torch", reason="MultVAE trains with torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from safecf.models.vae.trainer import Network, Trainer, losses  # noqa: E402

OPTIONS = {"factors": 4, "iterations": 5, "batch_size": 7, "step_size": 0.02, "device": "cpu"}
OPTIONS |= {"num_threads": 1}  # more only wait for each other on so little data


def make(**options):
    return MultVAE(**({"random_state": 1} | OPTIONS | options))


def fit(model, data, **rest):
    return model.fit(data, show_progress=False, **rest)


def trainer_of(data, **options):
    model = make(**options)
    return model._make_trainer(Interactions.from_csr(data).users, 1)


def assert_same(one, other):
    np.testing.assert_array_equal(one.user_factors, other.user_factors)
    np.testing.assert_array_equal(one.item_factors, other.item_factors)
    for mine, theirs in zip(one.encoder, other.encoder, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def numpy_losses(weights, confidences, inputs, noise):
    """Return the reconstruction error and the KL term by dense formulas."""
    hidden, hidden_bias, latent, latent_bias, items = weights
    mean, log_variance = np.hsplit(np.tanh(inputs @ hidden + hidden_bias) @ latent + latent_bias, 2)
    users = np.column_stack([mean + np.exp(log_variance / 2) * noise, np.ones(len(mean))])
    exponentials = np.exp(users @ items.T)
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
    reconstruction = -np.sum(confidences * np.log(probabilities), axis=1)
    variance = np.exp(log_variance)
    kl = np.sum((variance + mean**2) / 2 - 0.5 - np.log(variance) / 2, axis=1)
    return reconstruction, kl


@pytest.fixture
def problem(data):
    """Return a batch, its dense confidences and inputs, weights and noise, all in float64."""
    rng = np.random.default_rng(5)
    rows = np.array([3, 11, 7, 3])
    trainer = trainer_of(data)
    batch = trainer.batch(rows)
    batch = batch._replace(confidences=batch.confidences.double(), inputs=batch.inputs.double())
    confidences = data[rows].toarray().astype(np.float64)
    inputs = confidences / np.linalg.norm(confidences, axis=1, keepdims=True)
    weights = [rng.normal(size=weight.shape) * 0.5 for weight in trainer.network]
    return batch, confidences, inputs, weights, rng.normal(size=(4, 3))


def test_losses_are_those_of_the_dense_formulas(problem):
    batch, confidences, inputs, weights, noise = problem
    found = losses(Network(*map(torch.tensor, weights)), batch, torch.tensor(noise))
    expected = numpy_losses(weights, confidences, inputs, noise)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-6)


def test_gradients_are_those_of_the_dense_formulas(problem):
    batch, confidences, inputs, weights, noise = problem
    network = Network(*(torch.tensor(weight, requires_grad=True) for weight in weights))
    reconstruction, kl = losses(network, batch, torch.tensor(noise))
    gradients = torch.autograd.grad((reconstruction + 0.3 * kl).sum(), list(network))

    def objective(changed):
        one, two = numpy_losses(changed, confidences, inputs, noise)
        return (one + 0.3 * two).sum()

    rng = np.random.default_rng(2)
    for at, gradient in enumerate(gradients):
        direction = rng.normal(size=gradient.shape)
        up, down = list(weights), list(weights)
        up[at], down[at] = weights[at] + 1e-6 * direction, weights[at] - 1e-6 * direction
        slope = (objective(up) - objective(down)) / 2e-6
        assert np.sum(gradient.numpy() * direction) == pytest.approx(slope, rel=1e-5, abs=1e-7)


def test_an_epoch_visits_everybody_once(data, monkeypatch):
    data = sp.vstack([data[:4], sp.csr_matrix((1, 20)), data[5:]]).tocsr()
    trainer, seen = trainer_of(data), []
    original = trainer.batch
    monkeypatch.setattr(trainer, "batch", lambda rows: seen.append(rows) or original(rows))
    trainer.run_epoch()
    assert [rows.size for rows in seen] == [7, 7, 7, 7, 1]
    visited = np.concatenate(seen)
    assert sorted(visited) == [user for user in range(30) if user != 4]
    trainer.run_epoch()
    assert not np.array_equal(np.concatenate(seen[5:]), visited)


def test_dropout_hides_a_share_and_keeps_the_mean(data):
    trainer = trainer_of(data, dropout=0.75)
    batch = trainer.batch(np.arange(30))
    draws = np.array([trainer._dropped(batch).inputs.numpy() for _ in range(300)])
    assert np.mean(draws == 0) == pytest.approx(0.75, abs=0.01)
    kept = draws[draws != 0] / np.broadcast_to(batch.inputs.numpy(), draws.shape)[draws != 0]
    np.testing.assert_allclose(kept, 4, rtol=1e-6)
    undisturbed = trainer_of(data, dropout=0)
    assert undisturbed._dropped(batch) is batch


@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_the_weight_of_the_kl_term_rises(data, share):
    """5 steps per epoch, 20 in all, of which every epoch records the last one."""
    model = fit(make(beta=0.4, anneal_share=share, iterations=4), data)
    wanted = [0.4 * min(1, step / (20 * share)) if share else 0.4 for step in (4, 9, 14, 19)]
    assert [record.beta for record in model.history] == pytest.approx(wanted)


def test_history_adds_up(data):
    model = fit(make(beta=0.4, anneal_share=0), data)
    assert [record.epoch for record in model.history] == [1, 2, 3, 4, 5]
    for record in model.history:
        total = record.reconstruction + record.beta * record.kl
        assert record.objective == pytest.approx(total, rel=1e-6)
        assert record.score is None
        assert record.seconds.keys() == {"training"}
    strict = fit(make(beta=50, anneal_share=0), data)
    assert strict.history[-1].kl < model.history[-1].kl


@pytest.mark.parametrize("factors", [2, 150])
def test_the_encoder_of_numpy_is_that_of_torch(data, factors):
    trainer = trainer_of(data, factors=factors)
    trainer.run_epoch()
    encoder, items = trainer.network.export()
    batch = trainer.batch(np.arange(30))
    hidden, hidden_bias, latent, latent_bias, _ = trainer.network
    dense = torch.zeros(30, 20)
    dense[batch.rows, batch.items] = batch.inputs
    both = torch.tanh(dense @ hidden + hidden_bias) @ latent + latent_bias
    users = encoder(trainer.users)
    np.testing.assert_allclose(users[:, :-1], both[:, : factors - 1].detach(), atol=1e-5)
    assert (users[:, -1] == 1).all()
    np.testing.assert_array_equal(items, trainer.network.items.detach())


def test_the_callers_torch_is_left_alone(data):
    before = torch.get_num_threads(), torch.random.get_rng_state()
    expected = fit(make(num_threads=before[0]), data)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            model = fit(make(num_threads=before[0]), data)
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert_same(model, expected)
    fit(make(num_threads=before[0] + 1), data)
    assert torch.get_num_threads() == before[0]
    assert torch.equal(torch.random.get_rng_state(), before[1])


# Early stopping


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
    *(({"validation": None, name: value}, f"{name}=", "no effect without held-out users; pass vali")
      for name, value in (("metric", "ndcg@10"), ("level", 0.5), ("patience", 1))),
    ({"history": sp.csr_matrix((10, 9))}, "validation.history has 9 columns"),
    ({"target": sp.csr_matrix(np.ones((3, 20)))}, "validation.history has 10 rows"),
    ({"target": sp.csr_matrix((10, 20))}, "validation.target has no interactions"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(BAD)))
def test_bad_ways_to_validate_are_refused(split, case):
    how, *words = BAD[case]
    parts = {name: how.get(name, part) for name, part in vars(split.validation).items()}
    given = {name: value for name, value in how.items() if name not in parts}
    model = make()
    with refused((TypeError, ValueError), *words, unchanged=model):
        fit(model, split.train, **({"validation": SimpleNamespace(**parts)} | given))


def test_validation_data_are_converted_once(split):
    whole, model = split.validation, make()
    other = SimpleNamespace(history=whole.history.tocoo(), target=whole.target.tocoo())
    with pytest.warns(ParameterWarning, match="tocsr") as caught:
        fit(model, split.train, validation=other)
    first_words = [str(warning.message).split()[0] for warning in caught]
    assert first_words == ["validation.history", "validation.target"]
    assert model.history == fit(make(), split.train, validation=whole).history


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
    model, whole = make(), fit(make(iterations=3, anneal_share=0), data)
    model.anneal_share = 0  # else a share of all epochs
    interrupted(4, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        fit(model, data)
    assert_same(model, whole)
    np.testing.assert_array_equal(model.fold_in(data), model.user_factors)
    assert model.history == whole.history


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


@pytest.mark.parametrize("largest", [None, 1e5])
def test_a_first_epoch_that_diverges_leaves_no_trace(data, monkeypatch, largest):
    """By its objective; or by its one step, to weights that scores could not hold."""
    model = fit(make(), data)
    model.step_size = 1e6
    if largest is not None:
        monkeypatch.setattr("safecf.models.vae.trainer.LARGEST", largest)
        model.batch_size, model.iterations = 30, 1
    words = "diverges at epoch 1", "; lower step_size, ", "=0.004"
    with refused(ModelFitError, *words, unchanged=model):
        fit(model, data)


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
    with refused(ValueError, "factors=1 leaves no latent dimension"):
        fit(make(factors=1), data)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("device", ["cuda", "cuda:3"])
def test_a_device_that_is_not_there(data, device):
    with refused(ValueError, f"device='{device}': ", "try device='cpu'"):
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


def test_torch_gets_the_threads_that_are_of_use(data, monkeypatch):
    before, asked = torch.get_num_threads(), []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    for given in (1, before + 1, 2**31 - 1):
        fit(make(iterations=1, num_threads=given), data)
    one, back, more, again, most, last = asked
    assert (one, more) == (1, before + 1)
    assert back == again == last == before
    assert before < most <= max(16, os.cpu_count())
