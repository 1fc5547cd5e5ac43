"""Epochs of a Mult-VAE: the record of each, which one is kept, and divergence."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from safecf.errors import ConvergenceWarning, DivergenceError, warn
from safecf.models.vae.encoder import Encoder, Floats

if TYPE_CHECKING:
    from safecf.models.vae.trainer import Trainer


@dataclass(frozen=True)
class VAEEpoch:
    """What one epoch did: means over its users, each in the state of its batch.

    `objective` is reconstruction + beta * kl, with the `beta` of each step; `beta` is that of the
    last one. `score` is the validation metric, if there is one. `seconds` is by step.
    """

    epoch: int
    objective: float
    reconstruction: float
    kl: float
    beta: float
    score: float | None = None
    seconds: dict[str, float] = field(default_factory=dict, compare=False)


class Found(NamedTuple):
    """An epoch's weights, and its validation score if there is one."""

    epoch: int
    encoder: Encoder
    items: Floats
    users: Floats
    score: float | None = None

    def replaces(self, earlier: "Found") -> bool:
        """Whether to keep it instead of an earlier one: the first of the best, else the last."""
        return self.score is None or earlier.score is None or self.score > earlier.score


def run_epoch(trainer: "Trainer", kept: Found | None) -> VAEEpoch | None:
    """Return the record of an epoch, or None if it diverges and an earlier one is kept."""
    try:
        return trainer.run_epoch()
    except DivergenceError as problem:
        if kept is None:
            raise
        warn(f"{problem}. The model is that of epoch {kept.epoch}", ConvergenceWarning)
        return None
