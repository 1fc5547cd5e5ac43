"""The six text files of a split, in the format of Liang et al. (2018)."""

import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from safecf.data.matrices.ids import Index
from safecf.data.splits.held_out import Split
from safecf.data.splits.log import Log

NAMES = (
    "train.csv",
    "validation_tr.csv",
    "validation_te.csv",
    "test_tr.csv",
    "test_te.csv",
    "unique_sid.txt",
)

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


def write_split(split: Split, log: Log, folder: Path) -> None:
    """Write the split of a log into a folder: all six files, or none.

    A line `uid,sid` is a row and a column of the split; rows are counted over train, validation and
    test. Lines are in the order of the log, those of held-out users grouped by ascending id. Line n
    of unique_sid.txt is the id of column n.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = folder.with_name(f".{secrets.token_hex(8)}.tmp")
    work.mkdir()
    try:
        for name, (uid, sid) in zip(NAMES, _parts(split, log), strict=False):
            _write_pairs(work / name, uid, sid)
        ids = "".join(f"{item}\n" for item in split.item_ids.tolist())
        (work / NAMES[-1]).write_text(ids, encoding="utf8", newline="\n")
        folder.mkdir(exist_ok=True)
        for name in NAMES:
            (work / name).replace(folder / name)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _parts(split: Split, log: Log) -> Iterator[Pairs]:
    """Yield uid and sid of train, then of history and target of validation and of test."""
    rows = Index(split.user_ids, split.user_ids.size).find(log.user_ids)[log.users]
    columns = Index(split.item_ids, split.item_ids.size).find(log.item_ids)[log.items]
    keep = (rows >= 0) & (columns >= 0)
    rows, columns, users = rows[keep], columns[keep], log.users[keep]
    # The split keeps the first of equal pairs.
    _, first = np.unique(rows * split.item_ids.size + columns, return_index=True)
    first.sort()
    rows, columns, users = rows[first], columns[first], users[first]

    begin = split.train.shape[0]
    yield rows[rows < begin], columns[rows < begin]
    for held_out in (split.validation, split.test):
        end = begin + held_out.history.shape[0]
        inside = np.flatnonzero((rows >= begin) & (rows < end))
        inside = inside[np.argsort(users[inside], kind="stable")]
        uid, sid = rows[inside], columns[inside]
        hidden = _contains(held_out.target, uid - begin, sid)
        yield uid[~hidden], sid[~hidden]
        yield uid[hidden], sid[hidden]
        begin = end


def _contains(matrix: Any, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Any:
    """Return for every (row, column) whether the matrix has an entry there."""
    coo = matrix.tocoo()
    width = matrix.shape[1]
    entries = coo.row.astype(np.int64) * width + coo.col
    return np.isin(rows * width + columns, entries)


def _write_pairs(path: Path, uid: NDArray[np.int64], sid: NDArray[np.int64]) -> None:
    options = pyarrow.csv.WriteOptions(include_header=False)
    with path.open("wb") as file:
        file.write(b"uid,sid\n")
        pyarrow.csv.write_csv(pa.table({"uid": uid, "sid": sid}), file, options)
