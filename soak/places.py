"""Paths that are no plain files, and files that expand to far more than they are."""

import bz2
import gzip
import lzma
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import safecf
from safecf import Interactions, datasets
from soak import samples
from soak.attack import attack
from soak.files import folder, silence
from soak.guard import Refused, memory_below, refused_or
from soak.mutations import Generator, pick

SECONDS = 2.0


def _directory(path: Path) -> None:
    path.mkdir()


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _device(path: Path) -> None:
    path.symlink_to("/dev/null")


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _dangling(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere"))


def _socket(path: Path) -> None:
    socket.socket(socket.AF_UNIX).bind(str(path))


def _under_a_file(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_bytes(b"")


def _link_to_a_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to(path.with_name("pipe"))


# No devices among the places to write to: an attack that succeeds would replace them.
TARGETS: tuple[Callable[[Path], None], ...] = (
    os.mkfifo,
    _link_to_a_pipe,
    _directory,
    _loop,
    _dangling,
    _socket,
    _under_a_file,
)
PLACES = (*TARGETS, _endless, _device, Path.touch)


def _resume(path: Path) -> Any:
    return samples.TRAINED["SAFER2"]().fit(samples.interactions(), False, resume=path)


def _read(**options: Any) -> Callable[[Path], Any]:
    return lambda path: datasets.read(path, **options)


READERS: dict[str, Callable[[Path], Any]] = {
    "m.safetensors": safecf.load,
    "model": safecf.load,
    "c.safetensors": _resume,
    "checkpoint": _resume,
    "log.csv": _read(),
    "log.csv.gz": _read(),
    "log.csv.xz": _read(),
    "log.csv.zip": _read(),
    "log.parquet": _read(),
    "log.tsv": lambda path: Interactions.from_csv(path, separator="\t"),
    "log.pq": Interactions.from_parquet,
}


def _save(path: Path) -> Any:
    return samples.models()["EASE"].save(path)


def _fit(path: Path) -> Any:
    return samples.TRAINED["IALSPP"]().fit(samples.interactions(), False, checkpoint=path)


def _report(path: Path) -> Any:
    return safecf.report(samples.evaluations()[0], path)


WRITERS: dict[str, Callable[[Path], Any]] = {
    "m.safetensors": _save,
    "model": _save,
    "c.safetensors": _fit,
    "page.html": _report,
}


@attack(
    "A pipe, a device, a folder or a loop of links in place of a file is refused at once.",
    cases=4 * len(PLACES) * len(READERS),
    seconds=SECONDS,
    memory=2 << 30,
)
def read_from_odd_places(rng: Generator) -> str:
    """Read from a path that is no plain file."""
    name = pick(rng, READERS)
    make = pick(rng, PLACES)
    with folder() as place, silence(), memory_below(256 << 20):
        path = place / "inner" / name
        path.parent.mkdir()
        make(path)
        try:
            refused_or(lambda: READERS[name](path), name)
        except Refused as problem:
            return f"refused: {problem}"
    raise AssertionError(f"{name} was read from {make.__name__}")


@attack(
    "A pipe, a device, a folder or a loop of links is no target, or is written at once.",
    cases=4 * len(TARGETS) * len(WRITERS),
    seconds=SECONDS,
    memory=2 << 30,
)
def write_to_odd_places(rng: Generator) -> str:
    """Write to a path that is no plain file; what is written can be read back."""
    name = pick(rng, WRITERS)
    make = pick(rng, TARGETS)
    with folder() as place, silence():
        path = place / "inner" / name
        path.parent.mkdir()
        make(path)
        before = _kinds(place)
        try:
            refused_or(lambda: WRITERS[name](path), name, writes=True)
        except Refused as problem:
            assert _kinds(place) == before
            return f"refused: {problem}"
        after = _kinds(place)
        assert before.items() <= after.items(), "something that is no plain file was replaced"
        assert not list(place.rglob("*.tmp"))
        return "written"


def _kinds(place: Path) -> dict[str, int]:
    """Return the type of everything in a folder that is no plain file, and of its plain files."""
    found = {str(each): stat.S_IFMT(each.lstat().st_mode) for each in place.rglob("*")}
    return {name: kind for name, kind in found.items() if not name.endswith(".tmp")}


UNIT = 16 << 20  # bytes of one member of a bomb
FILLINGS: dict[str, bytes] = {
    "zeros": b"\0" * UNIT,
    "letters": b"x" * UNIT,
    "separators": b"," * UNIT,
    "line breaks": b"\n" * UNIT,
    "quotes": b'"' * UNIT,
    "rows": b"7,8\n" * (UNIT // 32),
}
BEGINNINGS = (b"", b"user,item\n", b'user,item\n"', b"user,item\n1,", b'"', b"user,item,")
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda content: gzip.compress(content, 1),
    ".bz2": bz2.compress,
    ".xz": lambda content: lzma.compress(content, preset=0),
    ".zst": samples.zstandard,
}


def reading_bytes() -> int:
    """Return what reading may take beside the rows; Arrow has buffers of its own for each core."""
    return (312 << 20) + (os.cpu_count() or 1) * (4 << 20)


@attack(
    "A compressed file that expands to gigabytes takes no more memory than its rows.",
    cases=60,
    seconds=120.0,
    memory=4 << 30,
)
def bombs(rng: Generator) -> str:
    """Read a small compressed file that expands to up to 2 GiB."""
    suffix = pick(rng, PACKERS)
    filling = pick(rng, FILLINGS)
    beginning = pick(rng, BEGINNINGS)
    units = 2 ** int(rng.integers(0, 8))
    pack = PACKERS[suffix]
    rows = units * FILLINGS[filling].count(b"7,8\n")
    with folder() as place, silence():
        path = place / f"log.csv{suffix}"
        path.write_bytes(pack(beginning) + pack(FILLINGS[filling]) * units)
        with memory_below(reading_bytes() + 64 * rows):
            try:
                log = refused_or(lambda: datasets.read(path))
            except Refused as problem:
                return f"refused: {problem}"
    assert len(log) == rows + (beginning == BEGINNINGS[3])
    return "read"


@attack(
    "A Parquet file of a few bytes that declares many rows takes no more memory than these.",
    cases=20,
    seconds=120.0,
    memory=4 << 30,
)
def parquet_bombs(rng: Generator) -> str:
    """Read a Parquet file with millions of equal rows."""
    rows = 2 ** int(rng.integers(10, 23))
    columns: dict[str, Any] = {
        "user": pa.array(np.zeros(rows, dtype=np.int64) + rng.integers(2**62)),
        "item": pa.array(["x" * int(rng.integers(1, 2000))]).take(
            pa.array(np.zeros(rows, dtype=np.int64))
        )
        if rows <= 2**16
        else pa.array(np.zeros(rows, dtype=np.int64)),
    }
    with folder() as place, silence():
        path = place / "log.parquet"
        pyarrow.parquet.write_table(pa.table(columns), path)
        length = len(columns["item"][0].as_py()) if rows <= 2**16 else 8
        del columns
        with memory_below((256 << 20) + rows * (64 + 4 * length)):
            log = refused_or(lambda: datasets.read(path))
    assert len(log) == rows
    return "read"
