"""Numbers of users and items, in the order of their ids or of their first appearance."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from safecf.data.matrices.ids import IdArray, to_numpy
from safecf.data.matrices.matrix import Csr


def by_id(codes: NDArray[np.int32], ids: Any) -> tuple[NDArray[np.int32], IdArray]:
    """Return the codes and the ids in ascending order of the ids."""
    # By code point, as Python sorts; Arrow sorts the UTF-8 bytes, which is the same.
    order = pc.sort_indices(ids).to_numpy().astype(np.int64)
    rank = np.empty(order.size, dtype=np.int32)
    rank[order] = np.arange(order.size, dtype=np.int32)
    return rank[codes], to_numpy(ids.take(pa.array(order)))


def by_appearance(codes: NDArray[np.int32], ids: IdArray) -> tuple[NDArray[np.int32], Any]:
    """Return the codes and the ids in order of first appearance; ids without a row go."""
    # Csr lists the rows of every code in ascending order: the first one is its appearance.
    rows = Csr(np.arange(codes.size + 1), codes, None, (codes.size, ids.size)).transpose()
    there = np.flatnonzero(np.diff(rows.indptr))
    order = there[np.argsort(rows.indices[rows.indptr[there]])]
    number = np.empty(ids.size, dtype=np.int32)
    number[order] = np.arange(order.size, dtype=np.int32)
    arrow = pa.array(ids[order], type=pa.large_string() if ids.dtype == object else pa.int64())
    return number[codes], arrow


def label_of(
    users: NDArray[np.int32], labels: NDArray[np.int32], user_ids: IdArray
) -> NDArray[np.int32]:
    """Return the label of every user, which has to be the same in all of its rows."""
    label = np.empty(user_ids.size, dtype=np.int32)
    label[users] = labels
    other = np.flatnonzero(label[users] != labels)
    if other.size:
        user = user_ids[users[other[:1]]].tolist()[0]
        raise ValueError(
            f"user {user!r} has more than one group; give every user one label, the same in all "
            "rows"
        )
    return label
