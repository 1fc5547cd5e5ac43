"""Atomic replacement of files."""

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":  # where temporary files of killed processes stay
    import fcntl

PREFIX = 50  # characters of the target's name in that of its temporary files

UNTOUCHED = "what was there before is untouched"


def replace_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` to the file; if that fails or is interrupted, its old content stays.

    >>> replace_file("numbers.json", b"[1, 2]")
    """
    with replacing(path) as file:
        file.write(content)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a binary file that takes the place of `path` when the block ends without an error.

    The file keeps its permissions, and its owner where that is allowed. Links are followed, and
    devices and pipes that somebody reads are written into. Temporary files of the same target that
    killed processes have left are removed.

    >>> with replacing("numbers.json") as file:
    ...     file.write(b"[1, 2]")
    """
    target = Path(os.path.realpath(path))
    with _naming(path):
        if not _is_replaced(target):
            with _opened(target) as file:
                yield file
            return
        with _temporary(target) as (file, temporary):
            yield file
            file.flush()
            os.fsync(file.fileno())
            if sys.platform == "win32":
                file.close()  # Windows does not rename open files
            temporary.replace(target)
        with contextlib.suppress(OSError):  # not every file system can do it
            _fsync_folder(target.parent)


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise if `replace_file` cannot write there, as on a read-only file system.

    It creates a temporary file, and removes it again.

    >>> check_replaceable("numbers.json")
    """
    target = Path(os.path.realpath(path))
    with _naming(path):
        if _is_replaced(target):
            with _temporary(target):
                pass


def _is_replaced(target: Path) -> bool:
    """Whether to replace the target: not if it is a device or a pipe. Raise if it is protected."""
    if target.is_symlink():
        raise OSError(errno.ELOOP, "its links lead in a circle, give another path")
    if not target.exists():
        return True
    if target.is_dir():
        raise OSError(errno.EISDIR, "it is a folder, give the path of a file")
    if not os.access(target, os.W_OK):
        raise OSError(errno.EACCES, "it is write-protected, give another path")
    return target.is_file()


def _opened(target: Path) -> BinaryIO:
    """Open a device or a pipe; raise if nobody reads the pipe."""
    file = open(os.open(target, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0)), "wb")  # noqa: SIM115
    os.set_blocking(file.fileno(), True)
    return file


@contextlib.contextmanager
def _naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the path as it was given, and not the temporary file, in errors."""
    try:
        yield
    except OSError as problem:
        reason = problem.strerror or str(problem)
        if not reason.endswith(UNTOUCHED):  # that of a file inside of the block
            reason = f"cannot write the file: {reason}; {UNTOUCHED}"
        raise OSError(problem.errno, reason, os.fspath(path)) from None


@contextlib.contextmanager
def _temporary(target: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """Open a temporary file beside the target; it is locked, and removed if it is still there."""
    _remove_stale(target)
    before = target.stat() if target.exists() else None
    file, temporary = _open_locked(target, 0o666 if before is None else 0o600)
    try:
        with file:
            if before is not None:
                _take_over(file, before)
            yield file, temporary
    finally:
        temporary.unlink(missing_ok=True)


def _prefix(target: Path) -> str:
    return f".{target.name[:PREFIX]}."


def _open_locked(target: Path, mode: int) -> tuple[BinaryIO, Path]:
    """Create a temporary file and lock it."""
    while True:
        temporary = target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}.tmp")
        file = open(temporary, "xb", opener=partial(os.open, mode=mode))  # noqa: SIM115
        _lock(file, wait=True)
        if os.fstat(file.fileno()).st_nlink:
            return file, temporary
        file.close()  # another process took it for a stale one before it was locked


def _take_over(file: BinaryIO, before: os.stat_result) -> None:
    """Give the new file the owner, if that is allowed, and the permissions of the old one."""
    if sys.platform == "win32":
        return
    now = os.fstat(file.fileno())
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        with contextlib.suppress(OSError):
            os.fchown(file.fileno(), before.st_uid, before.st_gid)
    os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))


def _remove_stale(target: Path) -> None:
    """Remove temporary files of the target whose processes have died: nobody has them locked."""
    ours = re.compile(re.escape(_prefix(target)) + r"[0-9a-f]{16}\.tmp")
    with contextlib.suppress(OSError):  # a folder that cannot be listed
        for name in os.listdir(target.parent):
            if ours.fullmatch(name):
                stale = target.with_name(name)
                with contextlib.suppress(OSError):
                    _remove_unlocked(stale)


def _remove_unlocked(stale: Path) -> None:
    """Remove a plain file that nobody has locked; to open a pipe would wait for its other end."""
    if stat.S_ISREG(stale.lstat().st_mode):
        with stale.open("rb") as file:
            if _lock(file, wait=False):
                stale.unlink()


def _lock(file: BinaryIO, *, wait: bool) -> bool:
    """Lock the file until it is closed; False if another process has it, or there are no locks."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _fsync_folder(folder: Path) -> None:
    """Make the new name of a file survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
