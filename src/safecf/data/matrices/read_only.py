"""`ReadOnly`: records whose arrays can only be read."""

from dataclasses import fields
from typing import Any

import numpy as np


class ReadOnly:
    """Base of frozen dataclasses: their arrays can only be read, also in copies and from pickles.

    The arrays are views of those that are given, which nobody else may write to.
    """

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray) and value.flags.writeable:
                view = value.view()
                view.flags.writeable = False
                object.__setattr__(self, name, view)

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickled arrays are writable: by way of the constructor, they are made read-only again.
        values = tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
        return type(self), values
