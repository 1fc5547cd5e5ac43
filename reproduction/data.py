"""The data sets of experiments: real ones, and synthetic ones of the same shapes."""

import functools
import hashlib
import os
from pathlib import Path

import numpy as np

from reproduction import settings
from safecf.data.datasets.dataset import DataSet
from safecf.data.datasets.loading import DATASETS, locate
from safecf.data.datasets.synthetic import SHAPES, Recipe, synthetic
from safecf.data.reading.layout import Layout
from safecf.data.splits.held_out import Split
from safecf.data.splits.log import Log
from safecf.data.splits.protocol import SEED
from safecf.data.splits.strong_generalization import repeated_seeds, strong_generalization
from safecf.errors import choose

__all__ = ["LOCATIONS", "SEED", "find", "load_split", "repeated_seeds"]


KNOWN = settings("datasets")
LOCAL = {
    name: DataSet(
        *(name, name, each["url"], {f"{name}.parquet": Layout(weight=each.get("weight"))}),
        licence="for research",
        heldout=each["heldout"],
    )
    for name, each in KNOWN["local"].items()
}
REAL, THINNED, HELDOUT = {**DATASETS, **LOCAL}, KNOWN["thinned"], KNOWN["heldout"]
RECIPES = SHAPES | {name: Recipe(**each) for name, each in KNOWN["recipes"].items()}
# Paths of files by the name of the data set; set in every process that runs cells.
LOCATIONS: dict[str, str] = {}


def find(name: str, path: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the file of a data set, None for synthetic data.

    Without a path it is searched for in SAFECF_DATA and the cache, to which it is downloaded if
    that is possible.
    """
    choose("data", name, dict.fromkeys((*REAL, *RECIPES, *THINNED)))
    if name in RECIPES:
        return None
    name, _ = THINNED.get(name, (name, 1.0))
    dataset = REAL[name]
    if path is None:
        folder = os.environ.get("SAFECF_DATA")
        found = dataset.find(folder) if folder else None
        if found is not None:
            return found
        if name in LOCAL:
            raise FileNotFoundError(
                f"there is no {name}.parquet; give its path with --path, a Parquet file with the "
                f"columns user and item (steam: hours), from the files at {dataset.url}"
            )
    return locate(dataset, path)


def checksum(path: Path) -> str:
    """Return the sha256 sum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@functools.lru_cache(maxsize=2)
def load_log(name: str) -> Log:
    """Return the interactions, without users and items that have too few."""
    if name in RECIPES:
        return Log.of_matrix(synthetic(**vars(RECIPES[name])).matrix)
    if name in THINNED:
        whole, share = THINNED[name]
        log = load_log(whole)
        return log.part(np.flatnonzero(np.random.default_rng(0).random(len(log)) < share))
    dataset = choose("data set", name, REAL)
    return dataset.filtered(dataset.read(Path(LOCATIONS.get(name) or find(name) or "")))


@functools.lru_cache(maxsize=2)
def load_split(name: str, seed: int = SEED) -> Split:
    """Return the split of a seed: the paper's own, or one of `repeated_seeds`.

    >>> load_split("ml-1m").train.shape
    (4034, 3468)
    """
    log = load_log(name)
    if name in RECIPES:
        return strong_generalization(log.users, log.items, heldout=HELDOUT[name], seed=seed)
    dataset = REAL[THINNED.get(name, (name, 1.0))[0]]
    return log.strong_generalization(
        heldout=dataset.heldout,
        seed=seed,
        min_interactions=dataset.min_user_interactions,
        weighted=log.weights is not None,
    )
