"""Trials: a model is trained with some options, and scored on the validation users meanwhile."""

import inspect
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from safecf.caching import cached_property
from safecf.checks import check_list, check_type
from safecf.data.matrices.interactions import Interactions
from safecf.data.splits.held_out import Split
from safecf.defaults import CUTOFFS
from safecf.errors import ConvergenceWarning, ModelFitError, ParameterWarning
from safecf.evaluation import evaluate, parse_metric
from safecf.evaluation.json_records import Record, unsealed
from safecf.models.recommender import Recommender
from safecf.tuning.objective import Objective, Scores

LOOKS = 10  # how often a training is scored on the validation users
WARMUP = 3  # scores before a trial may be pruned
COMPLETE, PRUNED, FAILED = "complete", "pruned", "failed"

Curve = dict[int, Scores]  # by epoch
IsHopeless = Callable[[Curve], bool]


@dataclass(frozen=True)
class Trial:
    """Options that were tried, and how well they serve the validation users.

    Parameters
    ----------
    number
        From 0, which are the model's defaults.
    options
        The options that are searched; of trial 0, the values that "auto" was resolved to.
    state
        "complete"; "pruned", if it was ended early as hopeless; "failed", if training failed.
    epochs
        The best epoch of the curve; 0 if training failed.
    scores
        Mean and tail after that epoch; None if training failed.
    curve
        Mean and tail by epoch.
    seconds
        How long it took.
    error
        Why training failed.
    """

    number: int
    options: dict[str, Any]
    state: str
    epochs: int
    scores: Scores | None
    curve: Curve = field(default_factory=dict)
    seconds: float = 0.0
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the trial as JSON values."""
        curve = [[epoch, *scores] for epoch, scores in self.curve.items()]
        scores = None if self.scores is None else list(self.scores)
        return {**vars(self), "scores": scores, "curve": curve}

    @classmethod
    def from_dict(cls, record: Any, where: str = "trial") -> "Trial":
        """Read what `to_dict` returned, with or without a checksum, and check every part.

        `where` names it in errors.
        """
        given = Record(record, where, "choose another study")
        rows = _numbers(given, "curve", given.list("curve", list), 3)
        found = cls(
            number=given.get("number", int),
            options=given.get("options", dict),
            state=given.get("state", str),
            epochs=given.get("epochs", int),
            scores=None,
            curve={int(epoch): Scores(*both) for epoch, *both in rows},
            seconds=given.number("seconds"),
            error=given.get("error", str),
        )
        if found.state not in (COMPLETE, PRUNED, FAILED):
            raise given.error(f"its state is {found.state!r}")
        if [*found.curve] != [epoch for epoch, *_ in rows]:
            raise given.error("the epochs of its 'curve' are no whole numbers, each once")
        if not found.seconds >= 0:
            raise given.error(f"it took {found.seconds:g} seconds")
        if found.state != FAILED:
            if found.epochs not in found.curve or min(found.curve) < 1:
                raise given.error("'epochs' is no epoch of its 'curve'")
            (scores,) = _numbers(given, "scores", [given.get("scores", list)], 2)
            found = replace(found, scores=Scores(*scores))
        unsealed(given)
        return found


def _numbers(record: Record, key: str, rows: list[list[Any]], size: int) -> list[list[float]]:
    """Return rows of so many finite numbers each."""
    for row in rows:
        values = Record({key: row}, record.where, record.remedy).numbers(key)
        if values.size != size or np.isnan(values).any():
            raise record.error(f"{key!r} holds {row!r}, which are not {size} numbers")
    return rows


def pareto_front(trials: Iterable[Trial]) -> list[Trial]:
    """Return the trials that no other one surpasses in mean or tail without losing in the other.

    They are in the order of their means, the lowest first; of equal ones, the earliest is kept.
    """
    given = check_list("trials", trials, "give a list of trials")
    for each in given:
        check_type("an entry of trials", each, Trial, "give trials of a search")
    scored = [each for each in given if each.scores is not None]
    found: list[Trial] = []
    for each in sorted(scored, key=lambda t: (t.scores[0], t.scores[1], -t.number), reverse=True):
        if not found or each.scores[1] > found[-1].scores[1]:  # type: ignore[index]
            found.append(each)
    return found[::-1]


@dataclass(frozen=True, eq=False)
class Task:
    """What all trials of all models share: the data, prepared once, and the objective."""

    split: Split
    objective: Objective

    @cached_property
    def training(self) -> Interactions:
        """The training data with the original ids."""
        return self.split.training

    def score(self, model: Recommender) -> Scores:
        """Return mean and tail of the validation users."""
        name, cutoff = parse_metric(self.objective.metric)
        cutoffs = (cutoff or CUTOFFS[0],)
        found = evaluate(model, self.split, cutoffs, (1.0,), (name,), on="validation")
        return self.objective.measure(found.scores)

    def run(self, model: Recommender, is_hopeless: IsHopeless | None = None) -> tuple[Curve, bool]:
        """Train a model; return its curve, and whether it was ended because it is hopeless."""
        last = epochs_of(model)
        step = interval(last)
        curve: Curve = {}
        pruned = False

        def look(epoch: int, seconds: float, objective: float) -> bool:
            nonlocal pruned
            done = epoch + 1
            if done % step and done != last:
                return False
            curve[done] = self.score(model)
            pruned = done < last and is_hopeless is not None and is_hopeless(curve)
            return pruned

        with warnings.catch_warnings():
            # settings with which training diverges are part of every search
            for category in (ConvergenceWarning, ParameterWarning):
                warnings.simplefilter("ignore", category)
            model.fit(self.training, show_progress=False, callback=look)
            ended = len(getattr(model, "history", ())) or last
            if not pruned and ended not in curve:  # training has ended by itself
                curve[ended] = self.score(model)
        return curve, pruned

    def try_options(
        self,
        number: int,
        options: dict[str, Any],
        model: Recommender,
        default: Scores,
        is_hopeless: IsHopeless,
    ) -> Trial:
        """Train a model with some options; its errors are recorded."""
        begin = time.perf_counter()
        try:
            curve, pruned = self.run(model, is_hopeless)
        except (ModelFitError, MemoryError, ValueError) as problem:
            seconds = time.perf_counter() - begin
            return Trial(number, options, FAILED, 0, None, seconds=seconds, error=str(problem))
        epochs = best_epoch(curve, self.objective, default)
        state = PRUNED if pruned else COMPLETE
        seconds = time.perf_counter() - begin
        return Trial(number, options, state, epochs, curve[epochs], curve, seconds)


def best_epoch(curve: Curve, objective: Objective, default: Scores) -> int:
    """Return the epoch with the largest gain; of equal ones, the earliest."""
    return max(curve, key=lambda epoch: objective.gain(curve[epoch], default))


def epochs_of(model: Recommender) -> int:
    """Return the number of epochs of a training; 1 for models that have none."""
    return int(getattr(model, "iterations", 1))


def interval(epochs: int) -> int:
    """Return how many epochs lie between two scores."""
    return -(-epochs // LOOKS)


def given_options(model: Recommender) -> dict[str, Any]:
    """Return the options of a model that are not the defaults."""
    defaults = inspect.signature(type(model)).parameters
    return {
        name: value
        for name, value in model.get_params().items()
        if repr(value) != repr(defaults[name].default)
    }
