"""The files that a path, a folder or a pattern stands for, opened and decompressed."""

import errno
import glob
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from safecf.checks import check_plain
from safecf.errors import shown

PathLike = str | os.PathLike[str]
Paths = PathLike | Iterable[PathLike]

LONGEST_REASON = 300  # characters of another library's message in ours

COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".xz", ".zip")
PARQUET = (".parquet", ".pq")
TEXT = tuple(name + end for name in (".csv", ".tsv", ".txt", ".dat") for end in ("", *COMPRESSED))


def find_files(paths: Paths, suffixes: tuple[str, ...]) -> list[Path]:
    """Return the files that the paths stand for, sorted within each folder and pattern.

    A folder stands for the files at any depth with one of the `suffixes`. Names that start with a
    dot or an underscore are skipped.
    """
    entries: list[Any]
    if isinstance(paths, str | os.PathLike):
        entries = [paths]
    else:
        entries = list(paths) if isinstance(paths, Iterable) else [paths]
    found: list[Path] = []
    for entry in entries:
        if not isinstance(entry, str | os.PathLike) or isinstance(paths, bytes):
            raise TypeError(
                f"{paths!r:.60} is no path; give a path, a folder or a pattern as str, or a list "
                "of them"
            )
        if not os.fspath(entry):
            raise FileNotFoundError("the path is empty; give a file, or '.' for this folder")
        path = Path(entry)
        if os.path.isdir(path):
            files = [file for file in sorted(path.rglob("*")) if _matches(file, path, suffixes)]
            problem = f"the folder has no file that ends in {', '.join(suffixes)}"
        elif os.path.exists(path):
            check_plain(path)
            files, problem = [path], ""
        else:
            pattern = os.fspath(entry)
            files = [Path(name) for name in sorted(glob.glob(pattern, recursive=True))]
            files = [file for file in files if file.is_file()]
            problem = (
                "no file matches the pattern"
                if glob.has_magic(pattern)
                else f"there is no such file, seen from {Path.cwd()}"
            )
        if not files:
            raise FileNotFoundError(f"{path}: {problem}; check the path")
        found += files
    if not found:
        raise FileNotFoundError("the list of paths is empty; give at least one file")
    return found


def _matches(file: Path, folder: Path, suffixes: tuple[str, ...]) -> bool:
    hidden = any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    return not hidden and file.name.lower().endswith(suffixes) and file.is_file()


def open_file(path: Path) -> Any:
    """Open a file for reading bytes, decompressed by its suffix; a .zip has to hold one file."""
    suffix = path.suffix.lower()
    if suffix == ".xz":
        return lzma.open(path)
    if suffix == ".zip":
        return open_member(path, _only_member(path))
    return pa.input_stream(str(path), compression="detect")


def open_member(archive: Path, member: str) -> Any:
    """Open a file within a zip archive, without extracting it."""
    with name_damaged_zip(archive), zipfile.ZipFile(archive) as opened:
        return opened.open(member)


def list_members(archive: Path) -> list[str]:
    """Return the names of the files within a zip archive."""
    with name_damaged_zip(archive), zipfile.ZipFile(archive) as opened:
        # ZipInfo.is_dir() fails at an empty name in Python 3.11
        return [name for name in opened.namelist() if not name.endswith("/")]


def _only_member(path: Path) -> str:
    members = list_members(path)
    if len(members) != 1:
        first = ", ".join(map(shown, members[:5])) + (", …" if members[5:] else "")
        raise ValueError(
            f"{path}: it holds {len(members)} files ({first}), where one is expected; extract the "
            "one with the interactions"
        )
    return members[0]


def strip_compression(name: str) -> str:
    """Return a file name without the suffix of its compression."""
    stem, dot, end = name.rpartition(".")
    return stem if dot + end.lower() in COMPRESSED else name


@contextmanager
def name_damaged_file(name: str) -> Iterator[None]:
    """Turn errors of decompression into a ValueError that names the file."""
    try:
        yield
    except (EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile) as problem:
        raise ValueError(_damaged(name, problem)) from problem
    except OSError as problem:
        # Arrow's own errors have no errno; with another one, the operating system has failed.
        if problem.errno in (None, errno.EINVAL):
            raise ValueError(_damaged(name, problem)) from problem
        if problem.filename is None:
            raise OSError(problem.errno, os.strerror(problem.errno), name) from problem
        raise


@contextmanager
def name_damaged_zip(archive: Path) -> Iterator[None]:
    """Turn zipfile's errors into a ValueError that names the archive."""
    with name_damaged_file(str(archive)):
        try:
            yield
        except (NotImplementedError, RuntimeError) as problem:
            raise ValueError(
                f"{archive}: it is encrypted, or compressed in a way that is not supported "
                f"({one_line(problem)}); extract it"
            ) from problem
        except (struct.error, ValueError) as problem:
            raise ValueError(_damaged(str(archive), problem)) from problem


def _damaged(name: str, problem: Exception) -> str:
    return f"{name}: it is cut off or damaged ({one_line(problem)}); copy or download it again"


def one_line(problem: object) -> str:
    """Return the message of another library without line breaks, shortened."""
    text = " ".join(str(problem).split())
    return text if len(text) <= LONGEST_REASON else text[:LONGEST_REASON] + "…"
