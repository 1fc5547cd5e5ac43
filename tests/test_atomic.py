"""Atomic replacement: a file is whole or untouched, whatever fails, dies or writes at once."""

import errno
import os
import stat
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safecf.atomic import check_replaceable, replace_file, replacing
from tests.helpers import refused

fcntl = pytest.importorskip("fcntl")

OLD, NEW = b"old", b"new" * 1000
STALE = ".{}.0123456789abcdef.tmp"  # a temporary file's name
CALLS = [(os, name) for name in ("open", "fsync", "replace", "fchmod", "unlink", "listdir")]
CALLS += [(fcntl, "flock")]
# A failure of these calls costs nothing but durability or a file that was left.
OPTIONAL = {"flock", "listdir", "open folder", "fsync folder"}
DURABLE = ["fsync file", "replace", "open folder", "fsync folder"]


def names(folder):
    return sorted(os.listdir(folder))


@contextmanager
def watched(look):
    """Call `look` with the name and the first argument of every system call, before it is made."""

    def watching(name, call):
        def made(first, *rest, **options):
            kind = ""
            if name in ("open", "fsync"):
                kind = " folder" if stat.S_ISDIR(mode_of(first)) else " file"
            if name != "unlink" or os.path.lexists(first):
                look(name + kind, first)
            return call(first, *rest, **options)

        return made

    with pytest.MonkeyPatch.context() as patch:
        for module, name in CALLS:
            patch.setattr(module, name, watching(name, getattr(module, name)))
        yield


def mode_of(file):
    return os.stat(file).st_mode if isinstance(file, int) or os.path.exists(file) else 0


def test_a_file_is_durable_before_its_name_is(tmp_path):
    """Content to disk, renamed, name to disk: a power cut leaves the old or the new file."""
    path, calls = tmp_path / "file", []
    path.write_bytes(OLD)
    owner = (1234, 4321) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(path, *owner)

    def look(name, first):
        calls.append(name)
        assert name != "fsync file" or os.fstat(first).st_size == len(NEW)

    with watched(look):
        replace_file(path, NEW)
    assert [each for each in calls if each in DURABLE] == DURABLE
    assert (path.stat().st_uid, path.stat().st_gid) == owner


@given(
    nth=st.integers(0, 11),
    problem=st.sampled_from([OSError(errno.EIO, "broken"), KeyboardInterrupt("broken")]),
    mode=st.sampled_from([None, 0o600, 0o640, 0o755]),
    stale=st.booleans(),
)
def test_whichever_call_fails_the_file_is_whole_or_untouched(nth, problem, mode, stale):
    calls = []

    def look(name, first):
        calls.append(name)
        if mode is not None:  # a private file is private at any moment
            modes = [each.stat().st_mode & 0o777 for each in path.parent.glob(".*")]
            assert set(modes) <= {0o600, mode}
        if len(calls) == nth + 1:
            raise OSError(errno.ENOLCK, "no locks") if name == "flock" else problem

    with tempfile.TemporaryDirectory() as folder:
        path, left = Path(folder, "file"), Path(folder, STALE.format("file"))
        if mode is not None:
            path.write_bytes(OLD)
            path.chmod(mode)
        if stale:
            left.touch(0o600)
        found = None
        try:
            with watched(look):
                replace_file(path, NEW)
        except (OSError, KeyboardInterrupt) as caught:
            found = caught
        failed, before = "".join(calls[nth : nth + 1]), calls[:nth]
        optional = failed in {"", *OPTIONAL} or (failed == "unlink" and "open file" not in before)
        stops = isinstance(problem, KeyboardInterrupt) and failed not in ("", "flock")
        assert (found is None) == (optional and not stops)
        if isinstance(found, OSError):
            assert str(found).endswith(f"what was there before is untouched: '{path}'")
        replaced = found is None or "replace" in before
        content = path.read_bytes() if path.exists() else None
        assert content == (NEW if replaced else None if mode is None else OLD)
        if mode is not None:
            assert path.stat().st_mode & 0o777 == mode
        assert set(names(folder)) <= {"file", *([left.name] if stale else [])}
        replace_file(path, NEW)
        assert names(folder) == ["file"]


@pytest.mark.parametrize("name", ["model", "m" * 240, "é[*?]"])
def test_the_next_write_removes_what_a_killed_one_has_left(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(OLD)
    script = (
        "import os, sys, safecf.atomic; os.fsync = lambda _: os.kill(os.getpid(), 9); "
        "safecf.atomic.replace_file(sys.argv[1], b'lost')"
    )
    assert subprocess.run([sys.executable, "-c", script, path], check=False).returncode == -9
    assert len(names(tmp_path)) == 2
    assert path.read_bytes() == OLD
    others = [STALE.format("other"), f".{name[:50]}.notes.tmp", STALE.format(name[:50])]
    for other in others[:2]:
        (tmp_path / other).touch()
    os.mkfifo(tmp_path / others[2])  # to open it would take for ever
    replace_file(path, NEW)
    assert names(tmp_path) == sorted([name, *others])
    assert path.read_bytes() == NEW


def test_many_writers_leave_one_whole_file(tmp_path):
    path, problems = tmp_path / "file", []
    contents = [bytes([65 + writer]) * 5000 for writer in range(6)]

    def write(content):
        try:
            for _ in range(40):
                check_replaceable(path)  # which removes nothing that another one still writes
                replace_file(path, content)
        except OSError as problem:
            problems.append(problem)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert path.read_bytes() in contents
    assert names(tmp_path) == ["file"]


def test_what_is_no_regular_file_is_written_into(tmp_path):
    """A pipe stands for all devices: to replace /dev/null would break the machine."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_replaceable(pipe)
    with pytest.raises(OSError, match=r"^\[Errno 6\] cannot write the file: .*pipe"):
        replace_file(pipe, b"nobody reads it")
    content = b"more than a pipe holds" * 10_000
    with (
        open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as file,
        pipe.open("wb"),  # without any writer, reading would end before ours comes
    ):
        os.set_blocking(file.fileno(), True)
        writer = threading.Thread(target=lambda: replace_file(pipe, content))
        writer.start()
        assert file.read(len(content)) == content
        writer.join()
    assert pipe.is_fifo()
    assert names(tmp_path) == ["pipe"]


def test_what_cannot_be_replaced_is_named(tmp_path, monkeypatch):
    circle, protected = tmp_path / "circle", tmp_path / "protected"
    circle.symlink_to(circle)
    protected.write_bytes(OLD)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    for path, error, words in (
        (tmp_path, IsADirectoryError, "it is a folder, give the path of a file"),
        (circle, OSError, "its links lead in a circle, give another path"),
        (protected, PermissionError, "it is write-protected, give another path"),
    ):
        for act in (check_replaceable, lambda at: replace_file(at, NEW)):
            with refused(error, "cannot write the file", words, path):
                act(path)
    assert protected.read_bytes() == OLD
    with pytest.raises(FileNotFoundError, match=r"cannot write the file: .*nowhere.file"):
        check_replaceable(tmp_path / "nowhere" / "file")


def test_a_block_is_written_at_its_end(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(OLD)
    with replacing(path) as file:
        file.write(NEW[:2])
        assert path.read_bytes() == OLD
        file.write(NEW[2:])
    assert path.read_bytes() == NEW
    with (
        pytest.raises(NotADirectoryError, match=r"cannot write the file: Not a .*whole'$") as found,
        replacing(tmp_path / "whole"),
    ):
        replace_file(path / "part", b"")
    assert str(found.value).count("untouched") == str(found.value).count("cannot write") == 1
    assert names(tmp_path) == ["file"]
