"""Errors and warnings: each message says what is wrong, where, and what to try."""

import difflib
from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


class ParameterWarning(UserWarning):
    """The input was usable only after a conversion, or an option looks like a mistake."""


class ConvergenceWarning(UserWarning):
    """Training runs, but its result should not be trusted as it is."""


class ModelFitError(Exception):
    """Training cannot go on with these settings on this data."""


class SolveError(ModelFitError):
    """A row's linear system could not be solved."""

    @classmethod
    def at(cls, row: int, ridge: float) -> "SolveError":
        """Say which row, and what to try."""
        return cls(
            f"row {row}: its system is not positive definite (ridge {ridge:g}); raise "
            "regularization, and check the factors and weights for huge or non-finite values"
        )


class NotFittedError(ValueError, AttributeError):
    """The model was asked for a result before `fit`."""


class FileFormatError(ValueError):
    """A model or checkpoint file is damaged, foreign, or from another version."""


def choose(kind: str, name: object, table: Mapping[str, T]) -> T:
    """Return `table[name]`, or say which names there are and which one was probably meant."""
    if isinstance(name, str) and name in table:
        return table[name]
    known = ", ".join(repr(key) for key in table)
    near = difflib.get_close_matches(str(name).lower(), list(table), n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"unknown {kind} {name!r}: {hint}known are {known}")
