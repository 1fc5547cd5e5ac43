"""Files by path: one, several, folders and patterns; compressed or not."""

import glob
import lzma
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

PathLike = str | os.PathLike[str]
Paths = PathLike | Iterable[PathLike]

COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".xz", ".zip")
PARQUET = (".parquet", ".pq")
TEXT = tuple(name + end for name in (".csv", ".tsv", ".txt", ".dat") for end in ("", *COMPRESSED))


def expand(paths: Paths, suffixes: tuple[str, ...]) -> list[Path]:
    """Return the files that are meant, sorted within each folder and pattern.

    In a folder, at any depth, these are the files with one of the `suffixes`; hidden ones, and
    those that start with an underscore, are left out.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: list[Path] = []
    for entry in given:
        path = Path(entry)
        if path.is_dir():
            files = [file for file in sorted(path.rglob("*")) if _counts(file, path, suffixes)]
            remedy = f"the folder has no file that ends in {', '.join(suffixes)}"
        elif path.exists():
            files, remedy = [path], ""
        else:
            pattern = os.fspath(entry)
            files = [Path(name) for name in sorted(glob.glob(pattern, recursive=True))]
            files = [file for file in files if file.is_file()]
            remedy = (
                "no file matches the pattern"
                if glob.has_magic(pattern)
                else f"there is no such file, seen from {Path.cwd()}"
            )
        if not files:
            raise FileNotFoundError(f"{path}: {remedy}; check the path")
        found += files
    if not found:
        raise FileNotFoundError("the list of paths is empty; give at least one file")
    return found


def _counts(file: Path, folder: Path, suffixes: tuple[str, ...]) -> bool:
    hidden = any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    return not hidden and file.name.lower().endswith(suffixes) and file.is_file()


def open_bytes(path: Path) -> Any:
    """Open a file for reading, decompressed as its suffix says; of a zip archive, its one file."""
    suffix = path.suffix.lower()
    if suffix == ".xz":
        return lzma.open(path)
    if suffix == ".zip":
        return open_member(path, _only_member(path))
    return pa.input_stream(str(path), compression="detect")


def open_member(archive: Path, member: str) -> Any:
    """Open a file within a zip archive; nothing is extracted."""
    with zipfile.ZipFile(archive) as opened:
        return opened.open(member)


def members(archive: Path) -> list[str]:
    """Return the files within a zip archive."""
    with naming_damage(str(archive)), zipfile.ZipFile(archive) as opened:
        return [info.filename for info in opened.infolist() if not info.is_dir()]


def without_compression(name: str) -> str:
    """Return the name that a file has when it is decompressed."""
    stem, dot, end = name.rpartition(".")
    return stem if dot + end.lower() in COMPRESSED else name


def _only_member(path: Path) -> str:
    found = members(path)
    if len(found) != 1:
        shown = ", ".join(found[:5]) + (", …" if found[5:] else "")
        raise ValueError(
            f"{path}: it holds {len(found)} files ({shown}), where one is expected; extract the "
            "one with the interactions"
        )
    return found[0]


@contextmanager
def naming_damage(name: str) -> Iterator[None]:
    """Say which file is cut off or damaged, when its compression or its archive does not fit."""
    try:
        yield
    except (EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile) as problem:
        raise ValueError(_damaged(name, problem)) from problem
    except OSError as problem:
        # Arrow's own complaints have no number; those of the system name the file themselves.
        if problem.errno is not None:
            raise
        raise ValueError(_damaged(name, problem)) from problem


def _damaged(name: str, problem: Exception) -> str:
    return f"{name}: it is cut off or damaged ({oneline(problem)}); copy or download it again"


def oneline(problem: Exception) -> str:
    """Return a message of several lines as one."""
    return " ".join(str(problem).split())
