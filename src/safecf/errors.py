"""Errors and warnings; each message says what is wrong, where, and what to try."""

import difflib
import re
import sys
import warnings
from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")

# Scalars as NumPy 2 writes them: np.int64(1), np.str_('a'), np.True_
SCALAR = re.compile(r"\bnp\.(?:\w+\(([^()]*)\)|(True|False)_)")


class ParameterWarning(UserWarning):
    """The input had to be converted, or an option looks like a mistake."""


class ConvergenceWarning(UserWarning):
    """Training went on, but its result should not be trusted."""


class ModelFitError(Exception):
    """Training failed with these settings on this data."""


class SolveError(ModelFitError):
    """A row's linear system could not be solved; `row` is its number, if one is to blame."""

    row: int | None = None

    @classmethod
    def at(cls, row: int, ridge: float) -> "SolveError":
        """Return the error of a row, with a remedy."""
        remedy = "raise" if ridge < 1 else "lower"
        found = cls(
            f"row {row}: its system is not positive definite in float32 (ridge {ridge:g}); "
            f"{remedy} regularization, and look for huge or non-finite weights"
        )
        found.row = row
        return found

    @classmethod
    def of_gramian(cls) -> "SolveError":
        """Say that a Gramian is not finite, and what to try."""
        return cls(
            "the Gramian is beyond float32: lower init_std or unobserved_weight, or scale the "
            "weights of the interactions"
        )


class DivergenceError(SolveError):
    """Gradient descent diverged: the step size is too large."""


class ChangedDataError(ValueError):
    """A data set that is read again has other rows than it had before."""


class NotFittedError(ValueError, AttributeError):
    """The model was used before `fit`."""


class FileFormatError(ValueError):
    """A model or checkpoint file is damaged, of another format, or of another version."""


def choose(kind: str, name: object, table: Mapping[str, T]) -> T:
    """Return `table[name]`; if it is unknown, raise with the known names and the closest one."""
    if isinstance(name, str) and name in table:
        return table[name]
    known = ", ".join(repr(key) for key in table)
    near = difflib.get_close_matches(str(name).lower(), list(table), n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"unknown {kind} {shown(name)}: {hint}known are {known}")


def shown(value: object, longest: int = 60) -> str:
    """Return repr(value) in one line, shortened; NumPy's scalars are written as Python's.

    >>> shown("abcdef", longest=4)
    "'abcd…'"
    >>> shown([np.int64(1), np.str_("a")])
    "[1, 'a']"
    """
    if isinstance(value, str):
        return repr(str(value if len(value) <= longest else value[:longest] + "…"))
    text = " ".join(SCALAR.sub(r"\1\2", repr(value)).split())
    return text if len(text) <= longest else text[:longest] + "…"


def message_of(error: Exception) -> str:
    """Return what an error says, without the number of the system's errors.

    >>> message_of(OSError(28, "No space left on device", "best.csv"))
    'best.csv: No space left on device'
    """
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])  # str(error) is the `repr` of it
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def warn(message: str, category: type[Warning]) -> None:
    """Warn, with the location of the first caller outside the library."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals["__name__"].split(".")[0] == "safecf":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
