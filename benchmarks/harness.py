"""How a benchmark is run: the parts of benchmarks.toml, each measured by one function."""

import math
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any

from reproduction.experiment import Case, Experiment, Options, Row, Settings
from reproduction.store import cores

Found = Iterator[tuple[str, Row | list[Row]]]  # by the name of the table


@dataclass(frozen=True)
class Size:
    """How much is measured; a `scale` below 1 shrinks everything, to try a benchmark."""

    scale: float = 1.0
    threads: int = 2
    repeats: int = 3
    device: str = "cpu"

    def shape(self, users: int, items: int, interactions: int) -> tuple[int, int, int]:
        """Shrink a matrix, fewer items by the root so that it stays sparse."""
        items = max(50, round(items * math.sqrt(self.scale)))
        return self.count(users, 100), items, self.count(interactions, 1000)

    def factors(self, factors: int) -> int:
        """Shrink d by the root, to a multiple of 16."""
        return max(1, round(factors * math.sqrt(self.scale) / 16)) * 16

    def count(self, number: int, least: int = 1) -> int:
        """Shrink a number, but not below `least`."""
        return max(least, round(number * self.scale))


def experiment(name: str, declared: Mapping[str, Any]) -> Experiment:
    """Return what a table of benchmarks.toml declares; its parts are measured one at a time."""
    parts = declared.get("parts") or {"": declared["part"]}

    def cases(options: Options) -> Iterator[Case]:
        if declared.get("on_device") and options.device == "cpu" and options.scale == 1:
            raise ValueError(f"{name}: give --device cuda; try it on the CPU with --scale 0.001")
        size = {"scale": options.scale, "repeats": options.repeats, "device": options.device}
        size["threads"] = options.threads or declared.get("threads", 2) or cores()
        for part in options.parts or [part for part, each in parts.items() if "measure" in each]:
            given = dict(parts[part])
            given.pop("title", None)
            if "measure" not in given:
                raise ValueError(f"{name}: {part} is shown as it is stored; try another part")
            how = {"measure": given.pop("measure"), "given": given, "size": size}
            yield Case(run, {**how, "beside": declared.get("beside", [])}, part=part)

    return Experiment(
        name,
        declared["title"],
        cases,
        lambda results, options: results[0].record["tables"],
        {end: partial(called, **how) for end, how in declared.get("figures", {}).items()},
        counts={"repeats": declared["repeats"]} if "repeats" in declared else {},
        parts={part: each["title"] for part, each in parts.items() if part},
        alone=True,
        takes=("scale", "threads", "device"),
        package="benchmarks",
    )


def called(*given: Any, by: str, **options: Any) -> Any:
    """Call a function of this package, such as "topk:on_host"."""
    return resolve_name(f"benchmarks.{by}")(*given, **options)


def run(settings: Settings) -> dict[str, Any]:
    """Measure a part, print what is found, and add the versions of packages to the setting.

    What measures yields the name of a table with a row or a list of rows, again and again. All
    rows of "setting" are joined into one.
    """
    size, setting = Size(**settings["size"]), dict[str, Any]()
    tables: dict[str, list[Row]] = {"setting": [setting]}
    for name, found in called(size, by=settings["measure"], **settings["given"]):
        if name == "setting":
            setting |= found
        else:
            tables.setdefault(name, []).extend(found if isinstance(found, list) else [found])
        progress(f"{name}: {found}")
    versions = setting["versions"] = {}
    for package in settings["beside"]:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    if size.device != "cpu":
        versions |= called(size.device, by="devices:description")
    return {"tables": tables}


def progress(text: str) -> None:
    """Say on stderr how far it is."""
    print(text, file=sys.stderr, flush=True)


DECLARED = tomllib.loads(Path(__file__).with_name("benchmarks.toml").read_text())
EXPERIMENTS = SimpleNamespace(**{name: experiment(name, each) for name, each in DECLARED.items()})
