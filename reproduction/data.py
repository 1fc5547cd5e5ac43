"""The data sets of experiments: real ones, and synthetic ones of the same shapes."""

import functools
import hashlib
import os
from pathlib import Path

import numpy as np

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


# Nothing to download from. Gowalla is the widely used 10-core of check-ins (Cho et al., 2011);
# whole users are held out, as in the paper. Book-Crossing is from Ziegler et al. (2005). The
# confidences of Steam are hours played.
LOCAL = {
    name: DataSet(name, name, url, {f"{name}.parquet": layout}, "for research", heldout=heldout)
    for name, heldout, layout, url in (
        ("gowalla", 3_000, Layout(), "https://github.com/gusye1234/LightGCN-PyTorch"),
        ("book-crossing", 400, Layout(), "http://www2.informatik.uni-freiburg.de/~cziegler/BX/"),
        (
            *("steam", 400, Layout(weight="hours")),
            "https://www.kaggle.com/datasets/tamber/steam-video-games",
        ),
    )
}
# Real data with a random share of its interactions: the same tastes, shorter histories.
THINNED = {
    "ml-1m-thin": ("ml-1m", 0.12),
    "book-crossing-thin": ("book-crossing", 0.15),
    "gowalla-thin": ("gowalla", 0.33),
}
REAL = {**DATASETS, **LOCAL}

# Synthetic data, and the numbers of validation and of test users. They are for time and
# convergence, not for quality; "tiny" is for trying a command. "short" has 12 items per user.
RECIPES = {**SHAPES, "short": Recipe(20_000, 4_000, 240_000)}
RECIPES["tiny"] = Recipe(400, 120, 8_000, tastes=4)
HELDOUT = {"demo": 500, "ml-20m-like": 10_000, "msd-like": 50_000, "short": 1_000, "tiny": 60}

# Paths of files by the name of the data set; set in every process that runs cells.
LOCATIONS: dict[str, str] = {}


def find(name: str, path: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the file of a data set, None for synthetic data.

    Without a path it is searched for in SAFECF_DATA, ../shared/data and the cache, to which it is
    downloaded if that is possible.
    """
    choose("data", name, dict.fromkeys((*REAL, *RECIPES, *THINNED)))
    if name in RECIPES:
        return None
    name, _ = THINNED.get(name, (name, 1.0))
    dataset = REAL[name]
    if path is None:
        for folder in (os.environ.get("SAFECF_DATA"), Path("..", "shared", "data")):
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
