"""`Derived`: a cache of what is computed from a model's arrays."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np


class Held(NamedTuple):
    """A cached value, its source, and whether the source was a writable array."""

    source: Any
    made: Any
    frozen: bool


class Derived:
    """A cache by key; an entry is good as long as its source is the same object."""

    def __init__(self) -> None:
        self._held: dict[object, Held] = {}
        self._lock = threading.RLock()

    def get(self, key: object, source: object, make: Callable[[], Any]) -> Any:
        """Return the value made from `source`; make it anew if `source` is another object.

        A source array becomes read-only, because a write would make the value stale.
        """
        held = self._held.get(key)
        if held is not None and held.source is source:
            return held.made
        with self._lock:
            held = self._held.get(key)
            if held is None or held.source is not source:
                made = make()
                frozen = isinstance(source, np.ndarray) and source.flags.writeable
                if frozen:
                    source.flags.writeable = False  # type: ignore[attr-defined]
                self._held[key] = held = Held(source, made, frozen)
        return held.made

    def drop(self, source: object) -> None:
        """Drop what was made from this source, before the model gets another one."""
        with self._lock:
            self._held = {
                key: held for key, held in self._held.items() if held.source is not source
            }

    def clear(self) -> None:
        """Drop everything before the model changes; its arrays are writable again."""
        with self._lock:
            held, self._held = self._held, {}
            for each in held.values():
                if each.frozen:
                    with suppress(ValueError):  # an unpickled array stays read-only, and is copied
                        each.source.flags.writeable = True
