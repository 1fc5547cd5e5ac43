"""An experiment: the cases to run, the tables to keep of them, and the figures to draw."""

import json
import shlex
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from safecf.errors import choose

Settings = dict[str, Any]  # JSON values
Record = dict[str, Any]  # JSON values and NumPy arrays
Row = dict[str, Any]
Tables = dict[str, list[Row]]  # rows in long form, by the name of the table

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
TINY = "tiny"  # synthetic data to try a command; every experiment accepts it
FLAGS = {"searches": "search", "parts": "part"}  # where they differ from names of `Options`
COUNTS = ("splits", "seeds", "trials", "repeats")


@dataclass(frozen=True)
class Options:
    """The size of a run; made by `Experiment.options`."""

    data: str = ""
    splits: int = 1
    seeds: int = 1
    trials: int = 1
    repeats: int = 1
    scale: float = 1.0  # below 1, everything is smaller
    threads: int = 0  # 0 means all cores
    device: str = "cpu"
    presets: Path | None = None  # tuning writes to it
    searches: tuple[str, ...] = ()  # of tuning; empty means all
    parts: tuple[str, ...] = ()  # of a page; empty means all


class Case(NamedTuple):
    """A function of a module, and its settings, on which its record depends alone.

    "data" in them names a data set. Results are `grouped` by label. `part` is that of the page.
    """

    run: Callable[[Settings], Record]
    settings: Settings
    label: Hashable = ""
    part: str = ""

    @property
    def key(self) -> str:
        """Function and settings as a text; label and part do not count."""
        return canonical([self.run.__name__, self.settings])


@dataclass(frozen=True)
class Result:
    """The record of a case, with the code and machine that made it."""

    case: Case
    record: Record
    made: Mapping[str, str] = field(default_factory=dict)

    settings = property(lambda self: self.case.settings)
    label = property(lambda self: self.case.label)


@dataclass(frozen=True)
class Experiment:
    """A page of results; its text is the template `pages/NAME.md.j2` of the package.

    The table "numbers" is stored as NAME.csv, the others in NAME.json. A figure is a function from
    all tables of the page, where those of a part are named "part.table", to a matplotlib figure, or
    to None if they lack what it shows.
    """

    name: str
    title: str  # the heading of its page
    cases: Callable[[Options], Iterable[Case]]
    tables: Callable[[list[Result], Options], Tables]  # of a part
    figures: Mapping[str, Callable[[Tables], Any]] = field(default_factory=dict)  # by suffix
    # Further cases, given the results so far; called until none of them is new.
    then: Callable[[list[Result], Options], Iterable[Case]] | None = None
    paper: str = ""  # the table or figure of the paper
    data: tuple[str, ...] = ()  # sets that it accepts, the default first; empty: it needs none
    counts: Mapping[str, int] = field(default_factory=dict)  # of a whole run
    parts: Mapping[str, str] = field(default_factory=dict)  # titles of what can be run by itself
    alone: bool = False  # timed: one case at a time, in this process, with all cores
    takes: tuple[str, ...] = ()  # which of the other `Options` make a difference
    package: str = "reproduction"

    @property
    def accepts(self) -> set[str]:
        """Which of `Options` make a difference."""
        named = {"data": self.data, "parts": self.parts}
        return {*self.counts, *self.takes, *(name for name, has in named.items() if has)}

    def options(self, data: str | None = None, **given: Any) -> Options:
        """Return the options of a run; whatever is None is that of the whole experiment."""
        for name in COUNTS:
            count, full = given.get(name), self.counts.get(name, 1)
            if count is not None and count < 1:
                raise ValueError(f"--{name} {count}: give 1 or more")
            given[name] = min(full, count or full)
        scale, threads = given.get("scale"), given.get("threads")
        if scale is not None and not 0 < scale <= 1:
            raise ValueError(f"--scale {scale:g}: give a share above 0, and at most 1")
        if threads is not None and threads < 0:
            raise ValueError(f"--threads {threads}: give 1 or more, or 0 for all cores")
        for part in given.get("parts") or ():
            choose(f"part of {self.name}", part, self.parts)
        if self.data:
            given["data"] = data or self.data[0]
            choose(f"data of {self.name}", given["data"], dict.fromkeys((*self.data, TINY)))
        return Options(**{name: each for name, each in given.items() if each is not None})

    def reduced(self, options: Options) -> list[str]:
        """Return how a run is smaller than the whole, such as "5 of 50 splits"."""
        pairs = [(name, getattr(options, name), full) for name, full in self.counts.items()]
        lines = [f"{few} of {full} {name}" for name, few, full in pairs if few < full]
        return lines + ([f"scale {options.scale:g}"] if options.scale != 1 else [])

    def command(self, options: Options) -> str:
        """Return the command that repeats the run."""
        given, plain = [f"python -m {self.package} {self.name}"], asdict(self.options())
        for name, value in asdict(options).items():
            if value != plain[name]:
                values = value if isinstance(value, tuple) else (value,)
                given += [f"--{FLAGS.get(name, name)} {shlex.quote(str(each))}" for each in values]
        return " ".join(given)

    def page(self, options: Options) -> str:
        """Return the name of the page's files: with the data unless they are the default.

        It ends in "-part" for a smaller run, so that the whole page is not overwritten.
        """
        endings = {
            options.data: options.data != self.options().data,
            "chosen": bool(options.searches),
        }
        endings["part"] = bool(self.reduced(options))
        return "-".join([self.name, *(ending for ending, given in endings.items() if given)])


def grouped(found: Iterable[Any], *names: str) -> dict[Any, list[Any]]:
    """Return results by the labels of their cases, or rows by what they have by these names."""
    groups: dict[Any, list[Any]] = {}
    for each in found:
        key = tuple(each[name] for name in names) if names else each.label
        groups.setdefault(key[0] if len(names) == 1 else key, []).append(each)
    return groups


def canonical(value: Any) -> str:
    """Write JSON with sorted keys and no blanks, so that equal values have equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
