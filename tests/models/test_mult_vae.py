"""Mult-VAE: loss, gradients and steps against numpy."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from safecf import Interactions
from tests.models.vaes import assert_same, fit, make, trainer_of

torch = pytest.importorskip("torch", reason="MultVAE trains with torch")


from safecf.models.vae.trainer import Adam, Network, Settings, losses  # noqa: E402


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


def test_adam():
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(4, 3))
    weight = torch.zeros(3, dtype=torch.float64)
    adam = Adam((weight,), 0.1)
    mean = square = expected = np.zeros(3)
    for step, gradient in enumerate(gradients, start=1):
        adam.step((torch.tensor(gradient),))
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        unbiased = mean / (1 - 0.9**step), square / (1 - 0.999**step)
        expected = expected - 0.1 * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)
        np.testing.assert_allclose(weight.numpy(), expected, rtol=1e-9)


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


def test_batches_hold_the_histories(data):
    trainer = trainer_of(data)
    rows = np.array([5, 0, 29])
    batch = trainer.batch(rows)
    dense = sp.csr_matrix((batch.confidences, (batch.rows, batch.items)), (3, 20))
    np.testing.assert_array_equal(dense.toarray(), data[rows].toarray())
    assert batch.starts.tolist() == np.cumsum([0, *np.diff(data[rows].indptr)])[:-1].tolist()
    squares = np.bincount(batch.rows, batch.inputs.numpy().astype(np.float64) ** 2)
    np.testing.assert_allclose(squares, 1, rtol=1e-6)


def test_dropout_hides_a_share_and_keeps_the_mean(data):
    trainer = trainer_of(data, dropout=0.75)
    batch = trainer.batch(np.arange(30))
    draws = np.array([trainer._dropped(batch).inputs.numpy() for _ in range(300)])
    assert np.mean(draws == 0) == pytest.approx(0.75, abs=0.01)
    np.testing.assert_allclose(draws.mean(axis=0), batch.inputs, rtol=0.5)
    np.testing.assert_allclose(draws.mean(), batch.inputs.mean(), rtol=0.02)
    kept = draws[draws != 0] / np.broadcast_to(batch.inputs.numpy(), draws.shape)[draws != 0]
    np.testing.assert_allclose(kept, 4, rtol=1e-6)
    undisturbed = trainer_of(data, dropout=0)
    assert undisturbed._dropped(batch) is batch


@pytest.mark.parametrize(("share", "expected"), [(0, [1, 1]), (0.5, [0, 0.5]), (1, [0, 0.25])])
def test_the_weight_of_the_kl_term_rises(data, share, expected):
    """5 steps per epoch, 20 in all: the first two epochs end with steps 4 and 9."""
    model = fit(make(beta=0.4, anneal_share=share, iterations=4), data)
    last_steps = [record.beta / 0.4 for record in model.history]
    ends = [4, 9, 14, 19]
    wanted = [1.0 if share == 0 else min(1.0, step / (20 * share)) for step in ends]
    assert last_steps == pytest.approx(wanted)
    settings = Settings(4, 0.1, 7, 1.0, 20 * share, 0.5, "cpu", 0)
    assert [settings.beta_at(0), settings.beta_at(5)] == pytest.approx(expected)
    rising = [settings.beta_at(step) for step in range(30)]
    assert rising == sorted(rising)


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


def test_the_first_epoch_starts_near_the_uniform_distribution(data):
    """log |V| for each unit of confidence, since the first logits are small."""
    trainer = trainer_of(data, step_size=1e-9)
    mass = data.sum() / data.shape[0]
    assert trainer.run_epoch().reconstruction == pytest.approx(mass * math.log(20), rel=0.05)


@pytest.mark.parametrize("factors", [2, 5, 150])
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
    whole = Interactions.from_csr(data)
    for rows in ([3], [3, 9, 3], range(5, 28)):
        part = Interactions.from_csr(sp.csr_matrix(data[list(rows)])).users
        np.testing.assert_array_equal(encoder(part), encoder(whole.users)[list(rows)])


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
