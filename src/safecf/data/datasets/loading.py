"""Load a data set by name, from its official files, or read any file by its columns."""

import os
from pathlib import Path

from safecf.checks import check_plain
from safecf.data.datasets.dataset import DataSet
from safecf.data.datasets.download import cache_folder, fetch
from safecf.data.datasets.movielens import ML_1M, ML_20M
from safecf.data.datasets.msd import MSD
from safecf.data.reading.layout import Column, Layout
from safecf.data.reading.paths import PARQUET, TEXT, Paths, find_files
from safecf.data.reading.sources import file_source
from safecf.data.splits.held_out import Split
from safecf.data.splits.log import Log
from safecf.data.splits.protocol import SEED
from safecf.errors import choose

DATASETS: dict[str, DataSet] = {known.name: known for known in (ML_1M, ML_20M, MSD)}


def load(
    name: str,
    path: str | os.PathLike[str] | None = None,
    *,
    min_rating: float | None = None,
    download: bool = True,
    show_progress: bool = True,
) -> Log:
    """Load a data set by name: "ml-1m", "ml-20m" or "msd".

    Parameters
    ----------
    name
        One of `DATASETS`.
    path
        The official archive, the folder of the extracted files, or the file of interactions.
        Without it, the file is searched in the folder SAFECF_DATA (an environment variable), then
        in the cache (SAFECF_CACHE), and else downloaded into the cache.
    min_rating
        Lowest rating to keep; by default 4 for MovieLens. MSD has no ratings.
    download
        Whether to download the archive if it is not found.
    show_progress
        Whether a download shows a progress bar on stderr.
    """
    dataset = choose("data set", name, DATASETS)
    return dataset.read(
        locate(dataset, path, download=download, show_progress=show_progress), min_rating
    )


def paper_split(
    name: str, path: str | os.PathLike[str] | None = None, *, seed: int = SEED
) -> Split:
    """Load a data set and split it as the paper does, with its number of held-out users."""
    return choose("data set", name, DATASETS).split(load(name, path), seed=seed)


def read(
    paths: Paths,
    *,
    user: Column = "user",
    item: Column = "item",
    rating: Column | None = None,
    weight: Column | None = None,
    timestamp: Column | None = None,
    group: Column | None = None,
    min_rating: float | None = None,
    separator: str = ",",
    header: bool = True,
    encoding: str = "utf8",
) -> Log:
    """Read Parquet or text files in order: a path, a folder, a pattern, or a list of them.

    Parameters
    ----------
    paths
        Files that end in .parquet or .pq are Parquet, others text, which may be compressed.
    timestamp
        Column of the times: timestamps, dates, ISO-8601 strings such as
        "2024-05-01 13:00:00+02:00", or seconds since 1970. Times without a zone are UTC.
    group
        Column of the user's label, which has to be the same in all rows of a user.
    user, item, rating, weight, min_rating, separator, header, encoding
        As in `Interactions.from_csv`.

    Examples
    --------
    >>> datasets.read("clicks.csv.gz", user="visitor", item="page", timestamp="time")
    """
    layout = Layout(
        user, item, rating, weight, timestamp, group, min_rating, separator, header, encoding
    )
    return read_files(paths, layout)


def read_files(paths: Paths, layout: Layout) -> Log:
    """Read files with this layout."""
    sources = [file_source(file, layout) for file in find_files(paths, PARQUET + TEXT)]
    return Log.from_sources(sources, layout)


def locate(
    dataset: DataSet,
    path: str | os.PathLike[str] | None = None,
    *,
    download: bool = True,
    show_progress: bool = True,
) -> Path:
    """Return the file to read; download it if it is not found."""
    if path is not None:
        check_plain(Path(path))
        file = dataset.find(path)
        if file is None:
            names = " or ".join((*dataset.files, dataset.archive))
            problem = (
                "the folder has no" if Path(path).is_dir() else "does not exist; give the path of"
            )
            raise FileNotFoundError(
                f"{path}: {problem} {names}; get {dataset.title} from {dataset.url}"
            )
        return file
    target = cache_folder() / dataset.archive
    for folder in (os.environ.get("SAFECF_DATA"), target.parent):
        found = dataset.find(folder) if folder else None
        if found is not None:
            return found
    if not download:
        raise FileNotFoundError(
            f"{dataset.title} is not in {target.parent}; pass path=..., or download=True to get "
            f"it from {dataset.url} ({dataset.licence})"
        )
    return fetch(dataset.url, target, md5=dataset.md5, show_progress=show_progress)
