"""Formats of exported items: an index of usearch, one of faiss, or the bare vectors."""

import io
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from safecf.progress import Draw

Vectors = NDArray[np.float32]
Positions = NDArray[np.int64]

# Of both graphs: neighbours of an item, and how many candidates are kept while the graph is built,
# and while it is searched.
NEIGHBOURS, BUILD_WIDTH, SEARCH_WIDTH = 16, 128, 128
ADDED = 2**12  # vectors at a time, after which progress is shown


class Format(Protocol):
    """Vectors in one format: `content` is what the file holds."""

    def add(self, first: int, vectors: Vectors) -> None:
        """Add vectors; `first` is the position of the first one."""

    def content(self) -> bytes:
        """Return the bytes of the file."""

    def search(self, queries: Vectors, count: int) -> Positions | None:
        """Return the positions of the best vectors for each query, None without an index."""


class Usearch:
    """A graph of usearch (HNSW), by inner product or by cosine."""

    def __init__(self, dimensions: int, cosine: bool, threads: int) -> None:
        from usearch.index import Index  # noqa: PLC0415

        self._threads = threads
        self._index = Index(
            ndim=dimensions,
            metric="cos" if cosine else "ip",
            dtype="f32",
            connectivity=NEIGHBOURS,
            expansion_add=BUILD_WIDTH,
            expansion_search=SEARCH_WIDTH,
        )

    def add(self, first: int, vectors: Vectors) -> None:
        """Add vectors, whose keys are their positions."""
        keys = np.arange(first, first + len(vectors), dtype=np.uint64)
        self._index.add(keys, vectors, threads=self._threads)

    def content(self) -> bytes:
        """Return what `usearch.index.Index.restore` reads."""
        return bytes(self._index.save() or b"")

    def search(self, queries: Vectors, count: int) -> Positions:
        """Return the keys of the best items."""
        threads = min(self._threads, len(queries))
        found = np.atleast_2d(self._index.search(queries, count, threads=threads).keys)
        return found.astype(np.int64)


class Faiss:
    """A graph of faiss (HNSW), by inner product; for cosines the vectors have unit length."""

    def __init__(self, dimensions: int, cosine: bool, threads: int) -> None:
        import faiss  # noqa: PLC0415

        faiss.omp_set_num_threads(threads)
        self._cosine = cosine
        self._index = faiss.IndexHNSWFlat(dimensions, 2 * NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
        self._index.hnsw.efConstruction = BUILD_WIDTH
        self._index.hnsw.efSearch = SEARCH_WIDTH

    def add(self, first: int, vectors: Vectors) -> None:
        """Add vectors behind those that are there."""
        self._index.add(_directions(vectors) if self._cosine else vectors)

    def content(self) -> bytes:
        """Return what `faiss.read_index` reads."""
        import faiss  # noqa: PLC0415

        content: bytes = faiss.serialize_index(self._index).tobytes()
        return content

    def search(self, queries: Vectors, count: int) -> Positions:
        """Return the positions of the best items."""
        return np.asarray(self._index.search(queries, count)[1], dtype=np.int64)


class Npz:
    """The vectors alone, for any other engine: the array "vectors" of a NumPy archive."""

    def __init__(self, dimensions: int, cosine: bool, threads: int) -> None:
        self._parts = [np.empty((0, dimensions), dtype=np.float32)]

    def add(self, first: int, vectors: Vectors) -> None:
        """Add vectors behind those that are there."""
        self._parts.append(vectors)

    def content(self) -> bytes:
        """Return what `numpy.load` reads."""
        file = io.BytesIO()
        np.savez(file, vectors=np.concatenate(self._parts))
        return file.getvalue()

    def search(self, queries: Vectors, count: int) -> None:
        """There is no index."""


# By name; it is also the usual suffix of the file.
FORMATS: dict[str, Callable[[int, bool, int], Format]] = {
    "usearch": Usearch,
    "faiss": Faiss,
    "npz": Npz,
}
PACKAGES = {"usearch": "pip install 'safecf[ann]'", "faiss": "pip install faiss-cpu"}


def make(name: str, vectors: Vectors, draw: Draw, *, cosine: bool, threads: int) -> Format:
    """Return vectors in the format of this name; raise if what makes it is not installed.

    `draw` is told how many of them are done.
    """
    try:
        made = FORMATS[name](vectors.shape[1], cosine, threads)
    except ModuleNotFoundError as problem:
        raise ImportError(
            f"format={name!r} needs {problem.name}, which is not installed; try {PACKAGES[name]}, "
            "or format='npz'"
        ) from problem
    for first in range(0, len(vectors), ADDED):
        made.add(first, vectors[first : first + ADDED])
        draw(min(first + ADDED, len(vectors)))
    return made


def for_cosines(vectors: Vectors) -> Vectors:
    """[y, sqrt(M^2 - |y|^2)], M the largest |y|: with the query [x, 0], cosines rank as x . y does.

    All vectors have the length M, so that Euclidean distances rank so, too.

    >>> for_cosines(np.array([[3, 0], [0, 5]], dtype=np.float32))
    array([[3., 0., 4.],
           [0., 5., 0.]], dtype=float32)
    """
    lengths = np.square(vectors, dtype=np.float64).sum(axis=1)
    last = np.sqrt(np.maximum(lengths.max(initial=0.0) - lengths, 0))
    return np.ascontiguousarray(np.column_stack([vectors, last]), dtype=np.float32)


def _directions(vectors: Any) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)
