"""Searches for the settings of a model: rounds of short trainings, then repetitions of the best."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from reproduction.base import Cell, Result, canonical
from reproduction.data import SEED
from reproduction.tasks.trial import trial
from safecf.defaults import LEVEL, METRIC
from safecf.errors import choose
from safecf.models import MODELS
from safecf.tuning import Objective, Space, grid, suggest

LEVELS = (1.0, LEVEL)
MEAN = Objective(METRIC, "mean")
TAIL = Objective(METRIC, "tail")
BOTH = Objective(METRIC, "both")

TRIALS = 64  # of a whole run
ROUNDS = 3  # further rounds, proposed by TPE from the results of all before
KEPT, STARTS = 3, 3  # how many settings are repeated, and with how many seeds
SAME = 5e-4  # smaller differences of the objective count as none: about the noise of three seeds

ModelOptions = dict[str, Any]


@cache
def has_option(model: str, option: str) -> bool:
    """Whether a model, given by the name of its class, has an option."""
    return option in choose("model", model, MODELS)().get_params()


def half(trials: int) -> int:
    """Return the size of a further round, given that of the first."""
    return -(-trials // 2)


@dataclass(frozen=True)
class Search:
    """A model, the ranges of its options, and the objective for the validation users.

    Parameters
    ----------
    which, name, model
        The set and the name of the preset that it finds, and the class of the model.
    space, fixed
        The ranges of options, and the options that are not varied.
    epochs
        The epochs after which short trainings are scored; the last one ends them.
    final
        The same for repetitions; the best of them is the number of iterations of the preset.
    objective
        What is maximised.
    trials
        The most random trials of the first round; each further round, proposed by TPE, has half as
        many. None means the whole grid in a single round.
    sizes
        Numbers of factors with which the best are repeated; empty: only that of the trial.
    start
        The options of the first random trial: the model's defaults. They are repeated in any case.
    """

    which: str
    name: str
    model: str
    space: Space
    fixed: ModelOptions = field(default_factory=dict)
    epochs: tuple[int, ...] = (20,)
    final: tuple[int, ...] = (50,)
    objective: Objective = MEAN
    trials: int | None = None
    sizes: tuple[int, ...] = ()
    start: ModelOptions | None = None

    def first(self, trials: int) -> list[ModelOptions]:
        """Return the first round: random options, or the grid, or a part of it in a smaller run."""
        if self.trials is not None:
            known = [] if self.start is None else [self.start]
            count = min(trials, self.trials) - len(known)
            found = known + suggest(self.space, [], count, seed=0)
        else:
            found = grid(self.space)
            if trials < TRIALS:
                order = np.random.default_rng(0).permutation(len(found))
                found = [found[place] for place in order[:trials]]
        return [{**self.fixed, **each} for each in found]

    def further(
        self, tried: list[ModelOptions], values: list[float], count: int, number: int
    ) -> list[ModelOptions]:
        """Return a further round, of which the first has number 0, given what was tried."""
        known = [(each, [value]) for each, value in zip(tried, values, strict=True)]
        found = suggest(self.space, known, count, seed=1 + number)
        return [{**self.fixed, **each} for each in found]

    @property
    def budget(self) -> int:
        """The number of settings that a whole search tries."""
        if self.trials is None:
            return len(grid(self.space))
        return self.trials + ROUNDS * half(self.trials)

    @property
    def largest(self) -> int | None:
        """The largest number of factors; None for models that have none."""
        drawn = self.space["factors"].grid() if "factors" in self.space else []
        known = [*self.sizes, *drawn, self.fixed.get("factors", 0)]
        return max(known) or None

    @property
    def starts(self) -> range:
        """The seeds of repetitions, none of which is that of the trials."""
        return range(1, 1 + STARTS) if has_option(self.model, "random_state") else range(1)

    def cell(self, options: ModelOptions, data: str, seed: int = 0, *, final: bool = False) -> Cell:
        """Return the cell of a trial, or of a repetition if `final`."""
        epochs = self.final if final else self.epochs
        if has_option(self.model, "iterations"):
            options = {**options, "iterations": max(epochs)}
        settings = {
            "data": data,
            "split": SEED,
            "model": self.model,
            "options": options,
            "seed": seed,
            "epochs": list(epochs),
        }
        return Cell(trial, settings)


class Candidate(NamedTuple):
    """A repeated setting: its options and number of epochs, and its mean scores over the seeds."""

    options: ModelOptions
    epochs: int
    value: float  # of the objective
    mean: float
    tail: float


@dataclass(frozen=True)
class Progress:
    """A search on a data set, with the results so far, by their settings in canonical JSON."""

    search: Search
    data: str
    trials: int
    results: dict[str, Result]

    @cached_property
    def tried(self) -> list[ModelOptions]:
        """The options of trials: the first round, and each further one once the last is done."""
        found = self.search.first(self.trials)
        count = 0 if self.search.trials is None else half(len(found))
        for number in range(ROUNDS if count else 0):
            if not self._all_done(found):
                break
            further = self.search.further(found, self._values(found), count, number)
            found += [each for each in further if each not in found]
        return found

    @cached_property
    def repeated(self) -> list[ModelOptions]:
        """The options of repetitions, once all trials are done: the best and the start, by size."""
        if not self._all_done(self.tried):
            return []
        values = dict(enumerate(self._values(self.tried)))
        best = sorted(values, key=lambda place: -values[place])[:KEPT]
        if self.search.start is not None and 0 not in best:
            best.append(0)
        chosen = [self.tried[place] for place in best]
        sizes = [{"factors": size} for size in self.search.sizes] or [{}]
        return [{**each, **size} for each in chosen for size in sizes]

    def cells(self) -> Iterator[tuple[str, Cell]]:
        """Return all cells so far, each with its stage, "search" or "repetition"."""
        for each in self.tried:
            yield "search", self.search.cell(each, self.data)
        for each in self.repeated:
            for seed in self.search.starts:
                yield "repetition", self.search.cell(each, self.data, seed, final=True)

    def result(self, cell: Cell) -> Result:
        """Return the result of a cell."""
        return self.results[canonical(cell.settings)]

    def compare(self) -> list[Candidate]:
        """Return the repeated settings, best first, each with its number of epochs.

        Differences up to `SAME` count as none: then the fewest epochs, and the fewest factors, win.
        """
        found = []
        for each in self.repeated:
            cells = (
                self.search.cell(each, self.data, seed, final=True) for seed in self.search.starts
            )
            runs = [self.result(cell) for cell in cells]
            found_values = np.mean([values(run, self.search.objective) for run in runs], axis=0)
            place = int(np.argmax(found_values >= found_values.max() - SAME))
            mean, tail = (
                float(np.mean([values(run, kind)[place] for run in runs])) for kind in (MEAN, TAIL)
            )
            value = float(found_values[place])
            found.append(Candidate(each, self.search.final[place], value, mean, tail))
        enough = max(each.value for each in found) - SAME

        def order(each: Candidate) -> tuple[bool, float, float]:
            good = each.value >= enough
            return not good, float(each.options.get("factors", 0)) if good else 0, -each.value

        return sorted(found, key=order)

    def _all_done(self, tried: list[ModelOptions]) -> bool:
        return all(
            canonical(self.search.cell(each, self.data).settings) in self.results for each in tried
        )

    def _values(self, tried: list[ModelOptions]) -> list[float]:
        """Return the objective of each setting in its best epoch."""
        results = (self.result(self.search.cell(each, self.data)) for each in tried)
        return [max(values(each, self.search.objective)) for each in results]


def values(result: Result, objective: Objective) -> list[float]:
    """Return the objective after each of the epochs; -inf if training diverged."""
    if result.record["epochs"] != result.settings["epochs"]:
        return [-math.inf] * len(result.settings["epochs"])
    return [objective({objective.metric: row}) for row in result.record[objective.metric]]
