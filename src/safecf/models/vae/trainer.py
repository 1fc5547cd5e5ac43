"""Training a Mult-VAE with torch; nothing else imports it, and so `import safecf` does not."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from safecf.backends import thread_count
from safecf.backends.torch.devices import choose_device
from safecf.data.matrices.csr import Csr
from safecf.errors import DivergenceError
from safecf.free_memory import check_free
from safecf.models.vae.encoder import Encoder, Floats, unit_weights
from safecf.models.vae.epochs import VAEEpoch

# Arrays of the size of the weights and of a batch's scores in a step: gradients, moments, results
# in between, and what is published.
COPIES_OF_WEIGHTS = 9
COPIES_OF_SCORES = 6
# Of a weight. Factors are sums of weights and scores sums of their products with weights, all of
# which float32 can hold then.
LARGEST = 1e15


class Network(NamedTuple):
    """|V| -> d -> d - 1 -> |V|: the weights; both outputs of the encoder stand side by side.

    The last column of `items` is the bias of the decoder: its logits are x_u . y_i, x_u = (z_u, 1).
    """

    hidden: Tensor
    hidden_bias: Tensor
    latent: Tensor
    latent_bias: Tensor
    items: Tensor

    @classmethod
    def start(cls, num_items: int, factors: int, generator: torch.Generator) -> "Network":
        """W ~ N(0, 2 / (inputs + outputs)) for every layer (Glorot), biases zero."""

        def layer(inputs: int, outputs: int) -> Tensor:
            drawn = torch.randn(inputs, outputs, generator=generator, dtype=torch.float32)
            return drawn.mul_(math.sqrt(2 / (inputs + outputs)))

        latent = factors - 1
        items = torch.zeros(num_items, factors, dtype=torch.float32)
        items[:, :latent] = layer(latent, num_items).T
        return cls(
            hidden=layer(num_items, factors),
            hidden_bias=torch.zeros(factors, dtype=torch.float32),
            latent=torch.hstack([layer(factors, latent), layer(factors, latent)]),
            latent_bias=torch.zeros(2 * latent, dtype=torch.float32),
            items=items,
        )

    def export(self) -> tuple[Encoder, Floats]:
        """Return copies of what fold-in and ranking need."""
        arrays = [weight.detach().cpu().numpy() for weight in self]
        hidden, hidden_bias, latent, latent_bias, items = arrays
        size = items.shape[1] - 1
        encoder = Encoder(
            hidden.copy(), hidden_bias.copy(), latent[:, :size].copy(), latent_bias[:size].copy()
        )
        return encoder, items.copy()


class Batch(NamedTuple):
    """Histories of a few users; the n-th interaction is `items[n]`, of user `rows[n]`.

    The histories stand one after the other, beginning at `starts`; `inputs` are c_ui / |c_u|.
    """

    starts: Tensor
    rows: Tensor
    items: Tensor
    confidences: Tensor
    inputs: Tensor


def losses(network: Network, batch: Batch, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Return -sum_i c_ui log softmax_i(x_u . y_i) and KL(N(mean_u, var_u) | N(0, I)), per user.

        a_u = tanh(W1' h_u + b1) ,   (mean_u, log var_u) = W2' a_u + b2
        x_u = (z_u, 1) ,   z_u = mean_u + sqrt(var_u) noise_u

    with the inputs h_u.
    """
    hidden, hidden_bias, latent, latent_bias, items = network
    summed = functional.embedding_bag(
        batch.items, hidden, batch.starts, mode="sum", per_sample_weights=batch.inputs
    )
    mean, log_variance = (torch.tanh(summed + hidden_bias) @ latent + latent_bias).chunk(2, dim=1)
    sampled = mean + torch.exp(log_variance / 2) * noise
    logits = sampled @ items[:, :-1].T + items[:, -1]
    observed = torch.zeros_like(logits)
    observed[batch.rows, batch.items] = batch.confidences
    reconstruction = -(observed * functional.log_softmax(logits, dim=1)).sum(dim=1)
    kl = (mean**2 + torch.exp(log_variance) - log_variance - 1).sum(dim=1) / 2
    return reconstruction, kl


class Adam:
    """w <- w - step m / (sqrt(v) + eps), with m and v the running means of g and g^2.

    torch.optim does the same, but needs seconds to import what is of no use here.
    Reference: Kingma and Ba, Adam: A Method for Stochastic Optimization, ICLR 2015.
    """

    DECAY = 0.9, 0.999
    EPSILON = 1e-8

    def __init__(self, weights: Network, step_size: float) -> None:
        self.weights = weights
        self.step_size = step_size
        self.moments = [(torch.zeros_like(weight), torch.zeros_like(weight)) for weight in weights]
        self.steps = 0

    def step(self, gradients: tuple[Tensor, ...]) -> None:
        """Change the weights in place."""
        self.steps += 1
        first, second = self.DECAY
        # both means start at zero, and are scaled up until that is forgotten
        scale = self.step_size / (1 - first**self.steps)
        correction = (1 - second**self.steps) ** 0.5
        with torch.no_grad():
            for weight, (mean, square), gradient in zip(
                self.weights, self.moments, gradients, strict=True
            ):
                mean.lerp_(gradient, 1 - first)
                square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
                weight.addcdiv_(
                    mean, square.sqrt().div_(correction).add_(self.EPSILON), value=-scale
                )


@dataclass(frozen=True)
class Settings:
    """How to train; beta rises from 0 over the first `anneal_steps` steps."""

    factors: int
    step_size: float
    batch_size: int
    beta: float
    anneal_steps: float
    dropout: float
    device: str
    num_threads: int

    def beta_at(self, step: int) -> float:
        """beta_t = beta min(1, t / anneal_steps), t counting the steps taken before."""
        return self.beta * min(1.0, step / self.anneal_steps) if self.anneal_steps else self.beta


class Trainer:
    """Runs epochs; all randomness comes from the seed.

    Only the number of threads of torch is touched, and only while an epoch runs.
    """

    def __init__(self, users: Csr, settings: Settings, seed: int) -> None:
        self.users, self.settings = users, settings
        self.device = choose_device(settings.device)
        _check_memory(users, settings)
        self.active = np.flatnonzero(np.diff(users.indptr))
        self.inputs = unit_weights(users)
        self.rng = np.random.default_rng(seed)
        start = torch.Generator().manual_seed(int(self.rng.integers(2**63)))
        self.noise = torch.Generator(self.device).manual_seed(int(self.rng.integers(2**63)))
        fresh = Network.start(users.num_columns, settings.factors, start)
        self.network = Network(*(weight.to(self.device).requires_grad_() for weight in fresh))
        self.optimizer = Adam(self.network, settings.step_size)
        self.epoch = 0

    def run_epoch(self) -> VAEEpoch:
        """Visit every user once, in random order; raise if the epoch diverges."""
        begin = time.perf_counter()
        order, size, beta = self.rng.permutation(self.active), self.settings.batch_size, 0.0
        total = torch.zeros(3, dtype=torch.float64, device=self.device)
        with _threads(self.settings.num_threads), torch.enable_grad():
            for start in range(0, order.size, size):
                rows = order[start : start + size]
                beta = self.settings.beta_at(self.optimizer.steps)
                sums = self._step(rows, beta)
                total += sums.to(torch.float64)
        self.epoch += 1
        objective, reconstruction, kl = (total / self.active.size).tolist()
        if not (np.isfinite([objective, reconstruction, kl]).all() and self._is_usable()):
            raise DivergenceError(
                f"training diverges at epoch {self.epoch}, where the objective is {objective:g}; "
                f"lower step_size, e.g. step_size={min(self.settings.step_size / 2, 4e-3):g}, or "
                "beta, and look for huge weights in the data"
            )
        seconds = {"training": time.perf_counter() - begin}
        return VAEEpoch(self.epoch, objective, reconstruction, kl, beta, seconds=seconds)

    def _step(self, rows: NDArray[np.int64], beta: float) -> Tensor:
        """Take one step, and return the sums of objective, reconstruction and KL over the batch."""
        size = self.settings.factors - 1
        noise = torch.randn(
            rows.size, size, generator=self.noise, device=self.device, dtype=torch.float32
        )
        reconstruction, kl = losses(self.network, self._dropped(self.batch(rows)), noise)
        sums = torch.stack([(reconstruction + beta * kl).sum(), reconstruction.sum(), kl.sum()])
        gradients = torch.autograd.grad(sums[0] / rows.size, list(self.network))
        self.optimizer.step(gradients)
        return sums.detach()

    def _dropped(self, batch: Batch) -> Batch:
        """Set inputs to zero with the probability `dropout`, and scale the others up."""
        if not self.settings.dropout:
            return batch
        keep = 1 - self.settings.dropout
        drawn = torch.rand(
            batch.inputs.shape, generator=self.noise, device=self.device, dtype=torch.float32
        )
        return batch._replace(inputs=batch.inputs * (drawn < keep) / keep)

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        """Gather the histories of a few users."""
        indptr, indices, weights = self.users.indptr, self.users.indices, self.users.weights
        counts = indptr[rows + 1] - indptr[rows]
        starts = np.cumsum(counts) - counts
        places = np.arange(counts.sum()) + np.repeat(indptr[rows] - starts, counts)
        confidences = np.ones(places.size, dtype=np.float32) if weights is None else weights[places]
        parts = (
            starts,
            np.repeat(np.arange(rows.size), counts),
            indices[places].astype(np.int64),
            confidences,
            self.inputs[places],
        )
        return Batch(*(torch.from_numpy(part).to(self.device) for part in parts))

    def _is_usable(self) -> bool:
        return all(bool((weight.abs() <= LARGEST).all()) for weight in self.network)


def _check_memory(users: Csr, settings: Settings) -> None:
    """Raise if the weights with gradients, moments and copies, and a batch, do not fit."""
    items, factors = users.num_columns, settings.factors
    weights = 2 * items * factors + 2 * factors**2
    scores = min(settings.batch_size, users.num_rows) * items
    check_free(
        4 * (COPIES_OF_WEIGHTS * weights + COPIES_OF_SCORES * scores + users.num_rows * factors),
        f"training {factors} factors of {items:,} items in batches of {settings.batch_size:,}",
        "lower factors or batch_size",
    )


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Let torch use this many threads for a while; 0 leaves it as it is."""
    before = torch.get_num_threads()
    torch.set_num_threads(thread_count(count) if count else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
