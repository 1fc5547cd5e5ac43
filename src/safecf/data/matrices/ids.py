"""Original ids of users and items: checked, sorted, and looked up."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from safecf.data.matrices.csr import Csr
from safecf.data.reading.arrow import load_pandas
from safecf.errors import shown

# int64 numbers, or str objects; position n is the id of row or column n
IdArray = NDArray[np.int64] | NDArray[np.object_]


def to_numpy(ids: Any) -> IdArray:
    """Convert an Arrow array of ids to int64 numbers or str objects."""
    found: IdArray = ids.to_numpy(zero_copy_only=False)
    return found


def check_ids(ids: ArrayLike | None, size: int, name: str) -> IdArray | None:
    """Return the ids of `size` rows as int64 numbers or str objects; raise if one repeats."""
    if ids is None:
        return None
    found = np.array(_as_array(ids))
    if found.ndim != 1 or found.size != size:
        raise ValueError(f"{name} has shape {found.shape}; give one id for each of the {size} rows")
    if found.dtype.kind in "iu" and (found.dtype.kind == "i" or found.max(initial=0) < 2**63):
        found = found.astype(np.int64, copy=False)
    elif _are_strings(ids, found):
        found = np.array(found.tolist(), dtype=object)
        _check_text(found, name)
    else:
        kind = found.dtype if found.dtype.kind not in "OUT" else "mixed"
        raise TypeError(
            f"{name} holds values of type {kind}, not integers or strings; try {name}.astype(str)"
        )
    repeated = find_repeated(found)
    if repeated is not None:
        raise ValueError(
            f"{name} holds {shown(repeated)} more than once; give every row its own id"
        )
    return found


def _are_strings(given: ArrayLike, found: NDArray[Any]) -> bool:
    # numpy turns a list like ["a", 1] into an array of strings, so lists are checked by value.
    is_string_array = found.dtype.kind in "UT" and hasattr(given, "dtype")
    values = given if isinstance(given, list | tuple) else found.tolist()
    return is_string_array or all(isinstance(value, str) for value in values)


def _check_text(ids: IdArray, name: str) -> None:
    """Raise if a string cannot be written as UTF-8: then no file can hold it."""
    try:
        "".join(ids).encode()
    except UnicodeEncodeError as problem:
        lone = problem.object[problem.start]
        at = next(at for at, text in enumerate(ids) if lone in text)
        raise ValueError(
            f"{name} holds {shown(ids[at])} at {at}, which is no valid text; replace the "
            "surrogates, as in text.encode(errors='replace').decode()"
        ) from None


def find_repeated(ids: IdArray) -> Any:
    """Return an id that occurs more than once, or None."""
    ordered = np.sort(ids)
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    return ordered[twice[:1]].tolist()[0] if twice.size else None


def to_arrow(ids: IdArray) -> Any:
    """Convert ids to an Arrow array of strings or integers, also if there are none."""
    return pa.array(ids, type=pa.large_string() if ids.dtype == object else pa.int64())


def sort_by_id(codes: NDArray[np.int32], ids: Any) -> tuple[NDArray[np.int32], IdArray]:
    """Return the codes and ids renumbered in ascending order of the ids."""
    # Arrow sorts strings by their UTF-8 bytes, which is Python's order by code point.
    order = pc.sort_indices(ids).to_numpy().astype(np.int64)
    rank = np.empty(order.size, dtype=np.int32)
    rank[order] = np.arange(order.size, dtype=np.int32)
    return rank[codes], to_numpy(ids.take(pa.array(order)))


def sort_by_appearance(codes: NDArray[np.int32], ids: IdArray) -> tuple[NDArray[np.int32], Any]:
    """Return the codes and ids renumbered by first appearance; ids without a code are dropped."""
    load_pandas()
    # The transpose lists the positions of every code in ascending order.
    positions = Csr(np.arange(codes.size + 1), codes, None, (codes.size, ids.size)).transpose()
    used = np.flatnonzero(np.diff(positions.indptr))
    order = used[np.argsort(positions.indices[positions.indptr[used]])]
    rank = np.empty(ids.size, dtype=np.int32)
    rank[order] = np.arange(order.size, dtype=np.int32)
    return rank[codes], to_arrow(ids[order])


def asked_ids(ids: ArrayLike) -> NDArray[Any]:
    """Return one id or a list of ids as an array."""
    remedy = "give one id, or a list of ids"
    try:
        found = np.atleast_1d(_as_array(ids))
    except ValueError:
        raise ValueError(f"the ids are lists of different lengths; {remedy}") from None
    if found.ndim > 1:
        raise ValueError(f"the ids have {found.ndim} dimensions; {remedy}")
    return found


def _as_array(ids: ArrayLike) -> NDArray[Any]:
    """Return ids as an array, in which strings of a list stay objects.

    numpy's own cut off null characters at the end, and make "1" of 1 beside them.
    """
    found = np.asarray(ids)
    is_list = found.dtype.kind == "U" and not hasattr(ids, "dtype")
    return np.array(ids, dtype=object) if is_list else found


class Index:
    """Rows of ids, by binary search; `ids` None stands for 0 to size - 1.

    >>> Index(np.array([30, 10, 20]), 3).rows([10, 30], "user")
    array([1, 0])
    """

    def __init__(self, ids: NDArray[Any] | None, size: int) -> None:
        self._ids = np.arange(size) if ids is None else ids
        self._order = None if ids is None else np.argsort(ids)

    def find(self, asked: ArrayLike) -> NDArray[np.int64]:
        """Return the row of every id, -1 for unknown ids."""
        given = asked_ids(asked)
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
        """Return the row of every id; a KeyError names the first unknown id."""
        rows = self.find(asked)
        if (rows < 0).any():
            unknown = asked_ids(asked).tolist()[int(np.argmin(rows))]
            known = "none are known"
            for example in self._ids[:1].tolist():
                known = f"{self._ids.size:,} are known, the first is {shown(example)}"
                if self._ids.size == 1:
                    known = f"only {shown(example)} is known"
                if isinstance(unknown, str) != isinstance(example, str):
                    kinds = "strings, not integers", "integers, not strings"
                    known += f"; known ids are {kinds[not isinstance(example, str)]}"
            raise KeyError(f"unknown {name} {shown(unknown)}: {known}")
        return rows
