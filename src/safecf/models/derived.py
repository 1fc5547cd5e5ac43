"""`Derived`: what is made from a model's arrays, kept until they are replaced."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Held(NamedTuple):
    """What was made, from what, and whether that was an array that could be written into."""

    source: Any
    made: Any
    frozen: bool


class Derived:
    """A cache by key; an entry is good as long as its source is the same object."""

    def __init__(self) -> None:
        self._held: dict[object, Held] = {}

    def get(self, key: object, source: object, make: Callable[[], Any]) -> Any:
        """Return what was made from `source`, made anew when that is another object.

        An array becomes read-only: what was made would no longer belong to it.
        """
        held = self._held.get(key)
        if held is None or held.source is not source:
            frozen = False
            if isinstance(source, np.ndarray) and source.flags.writeable:
                source.flags.writeable, frozen = False, True
            held = Held(source, make(), frozen)
            self._held[key] = held
        return held.made

    def clear(self) -> None:
        """Drop everything, because the model is about to change; its arrays are writable again."""
        held, self._held = self._held, {}
        for each in held.values():
            if each.frozen:
                each.source.flags.writeable = True
