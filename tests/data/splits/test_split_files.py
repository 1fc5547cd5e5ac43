"""The files of a split: what is written is read back, and everything else is refused."""

import os
import re
import resource
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import safecf
from safecf.data.splits.split_files import NAMES, USERS, is_split, write_split
from safecf.datasets import Log
from tests.helpers import refused

LINE_BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


def log_of(items: int, seed: int, names=None) -> Log:
    """Return a random log, whose items have these names."""
    liked = np.random.default_rng(seed).random((30, items)) < 0.6
    users, columns = np.nonzero(liked)
    order = np.random.default_rng(seed).permutation(users.size)
    ids = np.arange(items) * 3 if names is None else np.array(sorted(names), dtype=object)
    return Log(users[order].astype(np.int32), columns[order].astype(np.int32), np.arange(30), ids)


def dense(split):
    parts = (split.validation, split.test)
    return [split.train.toarray()] + [
        each.toarray() for part in parts for each in (part.history, part.target)
    ]


def without_empty_rows(train, *held_out):
    """Drop the held-out users who have no interactions, which no file holds."""
    kept = [train]
    for history, target in (held_out[:2], held_out[2:]):
        known = (history + target).any(axis=1)
        kept += [history[known], target[known]]
    return kept


# str.splitlines breaks lines at all of these; other characters, NUL and spaces too, are kept
NAMES_OF_ITEMS = st.lists(
    st.text(st.characters(exclude_characters=LINE_BREAKS, exclude_categories=["Cs"])),
    min_size=8,
    max_size=12,
    unique=True,
)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1000), st.one_of(st.none(), NAMES_OF_ITEMS))
def test_what_is_written_is_read_back(seed, names):
    log = log_of(8 if names is None else len(names), seed, names)
    split = log.strong_generalization(heldout=4, min_interactions=1)
    assume(split.test.target.nnz)
    with tempfile.TemporaryDirectory() as folder:
        write_split(split, log, Path(folder))
        found = safecf.split.read(folder)
    if names is None or not all(text.lstrip("-").isdecimal() for text in names):
        assert found.item_ids.tolist() == split.item_ids.tolist()
    expected = without_empty_rows(*dense(split))
    for before, after in zip(expected, dense(found), strict=True):
        np.testing.assert_array_equal(before, after)
    assert found.user_ids.size == sum(map(len, (expected[0], expected[1], expected[3])))
    assert found.training.nnz == split.train.nnz


@pytest.mark.parametrize("line_break", [*LINE_BREAKS, "\r\n"])
def test_line_breaks_in_ids_are_refused_before_writing(tmp_path, line_break):
    log = log_of(8, 0, [*map(str, range(7)), f"last{line_break}item"])
    split = log.strong_generalization(heldout=4, min_interactions=1)
    with pytest.raises(ValueError, match=r"item 'last.*item' \(number \d\) holds a line break"):
        write_split(split, log, tmp_path / "split")
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_named_with_the_file(tmp_path):
    log = log_of(8, 0, None)
    split = log.strong_generalization(heldout=4, min_interactions=1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, limits[1]))
    try:
        with pytest.raises(OSError, match=r"cannot write the file: File too large.*train\.csv"):
            write_split(split, log, tmp_path / "split")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("line_break", ["", "\n"])
def test_users_keep_their_ids(tmp_path, line_break):
    log, names = log_of(8, 0), np.array([f"user {number:03}" for number in range(30)], dtype=object)
    names[3] += f"{line_break}lines"
    log = Log(log.users, log.items, names, log.item_ids)
    split = log.strong_generalization(heldout=4, min_interactions=1)
    if line_break:
        with refused(ValueError, "user 'user 003", "lines' ", " a line of unique_uid.txt is one"):
            write_split(split, log, tmp_path / "split")
        return
    write_split(split, log, tmp_path / "split")
    found = safecf.split.read(tmp_path / "split")
    assert found.user_ids.tolist() == split.user_ids.tolist()
    np.testing.assert_array_equal(found.train.toarray(), split.train.toarray())


@pytest.fixture
def folder(tmp_path):
    """Return the folder of a split of 3 items, with users 0 and 1, 2, 3 in its parts."""
    texts = ["0,0\n0,1\n1,2\n", "2,0\n", "2,1\n", "3,2\n", "3,0\n"]
    for name, text in zip(NAMES, texts, strict=False):
        (tmp_path / name).write_text("uid,sid\n" + text)
    (tmp_path / NAMES[-1]).write_text("a\nb\nc\n")
    return tmp_path


def test_a_small_split(folder):
    split = safecf.split.read(folder)
    assert split.train.toarray().tolist() == [[1, 1, 0], [0, 0, 1]]
    assert split.validation.history.toarray().tolist() == [[1, 0, 0]]
    assert split.test.target.toarray().tolist() == [[1, 0, 0]]
    assert split.item_ids.tolist() == ["a", "b", "c"]
    assert split.user_ids.tolist() == [0, 1, 2, 3]
    assert not is_split(folder / "train.csv")
    for number, name in enumerate(NAMES):  # two of them make a folder a split
        assert is_split(folder) == (number < len(NAMES) - 1)
        (folder / name).unlink()


def test_users_of_another_split(folder):
    (folder / USERS).write_text("ann\nbob\neve\njoe\nzoe\n")
    assert safecf.split.read(folder).user_ids.tolist() == ["ann", "bob", "eve", "joe"]
    (folder / USERS).write_text("ann\nbob\neve\n")
    with pytest.raises(ValueError, match=r"uid\.txt: there is no line for user 3, as it has 3; do"):
        safecf.split.read(folder)


def test_windows_line_ends_and_empty_parts(folder):
    for name in NAMES:
        (folder / name).write_bytes((folder / name).read_bytes().replace(b"\n", b"\r\n"))
    (folder / "validation_te.csv").write_text("uid,sid\n")
    split = safecf.split.read(folder)
    assert split.item_ids.tolist() == ["a", "b", "c"]
    assert split.validation.history.nnz == 1
    assert split.validation.target.nnz == 0


NUMBER = "column '{}', line {}: it is no whole number"
BAD = [
    ("test_te.csv", None, "there is no test_te.csv; a split has the files train"),
    ("train.csv", "user,item\n0,0\n", "train.csv: line 1 is not uid,sid; split"),
    ("train.csv", "uid;sid\n0;0\n", "train.csv: line 1 is not uid,sid; split"),
    ("train.csv", "uid,sid\n0,0\n0,x\n", NUMBER.format("sid", 3)),
    ("train.csv", "uid,sid\n0,-1\n", NUMBER.format("sid", 2)),
    ("train.csv", f"uid,sid\n{2**64},0\n", NUMBER.format("uid", 2)),
    ("train.csv", "uid,sid\n0,\n", "line 2: there is no id"),
    ("test_te.csv", "uid,sid\n3,0\n3,3\n",
     "test_te.csv: column 'sid', line 3: item 3 is not among the 3 items of unique_sid.txt"),
    ("test_tr.csv", "uid,sid\n1,2\n", "user 1 is in train and in test, as 1 are; a user belongs"),
    ("train.csv", "uid,sid\n0,1\n0,1\n", "user 0 has item 1 more than once"),
    ("validation_te.csv", "uid,sid\n2,0\n", "validation_tr.csv and validation_te.csv: user 2 has"),
    ("train.csv", "uid,sid\n", "train.csv: there are no rows; split the data"),
    ("test_te.csv", "uid,sid\n", "test_te.csv: there are no rows; split the"),
    ("unique_sid.txt", "a\nb\na\n", "line 3: 'a' is in an earlier line, too"),
    ("unique_sid.txt", "", "unique_sid.txt: the file is empty"),
    ("unique_sid.txt", b"a\n\xff\n", "not written in UTF-8 (byte 2); convert it"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(BAD)))
def test_bad_files_are_refused(folder, case):
    name, content, words = BAD[case]
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises((ValueError, FileNotFoundError), match=re.escape(words)) as told:
        safecf.split.read(folder)
    assert str(folder) in str(told.value)


def test_files_that_are_no_plain_text_are_named(folder):
    (folder / "train.csv").rename(folder / "train.csv.gz")
    with pytest.raises(ValueError, match=r"train\.csv\.gz: .* has to hold train\.csv; extract it"):
        safecf.split.read(folder)
    os.mkfifo(folder / "train.csv")
    with pytest.raises(OSError, match=r"train\.csv: it is a pipe, not a file; copy the data"):
        safecf.split.read(folder)
    assert is_split(folder)


def test_a_split_that_hides_nothing_is_not_written(tmp_path):
    log = Log(np.repeat(np.arange(9), 2), np.tile([0, 1], 9), np.arange(9), np.arange(2))
    split = log.strong_generalization(heldout=3, min_interactions=1)
    with pytest.raises(ValueError, match=r"nothing is hidden of the 3 test users, .*; raise min_"):
        write_split(split, log, tmp_path / "split")
    assert os.listdir(tmp_path) == []
