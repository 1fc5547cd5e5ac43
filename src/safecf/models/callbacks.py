"""Callbacks of `fit`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from safecf.checks import check_type
from safecf.errors import shown

if TYPE_CHECKING:
    from safecf.models.recommender import Recommender

# callback(epoch, seconds, objective), with epochs counted from 0; True stops the training
Callback = Callable[[int, float, float], object]


@dataclass(frozen=True)
class Watching:
    """A callback that does not use the model, whose factors then stay where training is.

    >>> model.fit(user_items, callback=Watching(print))
    """

    call: Callback
    uses_model: ClassVar[bool] = False

    def __call__(self, epoch: int, seconds: float, objective: float) -> object:
        """Call it."""
        return self.call(epoch, seconds, objective)


def stop_requested(answers: Iterable[object]) -> bool:
    """Whether a callback returned True itself, and not only something truthy."""
    return any(isinstance(answer, bool | np.bool_) and bool(answer) for answer in answers)


def check_watching(
    model: "Recommender", show_progress: object, callback: Callback | None
) -> Callback | None:
    """Check two arguments of `fit`; return the callback, which then must not change options."""
    check_type("show_progress", show_progress, (bool, np.bool_), "give True or False")
    if callback is None:
        return None
    if not callable(callback):
        raise TypeError(f"callback={shown(callback)} cannot be called; give a function, or None")
    before = model.get_params()

    def call(epoch: int, seconds: float, objective: float) -> object:
        answer = callback(epoch, seconds, objective)
        for name, value in model.get_params().items():
            if value != before[name]:
                raise RuntimeError(
                    f"the callback has set {name}={shown(value)} while the model is trained with "
                    f"{name}={shown(before[name])}; set options before fit"
                )
        return answer

    return call
