"""The text files of a split, in the format of Liang et al. (2018), written and read.

A line `uid,sid` is a user and an item of the split; the users of train come first, then those of
validation and of test. Line n of unique_sid.txt is the id of column n. These are the six files of
the paper; a seventh, unique_uid.txt, has the id of user n in its line n. There are no weights and
no groups.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from safecf.checks import check_plain
from safecf.data.matrices.coo import IdEncoder
from safecf.data.matrices.ids import IdArray, Index, to_numpy
from safecf.data.reading.columns import Place, read_columns
from safecf.data.reading.layout import ColumnError, Layout
from safecf.data.reading.paths import COMPRESSED
from safecf.data.reading.sources import text_source
from safecf.data.splits.held_out import HeldOut, Ids, Integers, Split, sparse
from safecf.data.splits.log import Log
from safecf.errors import shown

NAMES = (
    "train.csv",
    "validation_tr.csv",
    "validation_te.csv",
    "test_tr.csv",
    "test_te.csv",
    "unique_sid.txt",
)
USERS = "unique_uid.txt"  # which files from elsewhere need not have
FILES = (*NAMES, USERS)

PARTS = ("train", "validation", "test")

T = TypeVar("T")
Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


def write_split(split: Split, log: Log, folder: Path) -> None:
    """Write the split of a log into a folder: all files, or none.

    A line `uid,sid` is a row and a column of the split; rows are counted over train, validation and
    test. Lines are in the order of the log, those of held-out users grouped by ascending id.
    """
    _check_lines(split.item_ids, "item", NAMES[-1])
    _check_lines(split.user_ids, "user", USERS)
    if not split.test.target.nnz:
        raise ValueError(
            f"nothing is hidden of the {split.test.target.shape[0]} test users, as they have too "
            "few interactions; raise min_user_interactions or heldout"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = folder.with_name(f".{secrets.token_hex(8)}.tmp")
    work.mkdir()
    try:
        for name, (uid, sid) in zip(NAMES, _parts(split, log), strict=False):
            with _naming(folder / name), (work / name).open("wb") as file:
                _write_pairs(file, uid, sid)
        for name, ids in {NAMES[-1]: split.item_ids, USERS: split.user_ids}.items():
            with _naming(folder / name), (work / name).open("wb") as file:
                file.writelines(f"{each}\n".encode() for each in ids.tolist())
        folder.mkdir(exist_ok=True)
        for name in FILES:
            with _naming(folder / name):
                (work / name).replace(folder / name)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def is_split(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder has at least two of the files of a split, compressed or not."""
    return sum(_versions(Path(folder), name) != [] for name in NAMES) > 1


def _versions(folder: Path, name: str) -> list[str]:
    """Return the names under which a file of a split is there: its own, or that of an archive."""
    return [name + end for end in ("", *COMPRESSED) if os.path.exists(folder / (name + end))]


def read(folder: str | os.PathLike[str]) -> Split:
    """Read a split that `safecf data split`, or the code of Liang et al., has written.

    The rows of each part are its users in ascending order of their numbers, which are the
    `user_ids` if there is no unique_uid.txt. The files hold no users without interactions. Ids
    become integers if all of them are.

    >>> split = safecf.split.read("ml-1m-split")
    >>> safecf.evaluate(safecf.SAFER2().fit(split.training), split)
    """
    place = Path(folder)
    _check_files(place)
    items = _read_ids(place / NAMES[-1], "item")
    pairs = {name: _read_pairs(place / name, items.size) for name in NAMES[:-1]}
    users = {
        part: np.unique(np.concatenate([pairs[name][0] for name in pairs if name.startswith(part)]))
        for part in PARTS
    }
    for first, second in (PARTS[:2], PARTS[::2], PARTS[1:]):
        both = np.intersect1d(users[first], users[second])
        if both.size:
            raise ValueError(
                f"{place}: user {both[0]} is in {first} and in {second}, as {both.size:,} are; a "
                "user belongs to one of them, split the data anew"
            )

    def matrix(part: str, name: str) -> csr_matrix:
        uid, sid = pairs[name]
        shape = (users[part].size, items.size)
        return sparse(np.searchsorted(users[part], uid), sid, shape)

    def held_out(part: str) -> HeldOut:
        shown, hidden = f"{part}_tr.csv", f"{part}_te.csv"
        uid, sid = (np.concatenate([pairs[shown][side], pairs[hidden][side]]) for side in (0, 1))
        _check_unique(uid, sid, f"{place / shown} and {hidden}")
        return HeldOut(matrix(part, shown), matrix(part, hidden))

    for name in (NAMES[0], "test_te.csv"):
        if not pairs[name][0].size:
            raise ValueError(f"{place / name}: there are no rows; split the data anew")
    return Split(
        train=matrix("train", NAMES[0]),
        validation=held_out("validation"),
        test=held_out("test"),
        item_ids=items,
        user_ids=_named_users(place / USERS, np.concatenate(list(users.values()))),
    )


def _check_files(folder: Path) -> None:
    """Raise if a file of the split is missing, compressed, or a pipe."""
    missing = []
    check_plain(folder / USERS)
    for name in NAMES:
        check_plain(folder / name)
        found = _versions(folder, name)
        if found and not (folder / name).is_file():
            raise ValueError(f"{folder / found[0]}: the split has to hold {name}; extract it")
        missing += [] if found else [name]
    if missing:
        raise FileNotFoundError(
            f"{folder}: there is no {' and no '.join(missing)}; a split has the files "
            f"{', '.join(NAMES)}, which safecf data split writes"
        )


def _check_lines(ids: Ids, side: str, file: str) -> None:
    """Raise if an id holds a character at which some program begins a new line."""
    for number, each in enumerate(ids.tolist()):
        if isinstance(each, str) and len(f"{each}.".splitlines()) > 1:
            raise ValueError(
                f"{side} {shown(each)} (number {number}) holds a line break, while a line of "
                f"{file} is one {side}; replace the line breaks in the {side} ids"
            )


def _named_users(path: Path, numbers: NDArray[np.int64]) -> IdArray:
    """Return the ids of users by their numbers, which are the ids if there is no file of them."""
    if not path.is_file():
        return numbers
    ids = _read_ids(path, "user")
    if numbers.max() >= ids.size:
        raise ValueError(
            f"{path}: there is no line for user {numbers.max()}, as it has {ids.size:,}; do the "
            "files belong to the same split?"
        )
    return ids[numbers]


def _read_ids(path: Path, side: str) -> IdArray:
    """Return the ids of items or users, one per line."""
    try:
        lines = path.read_bytes().decode("utf-8-sig").removesuffix("\n").split("\n")
    except UnicodeDecodeError as problem:
        raise ValueError(
            f"{path}: it is not written in UTF-8 (byte {problem.start}); convert it"
        ) from None
    lines = [line.removesuffix("\r") for line in lines]
    if lines == [""]:
        raise ValueError(f"{path}: the file is empty; split the data anew")
    encoder = IdEncoder()
    codes = encoder.codes(pa.array(lines, pa.large_string()))
    again = np.flatnonzero(codes != np.arange(codes.size))
    if again.size:
        raise ValueError(
            f"{path}: line {again[0] + 1}: {shown(lines[again[0]])} is in an earlier line, too; "
            f"give every {side} one line"
        )
    return to_numpy(encoder.ids(integers_in_text=True))


def _read_pairs(path: Path, items: int) -> Pairs:
    """Return uid and sid of every line."""
    layout = Layout(user="uid", item="sid")
    source = text_source(path, layout)
    first, parts = 0, []
    for arrays in _with_header(read_columns(source, layout), path):
        part = []
        for role, column in layout.columns.items():
            place = Place(f"{path}: column {column!r}", source.place, first)
            whole = pc.match_substring_regex(arrays[role], "^[0-9]{1,18}$")
            if not pc.all(whole).as_py():
                where = place.first_of(pc.invert(whole))
                raise ValueError(f"{where}: it is no whole number from 0; split the data anew")
            part.append(arrays[role].cast(pa.int64()).to_numpy())
        outside = part[1] >= items
        if outside.any():
            at = int(np.argmax(outside))
            raise ValueError(
                f"{place.at(at)}: item {part[1][at]} is not among the {items:,} items of "
                f"{NAMES[-1]}; do the files belong to the same split?"
            )
        first += len(part[0])
        parts.append(part)
    nothing = np.empty(0, dtype=np.int64)
    uid, sid = (np.concatenate([nothing, *(part[side] for part in parts)]) for side in (0, 1))
    _check_unique(uid, sid, str(path))
    return uid, sid


def _with_header(batches: Iterator[T], path: Path) -> Iterator[T]:
    """Yield the batches; raise if the first line does not name both columns."""
    try:
        yield from batches
    except ColumnError:
        raise ValueError(f"{path}: line 1 is not uid,sid; split the data anew") from None


def _check_unique(uid: Integers, sid: Integers, where: str) -> None:
    order = np.lexsort((sid, uid))
    repeated = (np.diff(uid[order]) == 0) & (np.diff(sid[order]) == 0)
    if repeated.any():
        at = order[int(np.argmax(repeated))]
        raise ValueError(
            f"{where}: user {uid[at]} has item {sid[at]} more than once; drop the repeated lines"
        )


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


def _write_pairs(file: BinaryIO, uid: NDArray[np.int64], sid: NDArray[np.int64]) -> None:
    options = pyarrow.csv.WriteOptions(include_header=False)
    file.write(b"uid,sid\n")
    pyarrow.csv.write_csv(pa.table({"uid": uid, "sid": sid}), file, options)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file, and not its temporary copy, if it cannot be written."""
    try:
        yield
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise OSError(problem.errno, f"cannot write the file: {reason}", str(path)) from problem
