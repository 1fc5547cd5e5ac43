"""Data sets by name, from their official files, and any other file by its columns.

>>> log = datasets.load("ml-1m", path="ml-1m.zip")
>>> split = datasets.paper_split("ml-1m", path="ml-1m.zip")
"""

import os
from pathlib import Path

from safecf.data.datasets.download import cache_folder, fetch
from safecf.data.datasets.family import DataSet
from safecf.data.datasets.movielens import ML_1M, ML_20M
from safecf.data.datasets.msd import MSD
from safecf.data.matrices.encode import encode
from safecf.data.reading.columns import Column, Layout
from safecf.data.reading.paths import PARQUET, TEXT, Paths, expand
from safecf.data.reading.readers import file_source
from safecf.data.splits.log import Log
from safecf.data.splits.strong import Split
from safecf.data.synthetic import synthetic
from safecf.errors import choose

DATASETS: dict[str, DataSet] = {known.name: known for known in (ML_1M, ML_20M, MSD)}

__all__ = ["DATASETS", "DataSet", "Log", "load", "paper_split", "read", "synthetic"]


def load(
    name: str,
    path: str | os.PathLike[str] | None = None,
    *,
    min_rating: float | None = None,
    download: bool = True,
    show_progress: bool = True,
) -> Log:
    """Return a data set by name: "ml-1m", "ml-20m" or "msd".

    Parameters
    ----------
    name
        One of `DATASETS`.
    path
        Its official archive, the folder of the extracted files, or the file of the interactions.
        Without it, the file is looked for in the folder that the environment variable SAFECF_DATA
        names, then in the cache (SAFECF_CACHE), and at last downloaded into the cache.
    min_rating
        Lowest rating to keep; by default 4 for MovieLens, and all for the others.
    download
        Whether it may be downloaded.
    show_progress
        Whether a download shows a progress bar on stderr.
    """
    dataset = choose("data set", name, DATASETS)
    return dataset.read(
        locate(dataset, path, download=download, show_progress=show_progress), min_rating
    )


def paper_split(
    name: str, path: str | os.PathLike[str] | None = None, *, seed: int = 98765
) -> Split:
    """Load a data set and split it as the paper does, with its numbers of held-out users."""
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
    """Read any Parquet or text files in order: a path, a folder, a pattern or a list of them.

    Parameters
    ----------
    paths
        Files that end in .parquet or .pq are Parquet, others text, which may be compressed.
    timestamp
        Column of the times: timestamps, dates, texts such as "2024-05-01 13:00:00+02:00"
        (ISO-8601), or numbers, which are seconds since 1970. Times without a zone are UTC.
    group
        Column with a label of the user, the same in all rows of a user.
    user, item, rating, weight, min_rating, separator, header, encoding
        As in `Interactions.from_csv`.

    >>> datasets.read("clicks.csv.gz", user="visitor", item="page", timestamp="time")
    """
    layout = Layout(
        user, item, rating, weight, timestamp, group, min_rating, separator, header, encoding
    )
    return read_files(paths, layout)


def read_files(paths: Paths, layout: Layout) -> Log:
    """Read files whose columns are described by a record."""
    sources = [file_source(file, layout) for file in expand(paths, PARQUET + TEXT)]
    return Log.of(encode(sources, layout, integers_in_text=True))


def locate(
    dataset: DataSet,
    path: str | os.PathLike[str] | None = None,
    *,
    download: bool = True,
    show_progress: bool = True,
) -> Path:
    """Return the file to read, which is downloaded if need be."""
    if path is not None:
        file = dataset.find(path)
        if file is None:
            names = " or ".join((*dataset.files, dataset.archive))
            there = (
                "the folder has no" if Path(path).is_dir() else "does not exist; give the path of"
            )
            raise FileNotFoundError(
                f"{path}: {there} {names}; get {dataset.title} from {dataset.url}"
            )
        return file
    target = cache_folder() / dataset.archive
    named = os.environ.get("SAFECF_DATA")
    for place in (named, target.parent):
        found = dataset.find(place) if place else None
        if found is not None:
            return found
    if not download:
        raise FileNotFoundError(
            f"{dataset.title} is not in {target.parent}; pass path=..., or download=True to get "
            f"it from {dataset.url} ({dataset.licence})"
        )
    return fetch(dataset.url, target, md5=dataset.md5, show_progress=show_progress)
