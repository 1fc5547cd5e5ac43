"""`run`: a command line with errors on one line, and outputs that may break."""

import errno
import functools
import inspect
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from contextvars import ContextVar
from typing import Any, get_args

import typer
from typer.models import ArgumentInfo

from safecf.cli import end_interrupted
from safecf.cli.command_options import flag
from safecf.errors import (
    ConvergenceWarning,
    FileFormatError,
    ModelFitError,
    ParameterWarning,
    message_of,
)
from safecf.texts import visible

USER_ERROR = 2  # exit code
BROKEN_PIPE = 128 + 13  # as if SIGPIPE had ended the process
# errors that the user can correct: shown as one line, without a traceback
USER_ERRORS = (
    ValueError,
    TypeError,
    KeyError,
    OSError,
    ImportError,  # an extra is not installed
    MemoryError,
    NotImplementedError,  # of this kind of model
    FileFormatError,
    ModelFitError,
)
# What the library calls an option, where that is not its own name; () for what it has no name for.
ARGUMENTS = {
    "tail": ("level",),
    "share": ("share", "holdout_share"),
    "min_user_interactions": ("min_user_interactions", "min_interactions"),
    "duplicates": ("duplicates", "way to treat duplicates"),
    **dict.fromkeys(("model", "seed", "out", "quiet", "json", "as_json"), ()),
}
# Advice of the library, and what to do on the command line instead.
COMMANDS = {
    "train it on split.training": "train it by safecf fit --heldout N and evaluate with the same N",
    "read it with safecf.load": "give it to safecf recommend, or leave it out",
}
# those of the running command
_options: ContextVar[Mapping[str, str] | None] = ContextVar("options", default=None)


def run(app: typer.Typer) -> None:
    """Run a command line, and exit.

    An error that the user can fix is one line on stderr, and exit code 2. If standard output
    breaks, the command goes on without it, and exits with 141 if it was a pipe that nobody reads
    any more, else with an error.
    """
    out, err = Stream(sys.stdout), Stream(sys.stderr)
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        stack.enter_context(remembered_interrupts())
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        for category in (ParameterWarning, ConvergenceWarning):
            warnings.simplefilter("default", category)
        warnings.showwarning = _show_warning
        try:
            status = _status(app)
            if status == 0:
                check_interrupt()
        except KeyboardInterrupt as interrupt:
            end_interrupted(interrupt)
        problem = out.close()
        if problem is not None and not isinstance(problem, BrokenPipeError):
            reason = problem.strerror or problem
            _complain(f"cannot write to standard output: {reason}; write it to another place")
        if problem is not None and status == 0:
            status = BROKEN_PIPE if isinstance(problem, BrokenPipeError) else USER_ERROR
        err.close()
    sys.exit(status)


def _status(app: typer.Typer) -> Any:
    """Run the commands and return the exit code."""
    try:
        return app(prog_name="safecf", standalone_mode=False) or 0
    except SystemExit as end:
        return end.code or 0
    except Exception as error:
        check_interrupt()  # which foreign code may have turned into another error
        # typer's own class for wrong use depends on its version
        if hasattr(error, "format_message"):
            _complain_of_use(error)
        elif isinstance(error, USER_ERRORS):
            _complain(as_options(message_of(error)))
        else:
            raise
        return USER_ERROR


def _complain_of_use(error: Any) -> None:
    """Say what is wrong with the command as it was typed, or show the help if it was empty."""
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.format_message())
        return
    message = " ".join(error.format_message().split()).rstrip(".")
    context = getattr(error, "ctx", None)
    command = "safecf" if context is None else context.command_path
    if re.match(r"-\d", str(getattr(error, "option_name", ""))):
        message += "; an id that begins with a dash goes behind --, as in -- -5"
    _complain(f"{message[:1].lower()}{message[1:]}; see {command} --help")


def _complain(message: str) -> None:
    print(f"safecf: {visible(message)}", file=sys.stderr)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    _complain(f"warning: {as_options(str(message))}")


def named_options(command: Callable[..., None]) -> Callable[..., None]:
    """Let errors and warnings of a command name its options, where the library names arguments."""

    @functools.wraps(command)
    def run(**given: Any) -> None:
        _options.set(options_of(command))
        command(**given)

    return run


def options_of(command: Callable[..., None]) -> dict[str, str]:
    """Return the options of a command by the library's names for them.

    >>> options_of(fit)["min_rating"], options_of(fit)["level"]
    ('--min-rating', '--tail')
    """
    found: dict[str, str] = {}
    for each in inspect.signature(command).parameters.values():
        if any(isinstance(part, ArgumentInfo) for part in get_args(each.annotation)):
            found |= {"user_items": "the data"} if each.name == "data" else {}
        else:
            found |= dict.fromkeys(ARGUMENTS.get(each.name, (each.name,)), flag(each.name))
    return found


def as_options(message: str, options: Mapping[str, str] | None = None) -> str:
    """Rewrite arguments of the library in a message as options, by default the running command's.

    One that is a plain word has "=" behind it, is the first word, or follows on certain ones.

    >>> as_options("there is no column 'user'; try user='visitor'", {"user": "--user"})
    "there is no column 'user'; try --user 'visitor'"
    """
    for advice, command in COMMANDS.items():
        message = message.replace(advice, command)
    options = _options.get() if options is None else options
    if not options:
        return message
    longest_first = sorted(options, key=len, reverse=True)
    names = "|".join(longest_first)
    no_ids = "|".join(name for name in longest_first if name not in ("user", "item"))
    unmistakable = "|".join(name for name in longest_first if "_" in name) or "(?!)"
    argument = re.compile(
        rf"\b(?P<given>{names})=(?P<value>False\b|(?=[^\s,;]))?"  # level=0
        rf"|^(?P<named>{names})(?= is )"  # heldout is 0; ...
        rf"|(?<=\bunknown )(?P<unknown>{no_ids})(?= ['\"])"  # unknown metric 'recal'
        rf"|((?<=\blower )|(?<=\bids in )|(?<=\(in ))(?P<after>{names})\b"
        rf"|\b(?P<word>{unmistakable})\b"
    )

    def option(found: re.Match[str]) -> str:
        name = next(filter(None, map(found.group, ("given", "named", "unknown", "after", "word"))))
        if found["value"]:
            return options[name].replace("--", "--no-")
        return options[name] + ("" if found["value"] is None else " ")

    return argument.sub(option, message)


class Stream:
    """Standard output or error: it goes quiet once it cannot be written, and remembers why.

    Characters that its encoding does not have are written as escapes. `stream` is None if it was
    closed before the process began; the null device takes its place, and no other file does.
    """

    def __init__(self, stream: Any) -> None:
        self.is_closed = stream is None
        self.stream = open(os.devnull, "w") if stream is None else stream  # noqa: SIM115
        self.problem: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write, unless that has failed before."""
        if self.is_closed:
            self.problem = OSError(errno.EBADF, "it is closed")
        try:
            self._do(self.stream.write, text)
        except UnicodeEncodeError:
            encoding = self.stream.encoding
            known = text.encode(encoding, "backslashreplace").decode(encoding)
            self._do(self.stream.write, known)
        return len(text)

    def flush(self) -> None:
        """Flush, unless writing has failed before."""
        self._do(self.stream.flush)

    def close(self) -> OSError | None:
        """Flush, and return what has failed, if anything has."""
        self.flush()
        if self.problem is not None:
            # what is left in the buffer would fail again when the interpreter ends
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())
        return self.problem

    def _do(self, call: Any, *arguments: Any) -> None:
        if self.problem is None:
            try:
                call(*arguments)
            except OSError as problem:
                self.problem = problem


_interrupted = threading.Event()


def check_interrupt(*_: object) -> None:
    """Raise KeyboardInterrupt if there was one that foreign code has swallowed.

    As destructors and imports inside of native code do. It can be the callback of a training.
    """
    if _interrupted.is_set():
        raise KeyboardInterrupt


@contextmanager
def remembered_interrupts() -> Iterator[None]:
    """Remember Ctrl-C for `check_interrupt`, unless the process ignores it.

    Python need not tell about one that a destructor has swallowed, as it is not lost.
    """
    _interrupted.clear()
    default = signal.default_int_handler
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is not default:
        yield
        return

    def remember(number: int, frame: Any) -> None:
        _interrupted.set()
        default(number, frame)

    tell = sys.unraisablehook

    def tell_others(unraisable: Any) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            tell(unraisable)

    signal.signal(signal.SIGINT, remember)
    sys.unraisablehook = tell_others
    try:
        yield
    finally:
        sys.unraisablehook = tell
        if signal.getsignal(signal.SIGINT) is remember:
            signal.signal(signal.SIGINT, default)
