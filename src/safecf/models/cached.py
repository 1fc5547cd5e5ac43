"""`Cached`: what is made from a model's arrays, kept for as long as they stay the same."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any


class Cached:
    """Things that take a while to make; neither copies nor files of the model hold them."""

    _cache: Mapping[object, tuple[Any, Any]] = MappingProxyType({})

    def _cached(self, key: object, source: object, make: Callable[[], Any]) -> Any:
        """Return what was made from `source`, made anew when that is another object."""
        held = self._cache.get(key)
        if held is None or held[0] is not source:
            held = (source, make())
            self._cache = {**self._cache, key: held}
        return held[1]

    def _forget(self) -> None:
        """Drop everything, because the model has changed."""
        self._cache = {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_cache"}
