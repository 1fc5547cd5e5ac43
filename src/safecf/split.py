"""Splits: what is trained on, what is shown of held-out users, and what is to be predicted."""

from safecf.data.splits.strong import (
    HeldOut,
    Split,
    per_user_holdout,
    repeated_strong_generalization,
    strong_generalization,
    temporal,
)

__all__ = [
    "HeldOut",
    "Split",
    "per_user_holdout",
    "repeated_strong_generalization",
    "strong_generalization",
    "temporal",
]
