"""`Search`: the trials of one model."""

import contextlib
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from rich.progress import TextColumn

from safecf.caching import cached_property
from safecf.errors import FileFormatError, ParameterWarning, choose, shown, warn
from safecf.evaluation.json_records import shortened
from safecf.measures.tails import whom
from safecf.models.options import check_options
from safecf.models.recommender import Recommender
from safecf.progress import progress_bar
from safecf.tuning.budget import Budget, seconds
from safecf.tuning.objective import Scores
from safecf.tuning.sampler import median_rule, suggest
from safecf.tuning.space import DEFAULT_RANGES, Around, Range, Space, check_range
from safecf.tuning.storage import Study
from safecf.tuning.trials import (
    COMPLETE,
    WARMUP,
    Curve,
    IsHopeless,
    Task,
    Trial,
    best_epoch,
    epochs_of,
    given_options,
    interval,
    pareto_front,
)

EDGE = 0.05  # how near to an end of its range a value is marked
PICKS = ("objective", "mean", "tail")
NOT_SEARCHED = {
    "iterations": "it is the best epoch of every trial; give the most epochs to the model",
    "random_state": "all trials start from the same seed; leave it out",
}


@dataclass(eq=False)
class Search:
    """The search for the options of one model; trial 0 are its defaults.

    Parameters
    ----------
    name
        The model's name in results.
    model
        The model with the options that are fixed.
    task
        The data and the objective, shared with the other models.
    given
        Ranges that replace or add to the default ones; None for an option that is not searched.
    seed
        Of the proposals.
    study
        Where finished trials are kept.
    budget
        How long to search.
    """

    name: str
    model: Recommender
    task: Task
    given: Mapping[str, Range | None]
    seed: int
    study: Study
    budget: Budget
    trials: list[Trial] = field(default_factory=list, init=False)

    @property
    def tuned_name(self) -> str:
        """The name of the best model in results."""
        return f"{self.name} (tuned)"

    @cached_property
    def ranges(self) -> dict[str, Around | Range]:
        """The ranges by option, some of them around defaults that trial 0 resolves."""
        return searched_ranges(self.model, self.given)

    @cached_property
    def space(self) -> Space:
        """The ranges by option; known after trial 0."""
        centres = self.trials[0].options
        found = {}
        for name, each in self.ranges.items():
            value = centres[name]
            if isinstance(each, Around) and value == math.inf:
                continue  # all losses are equal, so that no bandwidth makes a difference
            known = isinstance(value, int | float) and value > 0
            if isinstance(each, Around) and not known:
                raise ValueError(
                    f"{name}={shown(value)} is no centre of a range; give the range itself, such "
                    "as 0.01 to 1"
                )
            found[name] = each.at(value)
        return found

    @property
    def default(self) -> Scores:
        """Mean and tail of the defaults, after all of their epochs."""
        return list(self.trials[0].curve.values())[-1]

    @property
    def front(self) -> list[Trial]:
        """The trials that are best in mean, in tail, or in between."""
        return pareto_front(self.trials)

    def gain(self, trial: Trial) -> float:
        """Return the objective's gain over the defaults; -inf if training failed."""
        if trial.scores is None:
            return -math.inf
        return self.task.objective.gain(trial.scores, self.default)

    def pick(self, how: str | int = "objective") -> Trial:
        """Return the best trial by the objective, by mean or tail alone, or the one of a number."""
        if isinstance(how, int):
            found = [each for each in self.trials if each.number == how and each.scores]
            if not found:
                raise ValueError(f"pick={how}: {self.name} has no such trained trial; try pick=0")
            return found[0]
        choose("pick", how, dict.fromkeys(PICKS))
        if how == "objective":
            return max(self.trials, key=self.gain)
        return self.front[-1 if how == "mean" else 0]

    def edges(self, trial: Trial) -> list[str]:
        """Return the options with values in the first or the last 5 % of a range.

        Ends beyond which the option has no meaning, such as a share of 1, are left out.
        """
        found = []
        for name, each in self.space.items():
            value = trial.options[name]
            place = each.place(value) if each.contains(value) else None
            if place is None or EDGE <= place <= 1 - EDGE:
                continue
            with contextlib.suppress(ValueError):
                check_options({name: each.wider()[place > 0.5]}, type(self.model))
                found.append(name)
        return found

    def make(self, trial: Trial) -> Recommender:
        """Return a model, not fitted yet, with the options of a trial up to its best epoch."""
        options = {} if trial.number == 0 else dict(trial.options)
        if "iterations" in self.model.get_params():
            options["iterations"] = trial.epochs
        return self.make_default(**options)

    def make_default(self, **options: Any) -> Recommender:
        """Return the model, not fitted yet; `options` replace its own."""
        return type(self.model)(**(self.model.get_params() | options))

    def run(self, *, show_progress: bool) -> None:
        """Run trials until the budget is spent, after those that the study has already."""
        self.trials = self.budget.within(self.study.trials)
        if self.trials:
            self._check_trials()
            self.study.check_space(self.space)
        columns = (TextColumn("{task.fields[numbers]}"),)
        with progress_bar(self.name, 0, 1000, *columns, show=show_progress, numbers="") as draw:
            while not self.budget.is_spent(self.trials):
                number, begin = len(self.trials), time.perf_counter()

                def show(epoch: int, number: int = number, begin: float = begin) -> None:
                    text = f"trial {number}, epoch {epoch}  {self._progress(begin)}"
                    draw(round(1000 * self.budget.share(self.trials)), numbers=text)

                show(0)
                trial = self._first(show) if number == 0 else self._next(number, show)
                self.trials.append(trial)
                self.study.append(trial, self.space)
                if number == 0:
                    self.study.check_space(self.space)
                    self._warn_of_zeros()
            draw(1000, numbers=f"{len(self.trials)} trials  {self._best()}")

    def _check_trials(self) -> None:
        """Raise if a trial of the study has not the options that are searched."""
        for trial in self.trials:
            wanted = self.space if trial.number else self.ranges
            try:
                if trial.options.keys() != wanted.keys():
                    raise ValueError(f"its options are not {', '.join(wanted)}")
                check_options(trial.options, type(self.model))
            except (TypeError, ValueError) as problem:
                raise FileFormatError(
                    f"{self.study.path}, trial {trial.number}: {shortened(str(problem))}; choose "
                    "another study"
                ) from problem

    def _first(self, show: Any) -> Trial:
        """Run the defaults; an error is the caller's."""
        model = self.make_default()
        begin = time.perf_counter()
        curve, _ = self.task.run(model, _showing(show, lambda curve: False))
        default = list(curve.values())[-1]
        epochs = best_epoch(curve, self.task.objective, default)
        values = model.get_params() | dict(model.resolved)
        options = {name: values[name] for name in self.ranges}
        taken = time.perf_counter() - begin
        return Trial(0, options, COMPLETE, epochs, curve[epochs], curve, taken)

    def _next(self, number: int, show: Any) -> Trial:
        """Run the options that are proposed next."""
        objective = self.task.objective
        scored = [each for each in self.trials if each.scores is not None]
        tried = [(each.options, objective.values(each.scores)) for each in scored if each.scores]
        (options,) = suggest(self.space, tried, 1, (self.seed, number))
        warmup = WARMUP * interval(epochs_of(self.model))
        complete = [self._gains(each.curve) for each in scored if each.state == COMPLETE]
        rule = median_rule(complete, warmup)
        is_hopeless = _showing(show, lambda curve: rule(self._gains(curve)))
        model = self.make_default(**options)
        return self.task.try_options(number, options, model, self.default, is_hopeless)

    def _gains(self, curve: Curve) -> dict[int, float]:
        objective = self.task.objective
        return {epoch: objective.gain(each, self.default) for epoch, each in curve.items()}

    def _warn_of_zeros(self) -> None:
        """Warn if the tail tells nothing, as all of its users score zero."""
        objective = self.task.objective
        if objective.kind != "mean" and self.default.tail == 0:
            warn(
                f"{objective.metric} is 0 for {whom(objective.level)} of the validation users with "
                f"the default {self.name}, so that the tail may tell nothing; try a larger tail, "
                "or a metric over the whole ranking, such as auc",
                ParameterWarning,
            )

    def _best(self) -> str:
        if not self.trials:
            return ""
        best = self.pick()
        scores = best.scores or self.default
        return f"best mean {scores.mean:.4f} tail {scores.tail:.4f} (trial {best.number})"

    def _progress(self, begin: float) -> str:
        """Return the best so far, and how long the rest takes."""
        if not self.trials:
            return ""
        spent = seconds(self.trials)
        left = math.inf if self.budget.minutes is None else 60 * self.budget.minutes - spent
        if self.budget.trials is not None:
            missing = self.budget.trials - len(self.trials)
            left = min(left, missing * spent / len(self.trials))
        left = max(left - (time.perf_counter() - begin), 0)
        total = "" if self.budget.trials is None else f"/{self.budget.trials}"
        return (
            f"{len(self.trials)}{total} done  {self._best()}  {timedelta(seconds=round(left))} left"
        )

    def summary(self) -> str:
        """Say what the best trial so far is."""
        if not self.trials:
            return f"{self.name}: no trial is finished"
        best = self.pick()
        options = ", ".join(f"{name}={shown(value)}" for name, value in best.options.items())
        count = f"{len(self.trials)} trial{'s' * (len(self.trials) != 1)}"
        return f"{self.name}: {count}, {self._best()}: {options}"


def _showing(show: Any, rule: IsHopeless) -> IsHopeless:
    """Return the rule, which also shows the last epoch of the curve."""

    def is_hopeless(curve: Curve) -> bool:
        show(max(curve))
        return rule(curve)

    return is_hopeless


def searched_ranges(
    model: Recommender, given: Mapping[str, Range | None]
) -> dict[str, Around | Range]:
    """Return the default ranges of options that are not fixed, and those that are given."""
    kind, known, fixed = type(model), model.get_params(), given_options(model)
    for name, each in given.items():
        choose(f"option of {kind.__name__}", name, known)
        if each is None:
            continue
        check_range(name, each)
        if name in NOT_SEARCHED:
            raise ValueError(f"{name} is not searched: {NOT_SEARCHED[name]}")
        for value in each.grid():
            check_options({name: value}, kind)
    found: dict[str, Around | Range | None] = {
        name: each for name, each in DEFAULT_RANGES.items() if name in known and name not in fixed
    }
    found |= given
    chosen = {name: each for name, each in found.items() if each is not None}
    if not chosen:
        raise ValueError(
            f"there is nothing to search for {kind.__name__}, as all options are fixed; fix fewer, "
            "or give a range"
        )
    return chosen
