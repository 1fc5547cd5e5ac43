"""`tuning`: find the settings of every model on the validation users; tuning.toml has the ranges.

A grid over the paper's ranges, or `safecf.tune` over wider ones. Then the best of each model are
repeated for more epochs, with other seeds and numbers of factors, which also choose the number of
epochs; the best mean over these seeds becomes the preset.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from reproduction import presets, settings
from reproduction.data import SEED
from reproduction.experiment import TINY, Case, Options, Result, Row, Tables, canonical, grouped
from reproduction.experiments import declared
from reproduction.tasks import course, range_of, tuned
from safecf.atomic import replace_file
from safecf.errors import choose
from safecf.models import presets as library
from safecf.models.presets import Preset

KEPT, STARTS = 3, 3  # how many settings are repeated, and with how many seeds
SAME = 5e-4  # smaller differences of the objective count as none: about the noise of three seeds
NEAR = 0.1  # values so near an end of their range, as a share of it, are marked
SEARCHES = settings("experiments/tuning")
ABOUT = ("objective", "budget", "epochs", "final", "sizes")
SCORES = ("recall@20, tail 1", "recall@20, tail 0.3")


@dataclass(frozen=True)
class Search:
    """A model, the ranges of its options, and the objective for the validation users."""

    which: str
    name: str
    model: str
    space: Mapping[str, Sequence[Any]]  # arguments of `range_of`
    fixed: dict[str, Any] = field(default_factory=dict)
    epochs: Sequence[int] = (20,)
    final: Sequence[int] = (50,)
    objective: str = "mean"
    trials: int | None = None
    sizes: Sequence[int] = ()

    @property
    def grid(self) -> list[dict[str, Any]]:
        """All options of a grid."""
        values = [range_of(*each).grid() for each in self.space.values()]
        return [{**self.fixed, **dict(zip(self.space, of, strict=True))} for of in product(*values)]

    @property
    def budget(self) -> int:
        """The number of settings that a whole search tries."""
        return len(self.grid) if self.trials is None else self.trials

    def _iterated(self, options: Row, last: int) -> Row:
        has_any = presets.has_option(self.model, "iterations")
        return {**options, "iterations": last} if has_any else options

    def _case(self, run: Any, data: str, options: Row, epochs: Sequence[int], **more: Any) -> Case:
        """Return a case of the search, or of a repetition, whose seed is not 0."""
        settings = {"data": data, "split": SEED, "model": self.model, "seed": 0, **more}
        settings["options"] = self._iterated(options, max(epochs))
        settings |= {"on": "validation", "looks": list(epochs)} if run is course else {}
        return Case(run, settings, (self.which, self.name, bool(settings["seed"])))

    def first(self, options: Options) -> list[Case]:
        """Return the trials of the grid, in a smaller run the first of them, or the search."""
        data, most = options.data, options.trials
        if self.trials is None:
            return [self._case(course, data, each, self.epochs) for each in self.grid[:most]]
        more = {"objective": self.objective, "trials": min(self.trials, most)}
        return [self._case(tuned, data, self.fixed, self.epochs, space=self.space, **more)]

    def value(self, mean: float, tail: float) -> float:
        """Return what is maximised."""
        return mean if self.objective == "mean" else (mean + tail) / 2

    def rows(self, results: Sequence[Result]) -> list[Row]:
        """Return the scores of all trials and repetitions so far, with their options and epochs."""
        found = []
        for each in (each for each in results if each.label[:2] == (self.which, self.name)):
            stage, seed = ("search", "repetition")[each.label[2]], each.settings["seed"]
            about = {"set": self.which, "model": self.name, "stage": stage, "seed": seed}
            tried = [
                ({**self.fixed, **one["options"]}, one["epochs"], *one["scores"])
                for one in each.record.get("trials", [])
            ] + [(each.settings["options"], *of) for of in _curve(each)]
            for options, epochs, mean, tail in tried:
                row = {**about, "options": canonical(options), "epochs": int(epochs)}
                row |= {"objective": self.value(mean, tail), "R@20": mean, "tail 0.3": tail}
                found.append(row)
        return found

    def repetitions(self, results: Sequence[Result], options: Options) -> list[Case]:
        """Return the repetitions of the best trials, and of the first of `tune`: the defaults."""
        best: dict[str, float] = {}
        for row in self.rows(results):
            if row["stage"] == "search":
                text = _plain(json.loads(row["options"]))
                best[text] = max(best.get(text, -math.inf), row["objective"])
        texts = sorted(best, key=lambda text: -best[text])[:KEPT]
        texts += [] if self.trials is None else [next(iter(best))]
        chosen = [json.loads(each) for each in dict.fromkeys(texts)]
        sizes = [{"factors": size} for size in self.sizes] or [{}]
        starts = STARTS if presets.has_option(self.model, "random_state") else 1
        return [
            self._case(course, options.data, {**each, **size}, self.final, seed=seed)
            for each, size, seed in product(chosen, sizes, range(1, 1 + starts))
        ]

    def candidates(self, results: Sequence[Result]) -> list[Row]:
        """Return the repeated settings, best first, each with its number of epochs.

        Differences up to `SAME` count as none: then the fewest epochs, and the fewest factors, win.
        """
        runs: dict[str, list[Any]] = {}
        for each in grouped(results).get((self.which, self.name, True), []):
            runs.setdefault(_plain(each.settings["options"]), []).append(_curve(each))
        found = []
        for text, curves in runs.items():
            size = min(map(len, curves))  # less if training diverged
            means = np.mean([curve[:size] for curve in curves], axis=0)
            values = [self.value(mean, tail) for _, mean, tail in means]
            if size:
                place = int(np.argmax(np.array(values) >= max(values) - SAME))
                epochs, mean, tail = map(float, means[place])
                row = {"options": json.loads(text), "epochs": int(epochs), "value": values[place]}
                found.append({**row, "mean": mean, "tail": tail})
        enough = max(row["value"] for row in found) - SAME

        def order(row: Row) -> tuple[bool, float, float]:
            good = row["value"] >= enough
            return not good, float(row["options"].get("factors", 0)) if good else 0, -row["value"]

        return sorted(found, key=order)

    def chosen(self, candidates: Sequence[Row], command: str) -> list[tuple[str, Preset]]:
        """Return the preset and the best of each size, with the sets they belong to."""

        def preset(name: str, row: Row) -> Preset:
            return Preset(name, self.model, self._iterated(row["options"], row["epochs"]), command)

        found = [(self.which, preset(self.name, candidates[0]))]
        for size in self.sizes:
            of_size = [row for row in candidates if row["options"]["factors"] == size]
            best = max(of_size, key=lambda row: float(row["value"]))
            found.append(("sized", preset(f"{self.name}, d = {size}", best)))
        return found

    def marked(self, options: Mapping[str, Any]) -> str:
        """Write options; those near an end of their range, which may be too narrow, have a mark."""
        texts = []
        for name, value in options.items():
            place = range_of(*self.space[name]).place(value) if name in self.space else None
            near = place is not None and not NEAR <= place <= 1 - NEAR
            texts.append(f"{name} {value}{'†' if near else ''}")
        return ", ".join(texts)


def _curve(result: Result) -> list[tuple[int, float, float]]:
    """Return epoch, mean and tail of the epochs that were scored."""
    rows = enumerate(result.record.get("rows", ()), 1)
    return [(epoch, *(row[name] for name in SCORES)) for epoch, row in rows if SCORES[0] in row]


def _plain(options: Mapping[str, Any]) -> str:
    return canonical({name: each for name, each in options.items() if name != "iterations"})


def searches(options: Options) -> list[Search]:
    """Return the searches on a data set, or some of the set `tuned`; on "tiny" those of ml-1m."""
    tiny = options.data == TINY
    found = [Search(**each) for each in SEARCHES["ml-1m" if tiny else options.data]]
    if options.searches:
        known = {each.name: each for each in found if each.which == "tuned"}
        found = [choose("search", name, known) for name in dict.fromkeys(options.searches)]
    return [replace(each, epochs=(1,), final=(1,)) for each in found] if tiny else found


def _cases(options: Options) -> list[Case]:
    return [case for each in searches(options) for case in each.first(options)]


def _then(results: list[Result], options: Options) -> list[Case]:
    return [case for each in searches(options) for case in each.repetitions(results, options)]


def _tables(results: list[Result], options: Options) -> Tables:
    """Return trials, repetitions and presets; write the latter to `options.presets`, if given."""
    found: list[tuple[str, Preset]] = []
    stored: Tables = {"numbers": [], "searches": [], "candidates": []}
    command = EXPERIMENT.command(replace(options, presets=None))
    for search in searches(options):
        names = {"set": search.which, "model": search.name}
        candidates = search.candidates(results)
        found += search.chosen(candidates, command)
        stored["numbers"] += search.rows(results)
        ranges = [f"{name} {range_of(*of)}" for name, of in search.space.items()]
        about: Row = {"ranges": ranges, "grid": search.trials is None, "kept": KEPT}
        about |= {name: getattr(search, name) for name in ABOUT}
        stored["searches"].append({**names, **about})
        for row in candidates:
            stored["candidates"].append({**names, **row, "options": search.marked(row["options"])})
    file = options.presets
    if file is not None:  # a new file starts as a copy of the library's
        old = library.read(file if file.exists() else library.FILE)
        replace_file(file, presets.added(old, options.data, found).encode())
    return {**stored, "presets": [{"toml": presets.added({}, options.data, found)}]}


EXPERIMENT = declared("tuning", _cases, _tables, then=_then)
