"""The files that a command writes: checked before any work, and written before anything is said."""

import os
import stat
import tempfile
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safecf.cli.command_options import DataOptions
from safecf.errors import message_of

Identity = tuple[int, int, str]


@dataclass(frozen=True)
class Target:
    """A file to write: the option that names it, its path, and the function that writes it."""

    option: str
    path: Path
    write: Callable[[], object]


def model_file(path: Path) -> Path:
    """Return the path of a model with .safetensors at its end; raise if it does not name a file."""
    from safecf.models.files import SUFFIX, with_suffix  # noqa: PLC0415

    if path.name in ("", "..", SUFFIX):
        raise ValueError(f"'{path}' does not name a file; give a path such as 'model{SUFFIX}'")
    return with_suffix(path)


def model_target(option: str, path: Path, model: Any) -> Target:
    """Return the target that saves a model; folders on its way are created."""

    def save() -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        model.save(path)

    return Target(option, path, save)


def table_file(path: Path) -> Path:
    """Return the path; raise if its suffix says no format."""
    from safecf.batch import suffix_of  # noqa: PLC0415

    suffix_of(path)
    return path


def check_targets(targets: Iterable[tuple[str, Path | None]], inputs: Iterable[Path] = ()) -> None:
    """Raise if a file cannot be written, is an input, or is the same as another one.

    `targets` are options and their paths. Paths of one file, also through links, are the same, and
    so are names that differ only in case.
    """
    read = {_identity(path): path for path in inputs}
    seen: dict[Identity, tuple[str, Path]] = {}
    for option, path in targets:
        if path is None:
            continue
        if path == Path():  # also what an empty text is parsed to
            raise IsADirectoryError(f"{option} is empty, or this folder; name the file to write")
        _check_writable(path)
        identity = _identity(path)
        if identity in read:
            raise ValueError(
                f"{option} {path} is an input of this command, and would be overwritten; name "
                "another file"
            )
        if identity in seen:
            other, first = seen[identity]
            raise ValueError(f"{other} {first} and {option} {path} are one file; name two")
        seen[identity] = option, path
    for identity, (option, path) in seen.items():
        for other, inner in seen.values():
            if identity in map(_identity, _real(inner).parents):
                raise ValueError(
                    f"{option} {path} would be both a file and the folder of {other} {inner}; name "
                    "another one"
                )


def input_files(data: DataOptions, models: Iterable[str] = ()) -> Iterator[Path]:
    """Yield the files that a command reads: its data, and saved models."""
    from safecf.data.reading.paths import PARQUET, TEXT, find_files  # noqa: PLC0415

    named: list[str | Path] = [*data.data, *([] if data.path is None else [data.path])]
    for given in named:
        try:
            yield from find_files(given, (*PARQUET, *TEXT))
        except OSError:  # the name of a data set; or reading it says what is wrong
            continue
    yield from (Path(spec) for spec in models if os.path.isfile(spec))


def write_all(targets: Iterable[Target]) -> tuple[list[Path], list[Exception]]:
    """Write the files, each even if another one fails; return those written, and the errors."""
    written, problems = [], []
    for each in targets:
        try:
            each.write()
            written.append(each.path)
        except Exception as problem:
            problem.add_note(f"while writing {each.option} {each.path}")
            problems.append(problem)
    return written, problems


def raise_all(problems: list[Exception]) -> None:
    """Raise the error, if there is one; several as one, with files of the same error together."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        files: dict[str, list[str]] = {}
        for each in problems:
            name = getattr(each, "filename", None)
            reason = message_of(each).removeprefix(f"{name}: ")
            files.setdefault(reason, []).extend([] if name is None else [str(name)])
        told = (f"{', '.join(names)}: {why}" if names else why for why, names in files.items())
        raise OSError("; ".join(told)) from problems[0]


def _check_writable(path: Path) -> None:
    """Raise if no file can be written at this path; no file is created."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = None
    except OSError as problem:
        raise _cannot_write(path, problem.strerror or str(problem)) from None
    if mode is not None and stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path} is a folder; name the file to write")
    if mode is not None and not stat.S_ISREG(mode):
        raise _cannot_write(path, "it is no regular file")
    if mode is not None and not os.access(path, os.W_OK):
        raise _cannot_write(path, "it is write-protected")
    folder = next(each for each in _real(path).parents if each.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        reason = problem.strerror if folder.is_dir() else f"{folder} is a file"
        raise _cannot_write(path, reason or str(problem)) from None


def _cannot_write(path: Path, reason: str) -> OSError:
    return OSError(f"cannot write {path}: {reason}; choose another place")


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _identity(path: Path) -> Identity:
    """Device and inode of the file, or of the nearest folder that exists with the rest's name."""
    real = _real(path)
    for each in (real, *real.parents):
        try:
            found = each.stat()
        except OSError:
            continue
        rest = str(real.relative_to(each))
        return found.st_dev, found.st_ino, unicodedata.normalize("NFC", rest).casefold()
    return 0, 0, str(real)
