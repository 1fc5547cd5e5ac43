"""The driver's loop."""

from dataclasses import dataclass
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from safecf.models.als import ALSModel


@dataclass(frozen=True)
class Options:
    """How Spark does it."""

    user_blocks: int
    item_blocks: int
    storage_level: StorageLevel
    final_storage_level: StorageLevel
    checkpoint_interval: int
    checkpoint_dir: str | None
    broadcast: str


@dataclass(frozen=True)
class Trained:
    """What training has found."""

    users: DataFrame
    items: DataFrame
    fitted: dict[str, Any]


def train(local: ALSModel, ratings: DataFrame, options: Options) -> Trained:
    """Train."""
    raise NotImplementedError("not yet there")
