"""Cells on a split itself: its numbers of users, items and interactions, and its held-out users."""

from reproduction.base import Record, Settings
from reproduction.data import load_split
from reproduction.tasks.quality import users_of


def statistics(settings: Settings) -> Record:
    """Return the numbers of users, items and interactions after the protocol's filters."""
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


def users(settings: Settings) -> Record:
    """Return the users of settings["on"], by numbers that are the same in all splits."""
    split = load_split(settings["data"], settings["split"])
    return {"users": users_of(split, settings["on"])}
