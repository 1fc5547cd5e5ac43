"""Paths that are no plain files, and archives that zipfile refuses."""

import os
import socket
import zipfile

import pytest

from safecf import Interactions, datasets
from tests.helpers import refused

SUFFIXES = (".csv", ".csv.gz", ".csv.xz", ".csv.zip", ".parquet")
CASES = [*((suffix, "pipe") for suffix in SUFFIXES), (".csv", "socket"), (".csv.gz", "device")]


@pytest.mark.parametrize(("suffix", "kind"), CASES)
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


def test_texts_of_files_are_shortened_in_messages(tmp_path):
    long = "x" * 5000
    (tmp_path / "log.csv").write_text(f"user,item,group\n{long},1,a\n{long},2,b\n")
    with refused(ValueError, "log.csv: user 'x", "…' has more than one group"):
        datasets.read(tmp_path / "log.csv", group="group")
    with zipfile.ZipFile(tmp_path / "log.csv.zip", "w") as archive:
        for number in range(3):
            archive.writestr(f"{long}{number}", "")
    with refused(ValueError, "it holds 3 files ('x", "…"):
        datasets.read(tmp_path / "log.csv.zip")


def test_a_member_without_a_name_is_a_file(tmp_path):
    """In Python 3.11, zipfile itself fails at it."""
    path = tmp_path / "log.csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("x")
        info.filename = ""
        archive.writestr(info, "user,item\n1,2\n")
    assert Interactions.from_csv(path, user="user", item="item").nnz == 1
