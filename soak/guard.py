"""What reading hostile bytes may do: return, or raise an error of ours; nothing else."""

import dis
import os
import resource
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any, TypeVar

import safecf
from safecf.data.reading.layout import ColumnError
from safecf.errors import FileFormatError, ModelFitError

T = TypeVar("T")

# Exactly these: UnicodeDecodeError, ArrowInvalid and JSONDecodeError are a ValueError, too.
OURS = (FileFormatError, ColumnError, ValueError, TypeError)
LONGEST_MESSAGE = 2000

PACKAGE = str(Path(safecf.__file__).parent)
LIBRARIES = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
TRUSTED = (PACKAGE, *LIBRARIES, *filter(None, sys.path), "<frozen")
NEVER = {
    *("os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "pty.spawn"),
    *("subprocess.Popen", "socket.connect", "socket.bind", "pickle.find_class"),
    *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod", "os.link", "os.symlink"),
    "shutil.rmtree",
}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Refused(Exception):  # noqa: N818 - an outcome
    """An error of ours, which is what damaged bytes should end in."""


def refused_or(
    read: Callable[[], T], name: str = "", longest: int = LONGEST_MESSAGE, *, writes: bool = False
) -> T:
    """Return what `read` does; raise `Refused` for an error of ours that names the file.

    Any other error is raised as it is: it breaks the promise. So does a message that is longer
    than `longest`, which has repeated what is in the file, and code that is run or a file that is
    written, unless the function `writes`.
    """
    try:
        with nullcontext() if writes else no_code_is_run():
            return read()
    except Exception as problem:
        if not is_ours(problem):
            raise
        text = str(problem)
        assert text.strip(), "the error says nothing"
        assert len(text) < longest, f"the error has {len(text):,} characters"
        assert name in text, f"the error does not name the file {name}: {text}"
        raise Refused(type(problem).__name__) from problem


def is_ours(problem: BaseException) -> bool:
    """Whether an error was raised by a `raise` of the library, or names a file and its problem."""
    if isinstance(problem, OSError) and problem.errno and problem.filename:
        return True
    if isinstance(problem, OSError) and type(problem).__module__ != "builtins":
        return False
    known = type(problem) in OURS or isinstance(problem, OSError | ModelFitError | MemoryError)
    return known and _raised_by_us(problem.__traceback__)


def _raised_by_us(trace: TracebackType | None) -> bool:
    """Whether the innermost frame is the library's, at a `raise`: no call of another library."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not trace.tb_frame.f_code.co_filename.startswith(PACKAGE):
        return False
    operation = dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]]
    return operation in ("RAISE_VARARGS", "RERAISE")


_watching: list[list[str]] = []


@contextmanager
def no_code_is_run() -> Iterator[None]:
    """Raise if the block imports or runs code from elsewhere, or writes a file."""
    _install()
    seen: list[str] = []
    _watching.append(seen)
    try:
        yield
    finally:
        _watching.remove(seen)
        assert not seen, f"forbidden while a file is read: {seen[:3]}"


def _install(installed: list[bool] = []) -> None:  # noqa: B006 - a hook cannot be removed
    if not installed:
        installed.append(True)
        sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and _is_forbidden(event, arguments):
        _watching[-1].append(f"{event}{arguments!r}"[:300])


def _is_forbidden(event: str, arguments: tuple[Any, ...]) -> bool:
    if event in NEVER:
        return True
    if event == "open":
        path, _, flags = arguments
        written = isinstance(flags, int) and flags & WRITING
        return bool(written) and "__pycache__" not in str(path) and str(path) != os.devnull
    if event == "exec" and isinstance(arguments[0], CodeType):
        return not (arguments[0].co_filename.startswith(TRUSTED) or _importing())
    if event == "import":
        return bool(arguments[1]) and not str(arguments[1]).startswith(TRUSTED)
    return False


def _importing() -> bool:
    """Whether a module is being imported; dataclasses and named tuples run code of their own."""
    frame = sys._getframe()
    while frame.f_back is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


@contextmanager
def memory_below(limit: int) -> Iterator[None]:
    """Raise if the resident memory rises by more than so many bytes within the block."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the highest so far
    before = _status("VmRSS")
    yield
    grown = _status("VmHWM") - before
    assert grown <= limit, f"it took {grown / 2**20:,.0f} MiB; declared are {limit / 2**20:,.0f}"


def _status(key: str) -> int:
    """Return a number of /proc/self/status, in bytes."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
