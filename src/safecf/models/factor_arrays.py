"""Helpers on arrays of factors, one row per user or item."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from safecf.data.matrices.csr import Csr
from safecf.models.queries import Indices

Factors32 = NDArray[np.float32]
Value = TypeVar("Value", bound=np.generic)


def check_array(name: str, factors: Factors32) -> None:
    """Raise unless the factors, which users may replace, are a matrix of float32."""
    kind = getattr(factors, "dtype", type(factors).__name__)
    shape = getattr(factors, "shape", ())
    if kind != np.float32 or len(shape) != 2 or 0 in shape:
        raise ValueError(
            f"{name} is {kind}{list(shape)}; assign a matrix of float32 with one row each, such as "
            f"numpy.asarray({name}, dtype=numpy.float32)"
        )


def check_factors(user_factors: Factors32, width: int) -> Factors32:
    """Return factors of users as a float32 array; raise if they have another width."""
    users = np.asarray(user_factors, dtype=np.float32)
    if users.ndim != 2 or users.shape[1] != width:
        raise ValueError(
            f"user_factors has shape {users.shape}; give one row of {width} factors per user, such "
            "as those of fold_in"
        )
    return users


def are_zero(factors: Factors32) -> NDArray[np.bool_]:
    """Return which rows are zero: of these nothing is known."""
    return np.asarray(~factors.any(axis=1))


def squared_norms(factors: Factors32) -> NDArray[np.float64]:
    """|x|^2 of every row x."""
    return np.asarray(np.einsum("ij,ij->i", factors, factors, dtype=np.float64))


def directions(factors: Factors32) -> tuple[Factors32, Indices]:
    """Return x / |x| for every row x; zero for rows without a direction, and their indices."""
    squares = squared_norms(factors)
    usable = (squares > 0) & np.isfinite(squares)
    length = np.sqrt(squares, where=usable, out=np.ones_like(squares))
    unit = np.zeros_like(factors)
    np.divide(factors, length[:, None], out=unit, where=usable[:, None], casting="same_kind")
    return unit, np.flatnonzero(~usable)


def positions(own: Indices, only: Indices | None, without: Indices) -> Indices:
    """Return each id's position among the candidates, -1 if it is not a candidate."""
    if only is None:
        place = own.copy()
    else:
        place = np.searchsorted(only, own)
        place[np.append(only, -1)[place] != own] = -1
    place[np.isin(place, without)] = -1
    return place


def one_each(place: Indices, columns: int) -> Csr:
    """Return a matrix with one entry per row, in the given column; -1 means no entry."""
    indptr = np.append(0, np.cumsum(place >= 0))
    return Csr(indptr, place[place >= 0].astype(np.int32), None, (place.size, columns))


def grown(array: NDArray[Value], size: int) -> NDArray[Value]:
    """Return a copy, padded with zeros to `size` rows; copies of the model share the array."""
    longer = np.zeros((max(size, len(array)), *array.shape[1:]), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


def with_rows(array: NDArray[Value], ids: Indices, rows: NDArray[Value]) -> NDArray[Value]:
    """Return a copy with array[ids] = rows, which is longer where ids lie beyond its end."""
    array = grown(array, int(ids.max(initial=-1)) + 1)
    array[ids] = rows
    return array
