"""From record batches to COO: ids become integer codes, 4 bytes per row and column."""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from safecf.data.limits import MOST_IDS, MOST_ROWS
from safecf.data.reading.columns import read_columns
from safecf.data.reading.layout import Layout, Source, name_all
from safecf.data.reading.times import UNIT

# Large, because strings are hashed anew for every block, together with all ids so far.
ROWS_PER_BLOCK = 2**22
# Integer ids in a range up to these sizes are looked up in a table, others are hashed.
LARGEST_TABLE = 2**27
SMALLEST_TABLE, TABLE_PER_ROW = 2**20, 32
ID_ROLES = ("user", "item", "group")
VALUE_TYPES = {"rating": np.float32, "weight": np.float32, "timestamp": UNIT}


@dataclass(frozen=True, eq=False)
class Coo:
    """Row n is user `user_ids[users[n]]` with item `item_ids[items[n]]`, in the order of the file.

    Ids are Arrow arrays in order of first appearance. `group[n]` is the code of the user's label
    in `group_ids`.
    """

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    user_ids: Any
    item_ids: Any
    rating: NDArray[np.float32] | None = None
    weight: NDArray[np.float32] | None = None
    timestamp: NDArray[np.datetime64] | None = None
    group: NDArray[np.int32] | None = None
    group_ids: Any = None


def read_coo(
    sources: Iterable[Source],
    layout: Layout,
    *,
    values: Container[str] = VALUE_TYPES,
) -> Coo:
    """Read all sources, one after the other; `values` says which of `VALUE_TYPES` to keep.

    Ids in text files become integers if all of them are; those of other sources keep their type.
    """
    given = layout.columns
    ids = {role: _IdColumn(role) for role in ID_ROLES if role in given}
    parts: dict[str, list[NDArray[Any]]] = {
        role: [] for role in VALUE_TYPES if role in given and role in values
    }
    names, num_rows, num_batches, all_text = [], 0, 0, True
    for source in sources:
        names.append(source.name)
        all_text = all_text and source.is_text
        for arrays in read_columns(source, layout):
            num_batches += 1
            num_rows += len(arrays["user"])
            if num_rows > MOST_ROWS:
                raise ValueError(
                    f"{source.name}: there are more than {MOST_ROWS:,} rows; add up duplicates "
                    "beforehand, or use a part of the data"
                )
            for role, column in ids.items():
                column.add(arrays[role], source.name)
            for role, part in parts.items():
                part.append(arrays[role].to_numpy().astype(VALUE_TYPES[role], copy=False))
    if num_rows == 0:
        where = name_all(names)
        if num_batches and layout.min_rating is not None:
            raise ValueError(
                f"{where}: no row has a rating of {layout.min_rating:g} or more; lower min_rating"
            )
        raise ValueError(f"{where}: there are no rows; check how the data was written")
    codes: dict[str, Any] = {role: column.codes() for role, column in ids.items()}
    # pop frees the parts of one column before the next is concatenated
    kept = {role: np.concatenate(parts.pop(role)) for role in list(parts)}
    known = {
        f"{role}_ids": column.encoder.ids(integers_in_text=all_text) for role, column in ids.items()
    }
    return Coo(codes.pop("user"), codes.pop("item"), **known, **codes, **kept)


class _IdColumn:
    """A column of ids, encoded block by block; all batches have to be of the same type."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.encoder = IdEncoder()
        self._waiting: list[Any] = []
        self._rows = 0
        self._parts: list[NDArray[np.int32]] = []
        self._type: tuple[Any, str] | None = None

    def add(self, ids: Any, source: str) -> None:
        """Add a batch of ids."""
        if not len(ids):
            return
        if self._type is None:
            self._type = ids.type, source
        elif ids.type != self._type[0]:
            kinds = [
                "strings" if pa.types.is_large_string(kind) else "integers"
                for kind in (ids.type, self._type[0])
            ]
            raise TypeError(
                f"{source}: the {self.role}s are {kinds[0]}, but {kinds[1]} in {self._type[1]}; "
                "cast them to the same type"
            )
        self._waiting.append(ids)
        self._rows += len(ids)
        if self._rows >= ROWS_PER_BLOCK:
            self._encode()

    def codes(self) -> NDArray[np.int32]:
        """Return the codes of all ids."""
        self._encode()
        parts, self._parts = self._parts, []
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _encode(self) -> None:
        if self._waiting:
            ids = pa.concat_arrays(self._waiting)
            self._waiting, self._rows = [], 0
            for start in range(0, len(ids), ROWS_PER_BLOCK):
                self._parts.append(self.encoder.codes(ids.slice(start, ROWS_PER_BLOCK)))


class IdEncoder:
    """code(v) = number of different values before the first v, over all blocks so far.

    Blocks are Arrow arrays of one type, int64 or large_string, without nulls.

    >>> encoder = IdEncoder()
    >>> encoder.codes(pa.array([7, 3, 7])), encoder.codes(pa.array([3, 9]))
    (array([0, 1, 0], dtype=int32), array([1, 2], dtype=int32))
    """

    def __init__(self) -> None:
        self._parts: list[Any] = []
        self._count = 0
        # _table[v - _low] is the code of the integer v, -1 if v is new; None: ids are hashed
        self._table: NDArray[np.int32] | None = np.empty(0, dtype=np.int32)
        self._low = 0
        self._rows = 0

    def codes(self, values: Any) -> NDArray[np.int32]:
        """Return the codes of a block of values; new values get the next codes."""
        if len(values) == 0:
            return np.empty(0, dtype=np.int32)
        if pa.types.is_integer(values.type):
            numbers = values.to_numpy().copy()  # a frame may be written to while it is read
            if self._extend_table(numbers):
                return self._look_up(numbers)
        return self._hash(values)

    def ids(self, *, integers_in_text: bool = False) -> Any:
        """Return the values by code, as an Arrow array; None if there are none.

        With `integers_in_text`, strings become integers if all of them are written as str(int)
        writes them.
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
        """Return the values so far as one array, None if there are none."""
        if len(self._parts) > 1:
            self._parts = [pa.concat_arrays(self._parts)]
        return self._parts[0] if self._parts else None

    def _add(self, values: Any) -> None:
        self._parts.append(values)
        self._count += len(values)
        if self._count > MOST_IDS:
            raise ValueError(f"there are more than {MOST_IDS:,} different ids; use fewer")

    def _extend_table(self, numbers: NDArray[np.int64]) -> bool:
        """Extend the table to hold these numbers; return False if it would be too large."""
        if self._table is None:
            return False
        self._rows += numbers.size
        largest = min(SMALLEST_TABLE + TABLE_PER_ROW * self._rows, LARGEST_TABLE)
        low, high = int(numbers.min()), int(numbers.max()) + 1
        if self._table.size:
            if self._low <= low and high <= self._low + self._table.size:
                return True
            low, high = min(low, self._low), max(high, self._low + self._table.size)
        if high - low > largest:
            self._table = None
            return False
        # Twice the size that is needed, so that slowly growing ids do not copy it every time.
        table = np.full(min(2 * (high - low), largest), -1, dtype=np.int32)
        at = self._low - low if self._table.size else 0
        table[at : at + self._table.size] = self._table
        self._table, self._low = table, low
        return True

    def _look_up(self, numbers: NDArray[np.int64]) -> NDArray[np.int32]:
        assert self._table is not None
        places = numbers - self._low
        codes = self._table[places]
        new = places[codes < 0]
        if new.size:
            # Written from the last to the first, so that each value's first position remains.
            order = np.arange(new.size, dtype=np.int32)
            self._table[new[::-1]] = order[::-1]
            values = new[self._table[new] == order]
            start = self._count
            self._add(pa.array(values + self._low))
            self._table[values] = np.arange(start, self._count, dtype=np.int32)
            codes = self._table[places]
        return codes

    def _hash(self, values: Any) -> NDArray[np.int32]:
        block = values.dictionary_encode()
        known = self._known()
        if known is None:
            code = np.arange(len(block.dictionary), dtype=np.int32)
            self._add(block.dictionary)
        else:
            found = pc.index_in(block.dictionary, value_set=known)
            new = found.is_null().to_numpy(zero_copy_only=False)
            code = found.fill_null(0).to_numpy().copy()
            if new.any():
                start = self._count
                self._add(block.dictionary.filter(pa.array(new)))
                code[new] = np.arange(start, self._count, dtype=np.int32)
        codes: NDArray[np.int32] = code[block.indices.to_numpy()]
        return codes
