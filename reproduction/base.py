"""`Experiment`: which cells it needs, and how their results are shown."""

import json
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reproduction.page import Made, Page
from safecf.errors import choose

Settings = dict[str, Any]
Record = dict[str, Any]

# What differs between cells that take the same time.
CHANCE = ("split", "seed")

COUNTS = ("splits", "seeds", "trials")
TINY = "tiny"  # data that every experiment takes
TUNING = "tuning"
PRESETS = Path(__file__).with_name("presets.toml")


@dataclass(frozen=True)
class Cell:
    """The least that is kept: a function of a module, and the settings that it is called with."""

    run: Callable[[Settings], Record]
    settings: Settings

    @property
    def task(self) -> str:
        """The name of the function."""
        return f"{self.run.__module__}:{self.run.__qualname__}"

    @property
    def kinds(self) -> list[str]:
        """What it has in common with cells that take about as long, the most telling first."""
        known = {name: value for name, value in self.settings.items() if name not in CHANCE}
        model, options = known.get("model"), known.get("options", {})
        size = [options.get("factors"), options.get("iterations")]
        return [self.task + canonical(each) for each in (known, [model, *size], [model])] + [""]

    @property
    def timed(self) -> bool:
        """Whether it takes the time, so that its result is that of one machine."""
        return bool(self.settings.get("alone"))

    def __str__(self) -> str:
        told = {name: value for name, value in self.settings.items() if name != "looks"}
        return f"{self.run.__name__} {canonical(told)}"


@dataclass(frozen=True)
class Result:
    """What a cell has found, how long it took, and where and with what it was made."""

    settings: Settings
    record: Record
    seconds: float = 0.0
    made: Made = field(default_factory=dict)


@dataclass(frozen=True)
class Results:
    """The results of an experiment, in the order of its cells."""

    found: tuple[Result, ...]

    def __iter__(self) -> Iterator[Result]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def __add__(self, others: Iterable[Result]) -> "Results":
        return Results((*self.found, *others))


@dataclass(frozen=True)
class Options:
    """How much of an experiment is run, and on what; made by `Experiment.options`."""

    data: str = "ml-1m"
    splits: int = 1
    seeds: int = 1
    trials: int = 1
    presets: Path | None = None


Cells = Callable[[Options], list[Cell]]
Render = Callable[[Results, Options], Page]
More = Callable[[Results, Options], list[Cell]]


@dataclass(frozen=True)
class Experiment:
    """What of the paper it is, its cells, and its page.

    Parameters
    ----------
    name, title
        What to type, and the heading of the page.
    paper
        The table or figure of the paper.
    cells
        Given the options, all cells.
    render
        Given the results of all cells and the options, the page.
    then
        Given the results so far, the cells that follow from them; asked until none is new.
    data
        Names of the data sets on which it is honest; the first is the default. None: it needs no
        data, and takes any name.
    splits, seeds, trials
        How many of them the whole experiment has; a smaller run says so on its page.
    alone
        Whether it times things, so that cells run one by one with all cores.
    """

    name: str
    title: str
    paper: str
    cells: Cells
    render: Render
    then: More | None = None
    data: tuple[str, ...] = ("ml-1m",)
    splits: int = 1
    seeds: int = 1
    trials: int = 1
    alone: bool = False

    @property
    def default(self) -> str:
        """The name of the data that it runs on unless others are named; empty without data."""
        return self.data[0] if self.data else ""

    @property
    def tunes(self) -> bool:
        """Whether it writes presets; the others read them."""
        return self.name == TUNING

    def takes(self, data: str) -> bool:
        """Whether it runs on these data."""
        return not self.data or data in (*self.data, TINY)

    def options(
        self,
        data: str | None = None,
        splits: int | None = None,
        seeds: int | None = None,
        trials: int | None = None,
        presets: Path | None = None,
    ) -> Options:
        """Return the options, with those of the whole experiment for what is not given."""
        counts = {"splits": splits, "seeds": seeds, "trials": trials}
        for name, count in counts.items():
            if count is not None and count < 1:
                raise ValueError(f"--{name} {count}: there has to be at least 1")
        given = {
            name: min(getattr(self, name), count or getattr(self, name))
            for name, count in counts.items()
        }
        if not self.data:
            return Options("", **given)
        chosen = self.default if data is None else data
        choose(f"data of {self.name}", chosen, dict.fromkeys((*self.data, TINY)))
        return Options(chosen, **given, presets=presets)

    def unused(self, jobs: int | None = None, **counts: int | None) -> list[str]:
        """Say what of the jobs and counts that were given is more than there is."""
        said = []
        if self.alone and jobs is not None and jobs > 1:
            said.append(f"{self.name} takes the time: its cells run one by one, not {jobs} at once")
        for name, count in counts.items():
            full = getattr(self, name)
            if count is None or count <= full:
                continue
            if full == 1:
                said.append(f"{self.name} has no {name}: --{name} is ignored")
            else:
                said.append(f"{self.name} has {full} {name}: --{name} {count} is that many")
        return said

    def smaller(self, options: Options) -> dict[str, tuple[int, int]]:
        """Return what is run less of than there is: how many, and of how many."""
        pairs = {name: (getattr(options, name), getattr(self, name)) for name in COUNTS}
        return {name: pair for name, pair in pairs.items() if pair[0] < pair[1]}

    def other_presets(self, options: Options) -> bool:
        """Whether the models' settings are others than those that come along."""
        given = options.presets
        return not self.tunes and given is not None and given.resolve() != PRESETS.resolve()

    def command(self, options: Options) -> str:
        """Return the command that does it again, without what is a matter of the machine."""
        given = [] if options.data == self.default else [f"--data {options.data}"]
        given += [f"--{name} {pair[0]}" for name, pair in self.smaller(options).items()]
        if options.presets is not None:
            given.append(f"--presets {shlex.quote(str(options.presets))}")
        return " ".join([f"safecf reproduce {self.name}", *given])

    def page_name(self, options: Options) -> str:
        """Return the name of the page's files.

        It tells the data unless they are the first, and ends in "-part" when the numbers are not
        those of the whole experiment, whose page is left alone.
        """
        data = [] if options.data == self.default else [options.data]
        part = ["part"] if self.smaller(options) or self.other_presets(options) else []
        return "-".join([self.name, *data, *part])


def unnamed(plan: Callable[[Options], list[tuple[Any, Cell]]]) -> Cells:
    """Return what gives the cells of a plan, in which each has a name."""
    return lambda options: [cell for _, cell in plan(options)]


def canonical(value: Any) -> str:
    """Write JSON in the one way that has sorted keys and no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
