"""Ids of users and items: numbered by first appearance, checked, and found again."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

# int64 numbers, or str objects; position n is the id of row or column n
IdArray = NDArray[np.int64] | NDArray[np.object_]

MOST_IDS = 2**31 - 1
# Integer ids within this distance of each other are looked up in a table, others are hashed.
LARGEST_TABLE = 2**27


class Encoder:
    """code(v) = number of different values before the first v; values come in any number of parts.

    All parts are Arrow arrays of one type, int64 or large_string, without nulls.

    >>> encoder = Encoder()
    >>> encoder.codes(pa.array([7, 3, 7])), encoder.codes(pa.array([3, 9]))
    (array([0, 1, 0], dtype=int32), array([1, 2], dtype=int32))
    """

    def __init__(self) -> None:
        self._parts: list[Any] = []
        self._count = 0
        self._table: NDArray[np.int32] | None = np.empty(0, dtype=np.int32)
        self._low = 0

    def codes(self, values: Any) -> NDArray[np.int32]:
        """Return the numbers of these values, giving new ones to the values not seen before."""
        if len(values) == 0:
            return np.empty(0, dtype=np.int32)
        if pa.types.is_integer(values.type):
            numbers = values.to_numpy()
            if self._cover(numbers):
                return self._looked_up(numbers)
        return self._hashed(values)

    def ids(self, *, integers_in_text: bool = False) -> Any:
        """Return the values by number, as an Arrow array.

        With `integers_in_text`, strings that are all integers, written as str(int) does, become
        integers.
        """
        found = self._known()
        if integers_in_text and found is not None and pa.types.is_large_string(found.type):
            try:
                numbers = found.cast(pa.int64())
            except pa.ArrowInvalid:
                return found
            if numbers.cast(pa.large_string()).equals(found):
                return numbers
        return found

    def _known(self) -> Any:
        """Return the values so far, as one array; None if there are none."""
        if len(self._parts) > 1:
            self._parts = [pa.concat_arrays(self._parts)]
        return self._parts[0] if self._parts else None

    def _add(self, values: Any) -> None:
        self._parts.append(values)
        self._count += len(values)
        if self._count > MOST_IDS:
            raise ValueError(f"there are more than {MOST_IDS:,} different ids; use fewer")

    def _cover(self, numbers: NDArray[np.int64]) -> bool:
        """Make the table reach from the lowest to the highest number, if it is not too long."""
        if self._table is None:
            return False
        low, high = int(numbers.min()), int(numbers.max()) + 1
        if self._table.size:
            if self._low <= low and high <= self._low + self._table.size:
                return True
            low, high = min(low, self._low), max(high, self._low + self._table.size)
        if high - low > LARGEST_TABLE:
            self._table = None
            return False
        # Twice as long as it has to be, so that slowly growing ids do not copy it every time.
        table = np.full(min(2 * (high - low), LARGEST_TABLE), -1, dtype=np.int32)
        at = self._low - low if self._table.size else 0
        table[at : at + self._table.size] = self._table
        self._table, self._low = table, low
        return True

    def _looked_up(self, numbers: NDArray[np.int64]) -> NDArray[np.int32]:
        assert self._table is not None
        places = numbers - self._low
        codes = self._table[places]
        new = places[codes < 0]
        if new.size:
            # Written from the last to the first, so that the first place of each value stays.
            order = np.arange(new.size, dtype=np.int32)
            self._table[new[::-1]] = order[::-1]
            values = new[self._table[new] == order]
            start = self._count
            self._add(pa.array(values + self._low))
            self._table[values] = np.arange(start, self._count, dtype=np.int32)
            codes = self._table[places]
        return codes

    def _hashed(self, values: Any) -> NDArray[np.int32]:
        part = values.dictionary_encode()
        known = self._known()
        if known is None:
            number = np.arange(len(part.dictionary), dtype=np.int32)
            self._add(part.dictionary)
        else:
            found = pc.index_in(part.dictionary, value_set=known)
            new = found.is_null().to_numpy(zero_copy_only=False)
            number = found.fill_null(0).to_numpy().copy()
            if new.any():
                start = self._count
                self._add(part.dictionary.filter(pa.array(new)))
                number[new] = np.arange(start, self._count, dtype=np.int32)
        codes: NDArray[np.int32] = number[part.indices.to_numpy()]
        return codes


def to_numpy(ids: Any) -> IdArray:
    """Return an Arrow array of ids as int64 numbers or str objects."""
    found: IdArray = ids.to_numpy(zero_copy_only=False)
    return found


def check_ids(ids: ArrayLike | None, size: int, name: str) -> IdArray | None:
    """Return the ids of `size` rows as int64 numbers or str objects, none of them twice."""
    if ids is None:
        return None
    found = np.asarray(ids)
    if found.ndim != 1 or found.size != size:
        raise ValueError(f"{name} has shape {found.shape}; give one id for each of the {size} rows")
    if found.dtype.kind in "iu" and (found.dtype.kind == "i" or found.max(initial=0) < 2**63):
        found = found.astype(np.int64)
    elif _are_texts(ids, found):
        found = np.array(found.tolist(), dtype=object)
    else:
        kind = found.dtype if found.dtype.kind not in "OUT" else "mixed"
        raise TypeError(
            f"{name} holds values of type {kind}, not integers or strings; try {name}.astype(str)"
        )
    repeated = find_repeated(found)
    if repeated is not None:
        raise ValueError(f"{name} holds {repeated!r} more than once; give every row its own id")
    return found


def _are_texts(given: ArrayLike, found: NDArray[Any]) -> bool:
    # numpy makes texts of a list such as ["a", 1]
    made_so = found.dtype.kind in "UT" and hasattr(given, "dtype")
    values = given if isinstance(given, list | tuple) else found.tolist()
    return made_so or all(isinstance(value, str) for value in values)


def find_repeated(ids: IdArray) -> Any:
    """Return an id that is there twice, or None."""
    ordered = np.sort(ids)
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    return ordered[twice[:1]].tolist()[0] if twice.size else None


class Index:
    """The way back from ids to rows, by binary search; `ids` None stands for 0 to size - 1.

    >>> Index(np.array([30, 10, 20]), 3).rows([10, 30], "user")
    array([1, 0])
    """

    def __init__(self, ids: NDArray[Any] | None, size: int) -> None:
        self._ids = np.arange(size) if ids is None else ids
        self._order = None if ids is None else np.argsort(ids)

    def find(self, asked: ArrayLike) -> NDArray[np.int64]:
        """Return the row of every id, -1 where there is none."""
        given = np.atleast_1d(np.asarray(asked))
        if self._ids.dtype.kind == "O":
            fits = np.array([isinstance(value, str) for value in given.tolist()], dtype=bool)
            wanted = np.where(fits, given.astype(object), "")
        elif given.dtype.kind in "iu":
            fits = given <= np.iinfo(np.int64).max
            wanted = given.astype(np.int64)
        else:
            return np.full(given.size, -1)
        if not self._ids.size:
            return np.full(given.size, -1)
        place = np.searchsorted(self._ids, wanted, sorter=self._order)
        place = np.minimum(place, self._ids.size - 1)
        rows = place if self._order is None else self._order[place]
        return np.where(fits & (self._ids[rows] == wanted), rows, -1).astype(np.int64)

    def rows(self, asked: ArrayLike, name: str) -> NDArray[np.int64]:
        """Return the row of every id; a KeyError names the first that is not known."""
        rows = self.find(asked)
        if (rows < 0).any():
            unknown = np.atleast_1d(np.asarray(asked)).tolist()[int(np.argmin(rows))]
            example = self._ids[:1].tolist()
            known = f"{self._ids.size:,} are known, the first is {example[0]!r}" if example else ""
            raise KeyError(f"unknown {name} {unknown!r}: {known or 'none are known'}")
        return rows
