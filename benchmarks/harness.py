"""How a benchmark is declared: parts, each a function that returns tables, as an `Experiment`."""

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pkgutil import resolve_name
from typing import Any

from reproduction.experiment import Case, Experiment, Options, Row, Settings, Tables
from reproduction.store import cores

__all__ = ["Part", "Row", "Size", "Tables", "benchmark", "progress"]


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


class Part:
    """A part of a page: its title, and what measures it.

    `measure` is a function of this package, such as "topk:on_host", which is called with a `Size`
    and `given`. It returns tables, of which "setting" has one row. If it is empty, the part cannot
    be measured, and is shown as it is stored.
    """

    def __init__(self, title: str, measure: str, **given: Any) -> None:
        self.title, self.measure, self.given = title, measure, given


def benchmark(
    name: str,
    title: str,
    parts: Mapping[str, Part] | Part,
    *,
    figures: Mapping[str, Callable[[Tables], Any]] | None = None,
    repeats: int = 1,
    threads: int = 2,
    beside: tuple[str, ...] = (),
    on_device: bool = False,
) -> Experiment:
    """Return the experiment that measures the parts, one at a time.

    `repeats` and `threads` are those of a whole run, where 0 threads are all cores. `beside` are
    the packages whose versions matter. `on_device`: its numbers are those of a GPU.
    """
    known = parts if isinstance(parts, Mapping) else {"": parts}

    def cases(options: Options) -> Iterator[Case]:
        if on_device and options.device == "cpu" and options.scale == 1:
            raise ValueError(f"{name}: give --device cuda; try it on the CPU with --scale 0.001")
        size = {"scale": options.scale, "threads": options.threads or threads or cores()}
        size |= {"repeats": options.repeats, "device": options.device}
        for part in options.parts or [part for part, each in known.items() if each.measure]:
            if not known[part].measure:
                raise ValueError(f"{name}: {part} is shown as it is stored; try another part")
            how = {"measure": known[part].measure, "given": known[part].given}
            yield Case(run, {**how, "size": size, "beside": list(beside)}, part=part)

    return Experiment(
        name,
        title,
        cases,
        lambda results, options: results[0].record["tables"],
        figures or {},
        counts={"repeats": repeats} if repeats > 1 else {},
        parts={part: each.title for part, each in known.items() if part},
        alone=True,
        package="benchmarks",
    )


def run(settings: Settings) -> dict[str, Any]:
    """Measure a part, and add the versions of packages to its setting."""
    measure = resolve_name(f"benchmarks.{settings['measure']}")
    found = measure(Size(**settings["size"]), **settings["given"])
    versions = {}
    for package in settings["beside"]:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    found["setting"][0]["versions"] = versions
    if settings["size"]["device"] != "cpu":
        from benchmarks.devices import description  # noqa: PLC0415 - needs PyTorch

        found["setting"][0]["versions"] |= description(settings["size"]["device"])
    return {"tables": found}


def progress(text: str) -> None:
    """Say on stderr how far it is."""
    print(text, file=sys.stderr, flush=True)
