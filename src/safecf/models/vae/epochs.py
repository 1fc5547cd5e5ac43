"""Epochs: what each of them finds, which one is kept, and what happens when one diverges."""

from typing import TYPE_CHECKING, NamedTuple

from safecf.errors import ConvergenceWarning, DivergenceError, warn
from safecf.models.vae.encoder import Encoder, Floats
from safecf.models.vae.history import VAEEpoch

if TYPE_CHECKING:
    from safecf.models.vae.training import Trainer


class Found(NamedTuple):
    """What an epoch has found, and how well it serves the held-out users, if there are any."""

    epoch: int
    encoder: Encoder
    items: Floats
    users: Floats
    score: float | None = None

    def replaces(self, earlier: "Found") -> bool:
        """Whether it is kept instead of an earlier one: the first of the best, else the last."""
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
