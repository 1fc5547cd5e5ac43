"""`export`: the items of a model into the file of an index, with their ids beside it."""

import hashlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from safecf.approximate.formats import FORMATS, Vectors, for_cosines, make
from safecf.approximate.quality import Check, check
from safecf.atomic import replace_file
from safecf.backends import thread_count
from safecf.checks import check_integer
from safecf.errors import choose
from safecf.progress import epoch_bar


@dataclass(frozen=True)
class Exported:
    """What was written: the file of the index, that of the ids, and how good the index is.

    `metric` is "ip" or "cos", `dimensions` the length of a vector, `seconds` the time to build.
    """

    path: Path
    ids_path: Path
    format: str
    metric: str
    items: int
    dimensions: int
    bytes: int
    seconds: float
    check: Check | None


def export(
    model: Any,
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    cosine: bool = False,
    queries: int = 1000,
    seed: int = 0,
    show_progress: bool = True,
) -> Exported:
    """Write the items of a model as an index that is searched with the factors of a user.

    The key of an item is its position; `path`.json, which is written beside it, has the original
    ids in this order, the metric, and the SHA-256 of the index.

    Parameters
    ----------
    model
        A matrix factorization.
    path
        The file of the index.
    format
        One of `FORMATS`: "usearch", "faiss", or "npz", the bare vectors. By default, the suffix of
        the path says it.
    cosine
        For engines that search by cosine or Euclidean distance: the vectors have one more
        coordinate, so that these rank as the inner product does. A query is a user's factors and
        a zero.
    queries
        How many known users to search for, exactly and in the index, to compare both; 0 for none.
    seed
        Which users these are.
    show_progress
        Whether to show progress bars on stderr.

    Examples
    --------
    >>> export(model, "items.usearch").check.recall
    {10: 0.998, 100: 0.971}
    >>> index = usearch.index.Index.restore("items.usearch")
    >>> index.search(model.fold_in(user_items[7])[0], 10).keys
    """
    name = format_of(path, format)
    check_integer("queries", queries, 0, default=1000)
    users, items = _factors(model)
    begin = time.perf_counter()
    vectors = for_cosines(items) if cosine else items
    threads = thread_count(model.num_threads)
    with epoch_bar("index", 0, len(vectors), show=show_progress) as draw:
        made = make(name, vectors, draw, cosine=cosine, threads=threads)
    content, seconds = made.content(), time.perf_counter() - begin
    asked = _some(users, queries, seed)
    found = None
    if len(asked):
        zeros = np.zeros((len(asked), vectors.shape[1] - asked.shape[1]), dtype=np.float32)
        with epoch_bar("check", 0, 2 * len(asked), show=show_progress) as draw:
            found = check(model, made, asked, np.hstack([asked, zeros]), draw)
    ids_path = Path(f"{os.fspath(path)}.json")
    known = range(len(items)) if model.item_ids is None else model.item_ids.tolist()
    metric = "cos" if cosine else "ip"
    record = {
        "format": name,
        "metric": metric,
        "dimensions": vectors.shape[1],
        "sha256": hashlib.sha256(content).hexdigest(),  # of the index that the ids belong to
        "items": [*known],
    }
    replace_file(path, content)
    replace_file(ids_path, json.dumps(record, ensure_ascii=False).encode())
    return Exported(
        Path(path),
        ids_path,
        name,
        metric,
        len(items),
        vectors.shape[1],
        len(content),
        seconds,
        found,
    )


def format_of(path: str | os.PathLike[str], format: str | None = None) -> str:
    """Return the name of the format, by default the suffix of the path; raise if it is unknown.

    >>> format_of("items.usearch"), format_of("items.bin", "faiss")
    ('usearch', 'faiss')
    """
    suffix = Path(path).suffix.removeprefix(".").lower()
    if format is None and suffix not in FORMATS:
        raise ValueError(
            f"{os.fspath(path)!r} says no format; end it in .{', .'.join(FORMATS)}, or give format="
        )
    choose("format", format or suffix, FORMATS)
    return format or suffix


def _factors(model: Any) -> tuple[Vectors, Vectors]:
    """Return user and item factors; raise if the model has none."""
    if not hasattr(model, "both_factors"):
        raise TypeError(
            f"{type(model).__name__} has no factors that an index could search; export one of "
            "the matrix factorizations, such as SAFER2 or IALS"
        )
    users, items = model.both_factors()
    if not np.isfinite(items).all():
        raise ValueError("item_factors hold NaN or infinity; fit the model again")
    return users, np.ascontiguousarray(items)


def _some(users: Vectors, count: int, seed: int) -> Vectors:
    """Return the factors of some users of whom something is known."""
    known = np.flatnonzero(users.any(axis=1) & np.isfinite(users).all(axis=1))
    chosen = np.random.default_rng(seed).permutation(known)[:count]
    return np.ascontiguousarray(users[np.sort(chosen)])
