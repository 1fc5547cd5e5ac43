"""The cell that counts users, items and interactions of a split."""

from reproduction.base import Record, Settings
from reproduction.data import load_split


def statistics(settings: Settings) -> Record:
    """Return how many there are, of those that the protocol keeps."""
    split = load_split(settings["data"], settings["split"])
    held_out = [
        part for each in (split.validation, split.test) for part in (each.history, each.target)
    ]
    return {
        "training users": split.train.shape[0],
        "validation users": split.validation.target.shape[0],
        "test users": split.test.target.shape[0],
        "items": split.train.shape[1],
        "training interactions": split.train.nnz,
        "interactions": split.train.nnz + sum(part.nnz for part in held_out),
    }
