"""Attributes that are computed once."""

import sys
from typing import TYPE_CHECKING, Any

__all__ = ["cached_property"]

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:  # noqa: N801 - it is functools' own
        """As that of Python 3.12, without the lock of 3.11.

        That one is shared by all objects of a class. A process that is forked while another thread
        computes the attribute of one of them would wait for it for ever.
        """

        def __init__(self, compute: Any) -> None:
            self.compute, self.__doc__ = compute, compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            """Compute the attribute, and store it in the place of this."""
            if instance is None:
                return self
            found = vars(instance)[self.name] = self.compute(instance)
            return found
