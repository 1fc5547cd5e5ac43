"""Experiments, their cells, and the results of these."""

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reproduction.page import Origin, Page
from safecf.errors import choose
from safecf.models.presets import FILE

Settings = dict[str, Any]
Record = dict[str, Any]

COMMAND = "python -m reproduction"
COUNTS = ("splits", "seeds", "trials")
TINY = "tiny"  # synthetic data that every experiment accepts
TUNING = "tuning"


@dataclass(frozen=True)
class Cell:
    """The smallest unit of work: a function, and the settings that it is called with."""

    run: Callable[[Settings], Record]
    settings: Settings

    @property
    def task(self) -> str:
        """The function's name in keys of the store.

        It does not depend on the module, so that moving the function keeps its cells; the form is
        that of the oldest ones.
        """
        name = self.run.__name__
        return f"safecf.experiments.{name}:{name}"

    @property
    def kinds(self) -> list[str]:
        """Keys of groups of cells that take about as long, the closest group first."""
        known = {
            name: value for name, value in self.settings.items() if name not in ("split", "seed")
        }
        model, options = known.get("model"), known.get("options", {})
        size = [options.get("factors"), options.get("iterations")]
        return [self.task + canonical(each) for each in (known, [model, *size], [model])] + [""]

    @property
    def timed(self) -> bool:
        """Whether it measures time, so that its result belongs to one machine."""
        return bool(self.settings.get("alone"))

    def __str__(self) -> str:
        shown = {name: value for name, value in self.settings.items() if name != "looks"}
        return f"{self.run.__name__} {canonical(shown)}"


@dataclass(frozen=True)
class Result:
    """The record of a cell, the seconds it took, and the code and machine that made it."""

    settings: Settings
    record: Record
    seconds: float = 0.0
    origin: Origin = field(default_factory=dict)


@dataclass(frozen=True)
class Results:
    """The results of an experiment, in the order of its cells."""

    found: tuple[Result, ...]

    def __iter__(self) -> Iterator[Result]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def by_settings(self) -> dict[str, Result]:
        """Return the results by the settings of their cells, in canonical JSON."""
        return {canonical(each.settings): each for each in self.found}

    def __add__(self, others: Iterable[Result]) -> "Results":
        return Results((*self.found, *others))


@dataclass(frozen=True)
class Options:
    """The data and the size of a run; made by `Experiment.options`."""

    data: str = "ml-1m"
    splits: int = 1
    seeds: int = 1
    trials: int = 1
    presets: Path | None = None
    searches: tuple[str, ...] = ()  # of tuning; empty: all


Cells = Callable[[Options], list[Cell]]
Render = Callable[[Results, Options], Page]
Then = Callable[[Results, Options], list[Cell]]


@dataclass(frozen=True)
class Experiment:
    """A table or figure: its cells, and the page that shows their results.

    Parameters
    ----------
    name, title
        Its name on the command line, and the heading of its page.
    paper
        The table or figure of the paper.
    cells
        Given the options, all cells.
    render
        Given the results of all cells and the options, the page.
    then
        Given the results so far, the cells of the next round; called until none of them is new.
    data
        Names of the data sets that it accepts; the first is the default. Empty: it needs no data,
        and accepts any name.
    splits, seeds, trials
        The numbers of a whole run; the page of a smaller one says so.
    alone
        Whether it measures time, so that cells run one at a time with all cores.
    """

    name: str
    title: str
    paper: str
    cells: Cells
    render: Render
    then: Then | None = None
    data: tuple[str, ...] = ("ml-1m",)
    splits: int = 1
    seeds: int = 1
    trials: int = 1
    alone: bool = False

    @property
    def default(self) -> str:
        """The name of its default data; empty if it needs none."""
        return self.data[0] if self.data else ""

    @property
    def tunes(self) -> bool:
        """Whether it writes presets; the others read them."""
        return self.name == TUNING

    def accepts(self, data: str) -> bool:
        """Whether it runs on these data."""
        return not self.data or data in (*self.data, TINY)

    def options(
        self,
        data: str | None = None,
        splits: int | None = None,
        seeds: int | None = None,
        trials: int | None = None,
        presets: Path | None = None,
        searches: Sequence[str] = (),
    ) -> Options:
        """Return the options of a run; what is None is that of the whole experiment."""
        counts = {"splits": splits, "seeds": seeds, "trials": trials}
        for name, count in counts.items():
            if count is not None and count < 1:
                raise ValueError(f"--{name} {count}: give 1 or more")
        given = {
            name: min(getattr(self, name), count or getattr(self, name))
            for name, count in counts.items()
        }
        if not self.data:
            return Options("", **given)
        chosen = self.default if data is None else data
        choose(f"data of {self.name}", chosen, dict.fromkeys((*self.data, TINY)))
        wanted = tuple(searches) if self.tunes else ()
        return Options(chosen, **given, presets=presets, searches=wanted)

    def ignored(self, jobs: int | None = None, **counts: int | None) -> list[str]:
        """Return a line for each option of the command that has no effect here."""
        lines = []
        if self.alone and jobs is not None and jobs > 1:
            lines.append(f"{self.name} measures time: its cells run one at a time, not {jobs}")
        for name, count in counts.items():
            full = getattr(self, name)
            if count is None or count <= full:
                continue
            if full == 1:
                lines.append(f"{self.name} has no {name}: --{name} is ignored")
            else:
                lines.append(f"{self.name} has only {full} {name}: --{name} {count} runs all")
        return lines

    def reduced(self, options: Options) -> dict[str, tuple[int, int]]:
        """Return the counts that are smaller than in a whole run, each with that of the latter."""
        pairs = {name: (getattr(options, name), getattr(self, name)) for name in COUNTS}
        return {name: pair for name, pair in pairs.items() if pair[0] < pair[1]}

    def other_presets(self, options: Options) -> bool:
        """Whether the models' settings are read from a file other than the library's."""
        given = options.presets
        return not self.tunes and given is not None and given.resolve() != FILE.resolve()

    def command(self, options: Options) -> str:
        """Return the command that repeats the run, without the options that depend on a machine."""
        given = [] if options.data == self.default else [f"--data {options.data}"]
        given += [f"--{name} {pair[0]}" for name, pair in self.reduced(options).items()]
        given += [f"--search {shlex.quote(name)}" for name in options.searches]
        if options.presets is not None:
            given.append(f"--presets {shlex.quote(str(options.presets))}")
        return " ".join([COMMAND, self.name, *given])

    def page_name(self, options: Options) -> str:
        """Return the name of the page's files, without suffix.

        It names the data unless they are the default, and ends in "-part" for a smaller run or
        other presets, so that the page of the whole experiment is not overwritten. A `tuning` with
        some of its searches has "-chosen".
        """
        data = [] if options.data == self.default else [options.data]
        chosen = ["chosen"] if options.searches else []
        part = ["part"] if self.reduced(options) or self.other_presets(options) else []
        return "-".join([self.name, *data, *chosen, *part])


def cells_of(plan: Callable[[Options], list[tuple[Any, Cell]]]) -> Cells:
    """Return the cells of a plan, which is a list of pairs of a name and a cell."""
    return lambda options: [cell for _, cell in plan(options)]


def canonical(value: Any) -> str:
    """Write JSON with sorted keys and no blanks, so that equal values have equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
