"""How much of exact search an index finds, and how fast both are."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from safecf.approximate.formats import Format, Positions, Vectors
from safecf.data.splits.held_out import sparse
from safecf.progress import Draw

CUTOFFS = (10, 100)
ALONE = 200  # queries that are timed one by one
FAST_ENOUGH = 0.005  # seconds for one user


@dataclass(frozen=True)
class Speed:
    """Seconds of one query: alone (the median), and among all that are asked at once."""

    alone: float
    together: float


@dataclass(frozen=True)
class Check:
    """Queries of known users: the share of the best items that was found, by cutoff, and speeds.

    Without an index, `recall` is empty and `index` is None.
    """

    queries: int
    recall: dict[int, float]
    exact: Speed
    index: Speed | None

    @property
    def verdict(self) -> str:
        """Whether the index is worth it.

        >>> Check(1000, {10: 0.99}, Speed(0.0003, 0.0001), Speed(0.0002, 0.0001)).verdict
        'Exact search takes 0.30 ms for one user: fast enough, no index is needed.'
        """
        exact = self.exact.alone
        takes = f"Exact search takes {milliseconds(exact)} for one user"
        if exact < FAST_ENOUGH:
            return f"{takes}: fast enough, no index is needed."
        if self.index is None:
            return f"{takes}; an index may be faster."
        gain = exact / self.index.alone
        if gain < 1:
            return "Exact search is faster than the index: do without it."
        found = ", ".join(f"{share:.1%} of the best {k}" for k, share in self.recall.items())
        return f"For one user, the index is {gain:.1f} times as fast, and finds {found}."


def check(model: Any, made: Format, users: Vectors, queries: Vectors, draw: Draw) -> Check:
    """Search for `users` exactly, and with `queries`, made of them, in the index.

    `draw` is told how many of all are done, which are the users twice.
    """
    _, items = model.both_factors()
    count = min(max(CUTOFFS), len(items))
    none = np.empty(0, dtype=np.int64)
    nothing = sparse(none, none, (len(users), len(items)))

    def exact(part: slice) -> Positions:
        ids, _ = model.recommend_factors(users[part], nothing[part], N=count)
        return np.asarray(ids, dtype=np.int64)

    wanted, speed = _timed(exact, len(users))
    draw(len(users))
    if made.search(queries[:1], 1) is None:
        draw(2 * len(users))
        return Check(len(users), {}, speed, None)
    found, of_index = _timed(lambda part: made.search(queries[part], count), len(users))
    draw(2 * len(users))
    cutoffs = sorted({min(k, len(items)) for k in CUTOFFS})
    return Check(len(users), {k: recall(found, wanted, k) for k in cutoffs}, speed, of_index)


def recall(found: Positions, wanted: Positions, k: int) -> float:
    """mean_u |found_u[:k] & wanted_u[:k]| / k.

    >>> recall(np.array([[1, 2], [3, 4]]), np.array([[2, 5], [3, 4]]), 2)
    0.75
    """
    pairs = zip(found[:, :k], wanted[:, :k], strict=True)
    return float(np.mean([np.isin(ours, theirs).mean() for theirs, ours in pairs]))


def milliseconds(seconds: float) -> str:
    """Return a short time as it is said.

    >>> milliseconds(0.0003)
    '0.30 ms'
    """
    return f"{1000 * seconds:.2g} ms" if seconds >= 0.001 else f"{1000 * seconds:.2f} ms"


def _timed(search: Callable[[slice], Any], size: int) -> tuple[Positions, Speed]:
    for _ in range(2):  # makes copies that later searches use
        search(slice(0, 1))
    alone = []
    for at in range(min(size, ALONE)):
        begin = time.perf_counter()
        search(slice(at, at + 1))
        alone.append(time.perf_counter() - begin)
    search(slice(0, size))
    begin = time.perf_counter()
    found = search(slice(0, size))
    return found, Speed(float(np.median(alone)), (time.perf_counter() - begin) / size)
