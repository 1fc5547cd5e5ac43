"""The cell that tells who was held out in a split."""

from reproduction.base import Record, Settings
from reproduction.data import load_split
from reproduction.quality import users_of


def users(settings: Settings) -> Record:
    """Return the users of settings["on"], by numbers that are the same in all splits."""
    split = load_split(settings["data"], settings["split"])
    return {"users": users_of(split, settings["on"])}
