"""The data sets of experiments: real ones, and synthetic ones of the same shapes."""

import functools
import hashlib
import os
from pathlib import Path
from typing import Any

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


def _local(name: str, title: str, url: str, heldout: int, layout: Layout, cite: str) -> DataSet:
    files = {f"{name}.parquet": layout}
    return DataSet(name, title, url, files, f"for research{cite}", heldout=heldout)


# Nothing to download from. Gowalla is the widely used 10-core of check-ins; whole users are held
# out, as in the paper. The confidences of Steam are hours played.
LIGHTGCN = "https://github.com/gusye1234/LightGCN-PyTorch"
BX = "http://www2.informatik.uni-freiburg.de/~cziegler/BX/"
KAGGLE = "https://www.kaggle.com/datasets/tamber/steam-video-games"
LOCAL = {
    each.name: each
    for each in (
        _local("gowalla", "Gowalla", LIGHTGCN, 3_000, Layout(), "; cite Cho et al. (2011)"),
        _local("book-crossing", "Book-Crossing", BX, 400, Layout(), "; cite Ziegler et al. (2005)"),
        _local("steam", "Steam", KAGGLE, 400, Layout(weight="hours"), ""),
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

# Users, items and interactions, to estimate memory; those of others are less than ml-1m's.
SIZES = {
    "ml-1m": (6_040, 3_706, 575_281),
    "ml-20m": (136_677, 20_720, 9_990_682),
    "msd": (571_355, 41_140, 33_633_450),
    "gowalla": (29_858, 40_981, 1_027_370),
    "book-crossing": (2_946, 17_384, 272_678),
    **{name: (each.users, each.items, each.interactions) for name, each in RECIPES.items()},
}

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
    if name not in LOCAL:
        return locate(dataset, path)
    found = None if path is None else dataset.find(path)
    if found is None:
        layout = dataset.files[f"{name}.parquet"]
        columns = [each for each in (layout.user, layout.item, layout.weight) if each is not None]
        raise FileNotFoundError(
            f"there is no {name}.parquet; give its path with --path, a Parquet file with the "
            f"columns {', '.join(map(str, columns))}, made from the files at {dataset.url}"
        )
    return found


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


def estimate_bytes(settings: dict[str, Any]) -> int:
    """Estimate the memory of a cell: Python itself, the data, and four copies of the factors.

    The copies are the factors, those rotated, those of the best epoch, and those folded in.
    """
    users, items, interactions = SIZES.get(settings.get("data", ""), SIZES["ml-1m"])
    factors = int(settings.get("options", {}).get("factors", 64))
    needed = 300 * 2**20 + 40 * interactions + 16 * (users + items) * factors
    if settings.get("model") == "EASE":
        needed += 16 * items**2
    if settings.get("model") == "MultVAE":
        needed += 500 * 2**20 + 64 * items * factors
    return needed
