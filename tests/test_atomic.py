"""Atomic replacement: permissions, temporary files that were left, and two who write at once."""

import errno
import os
import subprocess
import sys
import textwrap
import threading

import pytest

from safecf.atomic import check_replaceable, replace_file, replacing


def names(folder):
    return sorted(os.listdir(folder))


def test_a_file_inside_of_another_is_told_once(tmp_path):
    """As of parts that are kept while their file is written."""
    (tmp_path / "file").write_bytes(b"")
    with (
        pytest.raises(NotADirectoryError, match=r"cannot write the file: Not a .*whole'$") as found,
        replacing(tmp_path / "whole"),
    ):
        replace_file(tmp_path / "file" / "part", b"")
    assert str(found.value).count("untouched") == str(found.value).count("cannot write") == 1


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_the_permissions_stay(tmp_path, mode):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == mode


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_the_owner_stays(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    os.chown(path, 1234, 4321)
    replace_file(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


def test_a_private_file_is_private_at_any_moment(tmp_path, monkeypatch):
    path, modes = tmp_path / "file", []
    path.write_bytes(b"old")
    path.chmod(0o600)
    works = os.open

    def look(name, flags, mode=0o777):
        descriptor = works(name, flags, mode)
        modes.append(os.fstat(descriptor).st_mode & 0o777)
        return descriptor

    monkeypatch.setattr(os, "open", look)
    replace_file(path, b"new")
    assert modes[0] == 0o600


def killed_while_writing(path):
    """Write in a process that kills itself before the file is complete."""
    script = f"""
        import os, signal
        from safecf.atomic import replace_file
        os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
        replace_file({str(path)!r}, b"lost")
    """
    process = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    assert process.returncode < 0


@pytest.mark.parametrize("name", ["model", "m" * 240, "é[*?]"])
def test_the_next_write_removes_what_a_killed_one_has_left(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"old")
    killed_while_writing(path)
    assert len(names(tmp_path)) == 2
    assert path.read_bytes() == b"old"
    others = [".other.0123456789abcdef.tmp", f".{name[:50]}.notes.tmp"]
    for other in others:
        (tmp_path / other).touch()
    pipe = f".{name[:50]}.0123456789abcdef.tmp"
    os.mkfifo(tmp_path / pipe)  # to open it would take for ever
    others.append(pipe)
    replace_file(path, b"new")
    assert names(tmp_path) == sorted([name, *others])
    assert path.read_bytes() == b"new"


def test_a_write_that_is_not_done_yet_keeps_its_file(tmp_path, monkeypatch):
    """Another one of the same target comes and goes while the first is about to be renamed."""
    path, works = tmp_path / "file", os.fsync
    nested = []

    def meanwhile(descriptor):
        works(descriptor)
        if not nested:
            nested.append(True)
            check_replaceable(path)
            replace_file(path, b"second")
            assert path.read_bytes() == b"second"

    monkeypatch.setattr(os, "fsync", meanwhile)
    replace_file(path, b"first")
    assert path.read_bytes() == b"first"
    assert names(tmp_path) == ["file"]


def test_many_writers_leave_one_whole_file(tmp_path):
    path, problems = tmp_path / "file", []
    contents = [bytes([65 + writer]) * 5000 for writer in range(6)]

    def write(content):
        try:
            for _ in range(40):
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
    for act in (check_replaceable, lambda path: replace_file(path, b"new")):
        with pytest.raises(IsADirectoryError, match="it is a folder"):
            act(tmp_path)
        with pytest.raises(FileNotFoundError, match=r"cannot write the file: .*nowhere.file"):
            act(tmp_path / "nowhere" / "file")
    protected = tmp_path / "protected"
    protected.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match=r"write-protected, give another path.*protected"):
        replace_file(protected, b"new")
    assert protected.read_bytes() == b"old"


def test_file_systems_without_locks_and_without_syncing_folders(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def refuse(*rest):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr("safecf.atomic._fsync_folder", refuse)
    killed_while_writing(tmp_path / "file")
    replace_file(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert len(names(tmp_path)) == 2  # nobody can tell whether the other one is still needed


def test_what_is_written_bit_by_bit_is_there_at_the_end(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"ne")
        assert path.read_bytes() == b"old"
        file.write(b"w")
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("problem", [KeyboardInterrupt, ValueError])
def test_what_is_interrupted_leaves_nothing(tmp_path, problem):
    def write():
        with replacing(tmp_path / "file") as file:
            file.write(b"ne")
            raise problem("halfway")

    with pytest.raises(problem, match="halfway"):
        write()
    assert names(tmp_path) == []
