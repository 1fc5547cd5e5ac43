"""MovieLens-1M, from a Parquet file with the columns user, item and rating."""

import os
from pathlib import Path

import numpy as np
import pyarrow.parquet
from numpy.typing import NDArray

FILE_NAME = "ml-1m.parquet"
LOWEST_POSITIVE_RATING = 4


def load(path: str | os.PathLike[str] | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the users and items of the ratings >= 4, in file order.

    `path` is the file, or the folder of `ml-1m.parquet`; without it, the folder is the one that
    the environment variable SAFECF_DATA names.

    >>> users, items = load("ml-1m.parquet")
    """
    if path is None:
        path = os.environ.get("SAFECF_DATA")
        if not path:
            raise FileNotFoundError(
                f"no path to {FILE_NAME}; pass load(path), or set SAFECF_DATA to its folder"
            )
    file = Path(path)
    if file.is_dir():
        file /= FILE_NAME
    if not file.is_file():
        raise FileNotFoundError(
            f"{file} does not exist; write MovieLens-1M there, with columns user, item and rating"
        )
    columns = ["user", "item", "rating"]
    missing = sorted(set(columns) - set(pyarrow.parquet.read_schema(file).names))
    if missing:
        raise ValueError(
            f"{file} has no column {', '.join(missing)}; rename its columns to user, item, rating"
        )
    table = pyarrow.parquet.read_table(file, columns=columns)
    users, items, ratings = (table[column].to_numpy() for column in columns)
    positive = ratings >= LOWEST_POSITIVE_RATING
    return users[positive].astype(np.int64), items[positive].astype(np.int64)
