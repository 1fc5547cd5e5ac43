"""`Experiment`: which cells it needs, and how their results are shown."""

import json
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safecf.errors import choose
from safecf.experiments.page import Made, Page

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
    def kind(self) -> str:
        """What it has in common with cells that take about as long."""
        return self.task + canonical({k: v for k, v in self.settings.items() if k not in CHANCE})

    @property
    def timed(self) -> bool:
        """Whether it takes the time, so that its result is that of one machine."""
        return bool(self.settings.get("alone"))

    def __str__(self) -> str:
        return f"{self.run.__name__} {canonical(self.settings)}"


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
        Names of the data sets on which it is honest; the first is the default.
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

    def options(
        self,
        data: str | None = None,
        splits: int | None = None,
        seeds: int | None = None,
        trials: int | None = None,
        presets: Path | None = None,
    ) -> Options:
        """Return the options, with those of the whole experiment for what is not given."""
        chosen = self.data[0] if data is None else data
        choose(f"data of {self.name}", chosen, dict.fromkeys((*self.data, "tiny")))
        counts = {"splits": splits, "seeds": seeds, "trials": trials}
        full = {name: getattr(self, name) for name in counts}
        for name, count in counts.items():
            if count is not None and count < 1:
                raise ValueError(f"--{name} {count}: there has to be at least 1")
        given = {name: min(full[name], count or full[name]) for name, count in counts.items()}
        return Options(chosen, **given, presets=presets)

    def smaller(self, options: Options) -> dict[str, tuple[int, int]]:
        """Return what is run less of than there is: how many, and of how many."""
        pairs = {
            name: (getattr(options, name), getattr(self, name))
            for name in ("splits", "seeds", "trials")
        }
        return {name: pair for name, pair in pairs.items() if pair[0] < pair[1]}

    def command(self, options: Options) -> str:
        """Return the command that does it again, without what is a matter of the machine."""
        given = [] if options.data == self.data[0] else [f"--data {options.data}"]
        given += [f"--{name} {pair[0]}" for name, pair in self.smaller(options).items()]
        given += [] if options.presets is None else [f"--presets {options.presets.name}"]
        return " ".join([f"safecf reproduce {self.name}", *given])

    def page_name(self, options: Options) -> str:
        """Return the name of the page's files, which tells the data unless they are the first."""
        return self.name if options.data == self.data[0] else f"{self.name}-{options.data}"


def canonical(value: Any) -> str:
    """Write JSON in the one way that has sorted keys and no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
