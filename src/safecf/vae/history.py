"""What is known of every epoch of a Mult-VAE, in memory and in files."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from safecf.errors import FileFormatError
from safecf.models import files


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


def pack_history(history: list[VAEEpoch]) -> list[dict[str, Any]]:
    """Return the records as JSON values."""
    return [asdict(record) for record in history]


def unpack_history(record: Mapping[str, Any]) -> list[VAEEpoch]:
    """Take `record["history"]` back, with every value of its type."""
    history = []
    for entry in files.field(record, "history", list):
        if not isinstance(entry, dict):
            raise FileFormatError("its history is damaged; save it again")
        seconds = files.field(entry, "seconds", dict)
        scored = entry.get("score") is not None
        history.append(
            VAEEpoch(
                epoch=files.field(entry, "epoch", int),
                score=files.field(entry, "score", float) if scored else None,
                seconds={step: files.field(seconds, step, float) for step in seconds},
                **{
                    name: files.field(entry, name, float)
                    for name in ("objective", "reconstruction", "kl", "beta")
                },
            )
        )
    return history
