"""Splits into training users and held-out users, whose target is to be predicted."""

from safecf.data.splits.held_out import HeldOut, Split
from safecf.data.splits.known_users import per_user_holdout, temporal
from safecf.data.splits.split_files import read
from safecf.data.splits.strong_generalization import (
    repeated_seeds,
    repeated_strong_generalization,
    strong_generalization,
)

__all__ = [
    "HeldOut",
    "Split",
    "per_user_holdout",
    "read",
    "repeated_seeds",
    "repeated_strong_generalization",
    "strong_generalization",
    "temporal",
]
