"""What is known of every epoch of a Mult-VAE."""

from dataclasses import dataclass, field


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
