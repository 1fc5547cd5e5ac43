"""From record batches to numbers: 4 bytes per row and column, whatever the ids are."""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from safecf.data.matrices.ids import Encoder
from safecf.data.reading.columns import Layout, Source, checked
from safecf.data.reading.times import UNIT

MOST_ROWS = 2**31 - 1
# Enough for a hash table of all ids so far, made anew for every block, not to matter.
ROWS_PER_BLOCK = 2**22
IDS = ("user", "item", "group")
KEPT = {"rating": np.float32, "weight": np.float32, "timestamp": UNIT}


@dataclass(frozen=True, eq=False)
class Encoded:
    """Rows in their order: row n is user `user_ids[users[n]]` with item `item_ids[items[n]]`.

    Ids are Arrow arrays, in order of first appearance. `group`, if there is one, numbers
    `group_ids` in the same way.
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


def encode(
    sources: Iterable[Source],
    layout: Layout,
    *,
    keep: Container[str] = KEPT,
    integers_in_text: bool = False,
) -> Encoded:
    """Read all sources, one batch after the other; of ratings, weights and times only `keep`."""
    given = layout.given
    stages: dict[str, _Ids] = {role: _Ids(role) for role in IDS if role in given}
    parts: dict[str, list[NDArray[Any]]] = {
        role: [] for role in KEPT if role in given and role in keep
    }
    names, total, seen = [], 0, 0
    for source in sources:
        names.append(source.name)
        for arrays in checked(source, layout):
            seen += 1
            total += len(arrays["user"])
            if total > MOST_ROWS:
                raise ValueError(
                    f"{source.name}: there are more than {MOST_ROWS:,} rows; add up duplicates "
                    "beforehand, or use a part of the data"
                )
            for role, stage in stages.items():
                stage.add(arrays[role], source.name)
            for role, values in parts.items():
                values.append(arrays[role].to_numpy().astype(KEPT[role], copy=False))
    if total == 0:
        shown = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        if seen and layout.min_rating is not None:
            raise ValueError(
                f"{shown}: no row has a rating of {layout.min_rating:g} or more; lower min_rating"
            )
        raise ValueError(f"{shown}: there are no rows; check how the data was written")
    codes: dict[str, Any] = {role: stage.codes() for role, stage in stages.items()}
    # One at a time, so that no more than one column is there twice.
    kept = {role: np.concatenate(parts.pop(role)) for role in list(parts)}
    ids = {
        f"{role}_ids": stage.encoder.ids(integers_in_text=integers_in_text)
        for role, stage in stages.items()
    }
    return Encoded(codes.pop("user"), codes.pop("item"), **ids, **codes, **kept)


class _Ids:
    """One column of ids: encoded block by block, with its type the same throughout."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.encoder = Encoder()
        self._waiting: list[Any] = []
        self._rows = 0
        self._parts: list[NDArray[np.int32]] = []
        self._type: tuple[Any, str] | None = None

    def add(self, values: Any, source: str) -> None:
        """Take one batch of ids."""
        if not len(values):
            return
        if self._type is None:
            self._type = values.type, source
        elif values.type != self._type[0]:
            kinds = [
                "strings" if pa.types.is_large_string(kind) else "integers"
                for kind in (values.type, self._type[0])
            ]
            raise TypeError(
                f"{source}: the {self.role}s are {kinds[0]}, but {kinds[1]} in {self._type[1]}; "
                "cast them to the same type"
            )
        self._waiting.append(values)
        self._rows += len(values)
        if self._rows >= ROWS_PER_BLOCK:
            self._encode()

    def codes(self) -> NDArray[np.int32]:
        """Return the numbers of all ids."""
        self._encode()
        parts, self._parts = self._parts, []
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _encode(self) -> None:
        if self._waiting:
            whole = pa.concat_arrays(self._waiting)
            self._waiting, self._rows = [], 0
            for start in range(0, len(whole), ROWS_PER_BLOCK):
                self._parts.append(self.encoder.codes(whole.slice(start, ROWS_PER_BLOCK)))
