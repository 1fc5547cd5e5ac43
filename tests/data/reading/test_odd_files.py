"""Paths that are no plain files, archives that zipfile refuses, and text that changes encoding."""

import io
import os
import socket
import zipfile

import pyarrow as pa
import pyarrow.parquet
import pytest

from safecf import Interactions, datasets

SUFFIXES = (".csv", ".csv.gz", ".csv.xz", ".csv.zip", ".parquet")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
def test_what_is_no_file_is_refused_before_it_is_opened(tmp_path, monkeypatch, suffix, kind):
    monkeypatch.chdir(tmp_path)  # names of sockets have at most 107 characters
    path = f"log{suffix}"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        os.symlink("/dev/zero", path)
    else:
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind(path)
    message = f"^log{suffix}: it is a {kind}, not a file; copy the data into a file"
    with pytest.raises(OSError, match=message):
        datasets.read(path)
    with pytest.raises(OSError, match=message):
        datasets.load("ml-1m", path)


def zipped(text="user,item\n1,2\n"):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", text)
    return bytearray(file.getvalue())


def read_zip(tmp_path, content):
    path = tmp_path / "log.csv.zip"
    path.write_bytes(content)
    return Interactions.from_csv(path)


def test_zip_archives_that_are_encrypted_or_compressed_in_another_way(tmp_path):
    content = zipped()
    directory = content.index(b"PK\x01\x02")
    assert read_zip(tmp_path, content).nnz == 1
    for local, central, value in ((6, 8, 1), (8, 10, 99)):  # flags, method of compression
        changed = content.copy()
        changed[local] = changed[directory + central] = value
        with pytest.raises(
            ValueError, match=r"log\.csv\.zip: it is encrypted, or compressed .*; extract it"
        ):
            read_zip(tmp_path, changed)


def test_a_zip_archive_whose_directory_is_elsewhere(tmp_path):
    content = zipped()
    content[content.index(b"PK\x05\x06") + 16] += 30
    with pytest.raises(ValueError, match=r"log\.csv\.zip: it is cut off or damaged \(.*\); copy"):
        read_zip(tmp_path, content)


def test_no_byte_of_a_zip_archive_is_trusted(tmp_path):
    content = zipped()
    for at in range(len(content)):
        changed = content.copy()
        changed[at] ^= 0xFF
        told = ""
        try:
            found = read_zip(tmp_path, changed)
        except ValueError as problem:
            told = str(problem)
        assert "log.csv.zip" in told or found.user_ids.tolist() == [1]


@pytest.mark.parametrize(
    ("content", "encoding", "line"),
    [
        ("user,item\n1,2\n".encode("utf-16")[:-1], "utf-16", 2),
        (b"user,item\n1,2\n\xff,3\n", "utf-8-sig", 3),
        (b"user,item\n1,2\n2,5\n\x9d,3\n", "cp1252", 4),
    ],
)
def test_the_line_that_is_in_another_encoding_is_named(tmp_path, content, encoding, line):
    (tmp_path / "log.csv").write_bytes(content)
    with pytest.raises(
        ValueError, match=rf"log\.csv: line {line}: it is not written in .*; try enc"
    ):
        datasets.read(tmp_path / "log.csv", encoding=encoding)


LONG = "x" * 5000


def test_texts_of_files_are_shortened_in_messages(tmp_path):
    pyarrow.parquet.write_table(pa.table({LONG: [1], "item": [1]}), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text(f"user,item,group,time\n{LONG},1,a,{LONG}\n{LONG},2,b,1\n")
    (tmp_path / "c.csv").write_text(f"user,item,w\n1,2,{LONG}\n")
    with zipfile.ZipFile(tmp_path / "d.csv.zip", "w") as archive:
        for number in range(3):
            archive.writestr(f"{LONG}{number}", "")
    cases = [
        ("a.parquet", {}, "no column 'user'"),
        ("b.csv", {"group": "group"}, r"b\.csv: user 'x+…' has more than one group"),
        ("b.csv", {"timestamp": "time"}, "line 2: 'x+…' is no time"),
        ("c.csv", {"weight": "w"}, "column 'w' holds 'x+…', not a number"),
        ("d.csv.zip", {}, r"it holds 3 files \('x+…'"),
    ]
    for name, columns, message in cases:
        with pytest.raises(ValueError, match=message) as told:
            datasets.read(tmp_path / name, **columns)
        assert len(str(told.value)) < 500 + len(str(tmp_path))


def test_a_member_without_a_name_is_a_file(tmp_path):
    """In Python 3.11, zipfile itself fails at it."""
    path = tmp_path / "log.csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("x")
        info.filename = ""
        archive.writestr(info, "user,item\n1,2\n")
    assert Interactions.from_csv(path, user="user", item="item").nnz == 1
