"""Callbacks of `fit`."""

from collections.abc import Callable, Iterable

import numpy as np

# callback(epoch, seconds, objective), with epochs counted from 0; True stops the training
Callback = Callable[[int, float, float], object]


def stop_requested(answers: Iterable[object]) -> bool:
    """Whether a callback returned True itself, and not only something truthy."""
    return any(isinstance(answer, bool | np.bool_) and bool(answer) for answer in answers)


def check_callback(callback: object) -> None:
    """Raise unless it is None or callable."""
    if callback is not None and not callable(callback):
        raise TypeError(f"callback={callback!r} cannot be called; give a function, or None")
