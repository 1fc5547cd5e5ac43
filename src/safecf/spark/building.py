"""The arrays of a block, made from its interactions by a task.

Pairs are sorted by one key of 8 bytes, row and column: a task needs up to 55 bytes for each of its
block's pairs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from zlib import crc32

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
# Rows of factors that cost as many bytes as the equations of one hot row, by d.
EQUATIONS = 1.0

Offsets = NDArray[np.int64]
COLUMN = 2**32 - 1  # of a key: its lower half


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
    def mark(self) -> int:
        """A checksum of all pairs."""
        mark = crc32(self.columns.data, crc32(self.indptr.data))
        return mark if self.confidence is None else crc32(self.confidence.data, mark)

    @property
    def rows(self) -> NDArray[np.int32]:
        """The row of each pair."""
        return np.repeat(np.arange(len(self.indptr) - 1, dtype=np.int32), self.degree)

    def take(self, which: NDArray[np.bool_]) -> "Pairs":
        """Return some of the pairs, of the same rows."""
        before = np.append(0, np.cumsum(which))
        confidence = None if self.confidence is None else self.confidence[which]
        return Pairs(before[self.indptr], self.columns[which], confidence)

    def sums(self, power: int) -> Vector:
        """Sum the powers of each row's confidences; no row is empty."""
        if self.confidence is None:
            return self.degree.astype(np.float64)
        return np.add.reduceat(self.confidence.astype(np.float64) ** power, self.indptr[:-1])


@dataclass(frozen=True)
class Build:
    """Makes a block's arrays from its interactions.

    `sizes` are the rows of this side's blocks, `offsets` say where the other side's begin, and
    `held` whether the driver holds that side. `loss` is given for the side whose sums are wanted.
    """

    sizes: Offsets
    offsets: Offsets
    held: bool
    factors: int
    loss: Loss | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Work on one block, given (block, row, other block, row there, confidence)."""
        keys, confidences, own = [], [], -1
        for batch in batches:
            if not batch.num_rows:
                continue
            block, row, source, column, confidence = (
                each.to_numpy(zero_copy_only=False) for each in batch.columns
            )
            own = int(block[0])
            keys.append((row.astype(np.int64) << 32) | (self.offsets[source] + column))
            confidences.append(np.array(confidence))
        if not keys:
            return
        joined = np.concatenate(keys), np.concatenate(confidences)
        keys.clear()
        confidences.clear()
        yield from pack(self._arrays(own, Pairs.of(*joined, int(self.sizes[own]))))

    def _arrays(self, own: int, pairs: Pairs) -> Iterator[Any]:
        """Return entries for `pack`."""
        degree = pairs.degree
        if not degree.all():
            raise changed("it lacks ids")
        yield own, 0, "mark", np.array([pairs.mark])
        mass = pairs.sums(1)
        if not np.isfinite(mass).all():
            raise SolveError(
                "the ratings of one pair of user and item add up beyond float32: scale them down"
            )
        kept = pairs
        indices: NDArray[Any] = pairs.columns
        if not self.held:
            hot = self.hot(pairs)
            kept = pairs.take(~hot)
            needed, indices = np.unique(kept.columns, return_inverse=True)
            bounds = np.searchsorted(needed, self.offsets)
            for source in np.flatnonzero(np.diff(bounds)).tolist():
                send = needed[bounds[source] : bounds[source + 1]] - self.offsets[source]
                yield source, own, "send", send
            yield from self._hot_arrays(own, pairs.take(hot))
        arrays: dict[str, NDArray[Any] | None] = {
            "indptr": kept.indptr,
            "indices": indices,
            "confidence": kept.confidence,
            "degree": degree,
            "mass": mass,
        }
        yield from named(own, 0, arrays)
        if self.loss is not None:
            yield own, 0, "sums", np.array(DataSums.of(self.loss, degree, mass, pairs.sums(2)))

    def _sources(self, pairs: Pairs) -> NDArray[np.int32]:
        """Return the other side's block of every pair."""
        return (np.searchsorted(self.offsets, pairs.columns, side="right") - 1).astype(np.int32)

    def hot(self, pairs: Pairs) -> NDArray[np.bool_]:
        """Say which pairs are told as normal equations of their row, so that least is sent."""
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
        limits = np.full(len(self.offsets) - 1, np.inf)
        shortest = HOT * self.factors
        some = lengths > shortest
        if not some.any():
            return limits
        columns, place = np.unique(pairs.columns, return_inverse=True)
        least = np.full(len(columns), len(place))  # the shortest run that the column is in
        np.minimum.at(least, place, np.repeat(lengths, lengths))
        bounds = np.searchsorted(columns, self.offsets)
        long, of = lengths[some], sources[some]
        for source in np.unique(of).tolist():
            runs = np.sort(long[of == source])
            tried = np.append(shortest, runs)
            needed = np.sort(least[bounds[source] : bounds[source + 1]])
            rows = np.searchsorted(needed, tried, side="right")
            hot = len(runs) - np.searchsorted(runs, tried, side="right")
            limits[source] = tried[np.argmin(rows + EQUATIONS * self.factors * hot)]
        return limits

    def _hot_arrays(self, own: int, hot: Pairs) -> Iterator[Any]:
        """Return the pairs of hot rows for the blocks that have their other halves."""
        sources, rows = self._sources(hot), hot.rows
        order = np.argsort(sources, kind="stable")
        bounds = np.searchsorted(sources[order], np.arange(len(self.offsets)))
        for source in np.flatnonzero(np.diff(bounds)).tolist():
            part = order[bounds[source] : bounds[source + 1]]
            which, counts = np.unique(rows[part], return_counts=True)
            ones = np.ones(len(part), np.float32)
            arrays = {
                "hot": which,
                "hot_indptr": np.append(0, np.cumsum(counts)),
                "hot_indices": hot.columns[part] - self.offsets[source],
                "hot_confidence": ones if hot.confidence is None else hot.confidence[part],
            }
            yield from named(source, own, arrays)
