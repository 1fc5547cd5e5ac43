"""The arrays of a block, made from its interactions by a task.

Pairs are sorted by one key of 8 bytes, row and column; with what Spark hands over, copies and the
arrays themselves, a task needs up to 64 bytes for each of its block's pairs. The pairs of an item
with very many users do not come together: they stay in the blocks of their users, which send the
item's block its normal equations.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from safecf.als.loss import Loss, Vector
from safecf.errors import ChangedDataError, SolveError
from safecf.models.scaling import DataSums
from safecf.spark.chunks import named, pack

# A row with more pairs than this times d in one block of the other side may be hot there: instead
# of the factors of those pairs, it is sent its normal equations, d (d + 3) / 2 numbers.
HOT = 4
# An item with more ratings than this, and than HOT d times the blocks of users, is big.
BIG = 2**20
# Rows of factors that cost as many bytes as the equations of one hot row, divided by d: those are
# 2 d^2 bytes, and a row has 2 d as bfloat16, the default.
EQUATIONS = 1.0

# The pairs of rows whose equations a block sends: of hot ones, and of big items.
PAIR_ARRAYS = "rows", "counts", "columns", "confidence"
# Pairs whose checksum is computed at once.
MARKED_AT_ONCE = 2**18
# Odd numbers for checksums.
MIXERS = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)

Offsets = NDArray[np.int64]
COLUMN = 2**32 - 1  # of a key: its lower half


def most_ratings(factors: int, other_blocks: int) -> int:
    """Return how many ratings an item may have without being big."""
    return max(BIG, HOT * factors * other_blocks)


def changed(how: str) -> ChangedDataError:
    """Say how a data set differs from what it was before, and what to try."""
    return ChangedDataError(
        f"the data set has changed since it was first read: {how}; fit a file or table that gives "
        "the same rows every time, and save a model before its data is replaced"
    )


@dataclass(frozen=True)
class Pairs:
    """Interactions by row and column, each once; without `confidence`, all are 1."""

    indptr: Offsets
    columns: NDArray[np.int32]
    confidence: NDArray[np.float32] | None

    @classmethod
    def of(cls, keys: Offsets, confidence: NDArray[np.float32], rows: int) -> "Pairs":
        """Sort pairs, keys of which are row 2^32 + column; the confidences of equal ones add up."""
        counted: NDArray[np.float32] | None = None
        if (confidence == 1).all():
            keys.sort()
        else:
            order = np.lexsort((confidence, keys))
            keys, counted = keys[order], confidence[order]
        first = np.append(True, keys[1:] != keys[:-1])
        if not first.all():
            starts = np.flatnonzero(first)
            ones = np.ones(len(keys)) if counted is None else counted.astype(np.float64)
            with np.errstate(over="ignore"):  # the sums are checked later
                counted = np.add.reduceat(ones, starts).astype(np.float32)
            keys = keys[first]
        indptr = np.searchsorted(keys, np.arange(rows + 1, dtype=np.int64) << 32)
        return cls(indptr, (keys & COLUMN).astype(np.int32), counted)

    @property
    def degree(self) -> Offsets:
        """Pairs of each row."""
        return np.diff(self.indptr)

    @property
    def rows(self) -> NDArray[np.int32]:
        """The row of each pair."""
        return np.repeat(np.arange(len(self.indptr) - 1, dtype=np.int32), self.degree)

    @property
    def confidences(self) -> NDArray[np.float32]:
        """The confidence of each pair, to be read."""
        if self.confidence is None:
            return np.broadcast_to(np.float32(1), len(self.columns))
        return self.confidence

    def take(self, which: NDArray[np.bool_]) -> "Pairs":
        """Return some of the pairs, of the same rows."""
        before = np.append(0, np.cumsum(which))
        confidence = None if self.confidence is None else self.confidence[which]
        return Pairs(before[self.indptr], self.columns[which], confidence)

    def sums(self, power: int) -> Vector:
        """Sum the powers of each row's confidences."""
        found = self.degree.astype(np.float64)
        if self.confidence is not None:
            some = found > 0
            powers = self.confidence.astype(np.float64) ** power
            found[some] = np.add.reduceat(powers, self.indptr[:-1][some])
        return found

    def mark(self, first: int, *, users: bool) -> int:
        """Return a checksum of all pairs, the rows of which begin at `first`.

        It is the same for users as rows and for items as rows, and those of parts add up.
        """
        total, of_row = np.uint64(0), self.rows
        for start in range(0, len(of_row), MARKED_AT_ONCE):
            part = slice(start, start + MARKED_AT_ONCE)
            rows = of_row[part].astype(np.int64) + first
            columns = self.columns[part].astype(np.int64)
            keys = (rows << 32) | columns if users else (columns << 32) | rows
            mixed = keys.view(np.uint64) ^ (self.confidences[part].view(np.uint32) * MIXERS[0])
            for factor in MIXERS:
                mixed ^= mixed >> np.uint64(29)
                mixed *= factor
            mixed ^= mixed >> np.uint64(32)
            total = np.add(total, mixed.sum(), dtype=np.uint64)
        return int(total.view(np.int64))


@dataclass(frozen=True)
class Big:
    """Items whose pairs stay in the blocks of their users: `rows` among all items, and degrees."""

    rows: Offsets = field(default_factory=lambda: np.empty(0, np.int64))
    degree: Offsets = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True)
class Build:
    """Makes a block's arrays from its interactions.

    `own` and `other` say where the blocks of this side and the other begin, and `other_held`
    whether the driver holds the other. `loss` is given for users, whose sums are wanted. `hot` and
    `equations` are HOT and EQUATIONS.
    """

    own: Offsets
    other: Offsets
    other_held: bool
    factors: int
    loss: Loss | None
    big: Big = field(default_factory=Big)
    hot: float = field(default_factory=lambda: HOT)
    equations: float = field(default_factory=lambda: EQUATIONS)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Work on one block, given (block, row, other block, row there, confidence).

        Big items come with a row of their own, of other block -1: there may be no other.
        """
        keys, confidences, block = [], [], -1
        for batch in batches:
            if not batch.num_rows:
                continue
            blocks, row, source, column, confidence = (
                each.to_numpy(zero_copy_only=False) for each in batch.columns
            )
            block = int(blocks[0])
            with_pair = source >= 0
            keys.append(((row.astype(np.int64) << 32) | (self.other[source] + column))[with_pair])
            confidences.append(confidence[with_pair])
        if not keys:
            return
        joined = np.concatenate(keys), np.concatenate(confidences)
        keys.clear()
        confidences.clear()
        pairs = Pairs.of(*joined, int(self.own[block + 1] - self.own[block]))
        del joined
        yield from pack(self._arrays(block, pairs))

    def _arrays(self, block: int, pairs: Pairs) -> Iterator[Any]:
        """Return entries for `pack`."""
        first, last = self.own[block : block + 2].tolist()
        users, degree, mass = self.loss is not None, pairs.degree, pairs.sums(1)
        if not np.isfinite(mass).all():
            raise SolveError(
                "the ratings of one pair of user and item add up beyond float32: scale them down"
            )
        yield block, 0, "mark", np.array([pairs.mark(first, users=users)])
        if users:
            if len(self.big.rows):
                yield from self._big_arrays(block, pairs)
        else:
            here = slice(*np.searchsorted(self.big.rows, [first, last]))
            degree[self.big.rows[here] - first] = self.big.degree[here]
        if not degree.all():
            raise changed("it lacks ids")
        kept = pairs
        indices: NDArray[Any] = pairs.columns
        if not self.other_held:
            hot = self.are_hot(pairs)
            kept = pairs.take(~hot)
            needed, indices = np.unique(kept.columns, return_inverse=True)
            bounds = np.searchsorted(needed, self.other)
            for source in np.flatnonzero(np.diff(bounds)).tolist():
                send = needed[bounds[source] : bounds[source + 1]] - self.other[source]
                yield source, block, "send", send
            yield from self._hot_arrays(block, pairs.take(hot))
        arrays: dict[str, NDArray[Any] | None] = {
            "indptr": kept.indptr,
            "indices": indices,
            "confidence": kept.confidence,
            "degree": degree,
            "mass": mass,
        }
        yield from named(block, 0, arrays)
        if self.loss is not None:
            yield block, 0, "sums", np.array(DataSums.of(self.loss, degree, mass, pairs.sums(2)))

    def _sources(self, pairs: Pairs) -> NDArray[np.int32]:
        """Return the other side's block of every pair."""
        return (np.searchsorted(self.other, pairs.columns, side="right") - 1).astype(np.int32)

    def are_hot(self, pairs: Pairs) -> NDArray[np.bool_]:
        """Say which pairs are sent as normal equations of their row, so that least is sent."""
        if not len(pairs.columns):
            return np.zeros(0, dtype=np.bool_)
        rows, sources = pairs.rows, self._sources(pairs)
        changes = (rows[1:] != rows[:-1]) | (sources[1:] != sources[:-1])
        starts = np.flatnonzero(np.append(True, changes))
        lengths = np.diff(np.append(starts, len(rows)))
        limits = self._limits(pairs, lengths, sources[starts])
        return np.repeat(lengths > limits[sources[starts]], lengths)

    def _limits(
        self, pairs: Pairs, lengths: Offsets, sources: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Return the length from which on a row is hot, by source.

        A source sends the factors of every column that has a row which is not hot, and the
        equations of rows that are. `lengths` are those of runs of pairs of one row and source.
        """
        limits = np.full(len(self.other) - 1, np.inf)
        shortest = self.hot * self.factors
        some = lengths > shortest
        if not some.any():
            return limits
        columns, place = np.unique(pairs.columns, return_inverse=True)
        least = np.full(len(columns), len(place))  # the shortest run that the column is in
        np.minimum.at(least, place, np.repeat(lengths, lengths))
        bounds = np.searchsorted(columns, self.other)
        long, of = lengths[some], sources[some]
        for source in np.unique(of).tolist():
            runs = np.sort(long[of == source])
            tried = np.append(shortest, runs)
            needed = np.sort(least[bounds[source] : bounds[source + 1]])
            rows = np.searchsorted(needed, tried, side="right")
            hot = len(runs) - np.searchsorted(runs, tried, side="right")
            limits[source] = tried[np.argmin(rows + self.equations * self.factors * hot)]
        return limits

    def _hot_arrays(self, block: int, pairs: Pairs) -> Iterator[Any]:
        """Return the pairs of hot rows for the blocks that have their other halves."""
        confidence, rows = pairs.confidences, pairs.rows
        for source, part in _groups(self._sources(pairs), np.arange(len(self.other))):
            columns = pairs.columns[part] - self.other[source]
            arrays = _pair_arrays("hot", rows[part], columns, confidence[part])
            yield from named(source, block, arrays)

    def _big_arrays(self, block: int, pairs: Pairs) -> Iterator[Any]:
        """Return the pairs of big items, whose equations this block of users sends."""
        pairs = pairs.take(np.isin(pairs.columns, self.big.rows))
        mark = pairs.mark(int(self.own[block]), users=True)
        yield block, 0, "big_mark", np.array([mark])
        degree = np.bincount(
            np.searchsorted(self.big.rows, pairs.columns), minlength=len(self.big.rows)
        )
        yield block, 0, "big_degree", degree
        confidence, users = pairs.confidences, pairs.rows
        for source, part in _groups(pairs.columns, self.other):
            items = pairs.columns[part] - self.other[source]
            arrays = _pair_arrays("big", items, users[part], confidence[part])
            yield from named(block, source, arrays)


def _groups(labels: NDArray[Any], bounds: Offsets) -> Iterator[tuple[int, Offsets]]:
    """Return which labels are from bounds[k] to bounds[k + 1], in their order, for every k."""
    order = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels, bounds, sorter=order)
    for k in np.flatnonzero(np.diff(ends)).tolist():
        yield k, order[ends[k] : ends[k + 1]]


def _pair_arrays(
    kind: str, rows: NDArray[Any], columns: NDArray[Any], confidence: NDArray[np.float32]
) -> dict[str, NDArray[Any]]:
    """Return pairs in the order of their rows, as PAIR_ARRAYS of hot rows or big items."""
    which, counts = np.unique(rows, return_counts=True)
    arrays: list[NDArray[Any]] = [which, counts, columns, confidence]
    return {f"{kind}_{name}": array for name, array in zip(PAIR_ARRAYS, arrays, strict=True)}
