"""`Cached`: what is made from a model's arrays, kept until they are replaced."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np


class Held(NamedTuple):
    """What was made, from what, and whether that was an array that could be written into."""

    source: Any
    made: Any
    frozen: bool


class Cached:
    """Things that take a while to make; neither copies nor files of the model hold them."""

    _cache: Mapping[object, Held] = MappingProxyType({})

    def _cached(self, key: object, source: object, make: Callable[[], Any]) -> Any:
        """Return what was made from `source`, made anew when that is another object.

        An array can only be read from then on: what was made would no longer belong to it.
        """
        held = self._cache.get(key)
        if held is None or held.source is not source:
            frozen = False
            if isinstance(source, np.ndarray) and source.flags.writeable:
                source.flags.writeable, frozen = False, True
            held = Held(source, make(), frozen)
            self._cache = {**self._cache, key: held}
        return held.made

    def _forget(self) -> None:
        """Drop everything, because the model is about to change: its arrays can be written into."""
        for held in self._cache.values():
            if held.frozen:
                held.source.flags.writeable = True
        self._cache = {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_cache"}
