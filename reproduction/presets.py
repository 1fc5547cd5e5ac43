"""Presets: the settings of models on data sets, all in one file, and the command that found each.

There are four sets: "paper", what the authors publish; "grid", the best of the paper's ranges;
"tuned", the best that we have found; and "sized", the best of those with each number of factors.
"""

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reproduction.base import PRESETS, TINY, Cell, Options
from reproduction.data import REAL, RECIPES, repeated_seeds
from reproduction.quality import quality
from reproduction.searches import SEARCHES, searches
from safecf.atomic import replace_file
from safecf.errors import choose
from safecf.models import MODELS
from safecf.models.options import check_options

# By set, data set and name: "model", "found" and "options".
Everything = dict[str, dict[str, dict[str, dict[str, Any]]]]

SETS = ("paper", "grid", "tuned", "sized")
HEADER = """\
# Settings of models, by set, data set and name. "paper" is what the authors publish, "grid" the
# best of the ranges in the paper, "tuned" the best that we have found, "sized" the best of those by
# number of factors; `found` says how.
"""
# What "tiny" data are tried with.
SMALL = {"factors": 4, "iterations": 2, "block_size": 2, "batch_size": 50}


@dataclass(frozen=True)
class Preset:
    """A model by its name in tables, its class, its options, and how these were found."""

    name: str
    model: str
    options: dict[str, Any]
    found: str

    def __post_init__(self) -> None:
        kind = choose("model", self.model, MODELS)
        known = dict.fromkeys(kind().get_params())
        for option in self.options:
            choose(f"option of {self.name}", option, known)
        check_options(self.options, kind)

    def settings(self, data: str, split: int, seed: int, on: str = "test") -> dict[str, Any]:
        """Return the settings of a cell; a model without chance has one seed."""
        return {
            "data": data,
            "split": split,
            "on": on,
            "model": self.model,
            "options": self.options,
            "seed": seed if self.has_chance else 0,
        }

    @property
    def has_chance(self) -> bool:
        """Whether the model depends on a seed."""
        return "random_state" in MODELS[self.model]().get_params()

    def cell(self, data: str, split: int, seed: int) -> Cell:
        """Return the cell that trains it, and scores the test users."""
        return Cell(quality, self.settings(data, split, seed))

    def seeds(self, count: int) -> range:
        """Return the seeds to run it with."""
        return range(count if self.has_chance else 1)


def load(data: str, which: str, path: Path | None = None) -> dict[str, Preset]:
    """Return the presets of a data set by their names.

    Those of "tiny" are its own, and for names that it has none of, those of ml-1m, made small.
    """
    choose("set of presets", which, dict.fromkeys(SETS))
    sets = read(path).get(which, {})
    found = {name: _preset(name, entry) for name, entry in sets.get(data, {}).items()}
    if data != TINY:
        return found
    others = {name: _preset(name, entry) for name, entry in sets.get("ml-1m", {}).items()}
    return {name: _small(each) for name, each in others.items()} | found


def require(data: str, which: str, names: Iterable[str], path: Path | None = None) -> list[Preset]:
    """Return the presets of these names, all of which there have to be."""
    known = load(data, which, path)
    missing = [name for name in names if name not in known]
    if missing:
        raise ValueError(
            f"{path or PRESETS.name}: there are no {which!r} settings of {', '.join(missing)} for "
            f"{data}; {_remedy(data, which, missing)}"
        )
    return [known[name] for name in names]


def _remedy(data: str, which: str, missing: list[str]) -> str:
    """Say how settings can be found; only some are what `tuning` looks for."""
    sought = searches(data) if data in (*SEARCHES, TINY) else []
    if set(missing) <= {each.name for each in sought if each.which == which}:
        return (
            f"find them with: safecf reproduce tuning --data {data} --presets FILE, and give the "
            "same --presets here"
        )
    if set(missing) <= set(load(data, which)):
        return f"copy them from {PRESETS}"
    reason = "the authors publish none" if which == "paper" else "tuning does not look for them"
    return f"{reason}: put your own into a copy of presets.toml, and give it with --presets"


def on_all_splits(models: Mapping[str, Preset], options: Options) -> list[tuple[str, Cell]]:
    """Return every model on every split from every start, with its name."""
    return [
        (name, model.cell(options.data, split, seed))
        for split in repeated_seeds(options.splits)
        for name, model in models.items()
        for seed in model.seeds(options.seeds)
    ]


def read(path: Path | None = None) -> Everything:
    """Return all of a file, by set, data set and name; the one that comes along by default.

    Every preset in it has to be valid.
    """
    file = PRESETS if path is None else path
    if not file.exists():
        raise FileNotFoundError(f"there is no {file}; copy the file of presets there first")
    try:
        found = tomllib.loads(file.read_bytes().decode("utf8"))
    except ValueError as problem:  # no TOML, or no UTF-8
        raise ValueError(
            f"{file}: {problem}; it has to be a TOML file as presets.toml is"
        ) from None
    _check(found, file)
    return found


def _check(everything: dict[str, Any], file: Path) -> None:
    """Refuse what is not as it has to be, and say where it is."""
    where = str(file)
    try:
        for which, sets in everything.items():
            where = f"{file}, [{which}]"
            choose("set of presets", which, dict.fromkeys(SETS))
            for data, entries in _table(sets).items():
                where = f"{file}, [{which}.{data}]"
                choose("data set", data, {**REAL, **RECIPES})
                for name, entry in _table(entries).items():
                    where = f"{file}, [{which}.{data}.{_value(name)}]"
                    _preset(name, entry)
    except (ValueError, TypeError) as problem:
        raise ValueError(f"{where}: {problem}") from None


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} has to be a table of presets")
    return value


def _preset(name: str, entry: Any) -> Preset:
    """Return the preset of an entry."""
    kinds = {"model": str, "found": str, "options": dict}
    for field, kind in kinds.items():
        if field not in _table(entry):
            raise ValueError(f"{field} is missing; an entry has {', '.join(kinds)}")
        if not isinstance(entry[field], kind):
            expected = "a text" if kind is str else "a table"
            raise TypeError(f"{field} = {entry[field]!r} has to be {expected}")
    return Preset(name, entry["model"], dict(entry["options"]), entry["found"])


def told(options: Mapping[str, Any]) -> str:
    """Write options for people.

    >>> told({"factors": 32, "tail": 0.3})
    'factors 32, tail 0.3'
    """
    return ", ".join(f"{name} {value}" for name, value in options.items())


def put(everything: Everything, which: str, data: str, preset: Preset) -> None:
    """Put a preset in the place of the one with its name."""
    entry = {"model": preset.model, "found": preset.found, "options": preset.options}
    everything.setdefault(which, {}).setdefault(data, {})[preset.name] = entry


def update(path: Path, data: str, chosen: Iterable[tuple[str, Preset]]) -> None:
    """Put presets, each with its set, into a file, which begins as the one that comes along."""
    everything = read(path if path.exists() else None)
    for which, preset in chosen:
        put(everything, which, data, preset)
    replace_file(path, dump(everything).encode())


def dump(everything: Everything) -> str:
    """Return the text of a file of presets."""
    blocks = [HEADER]
    for which, sets in everything.items():
        for data, entries in sets.items():
            for name, entry in entries.items():
                options = ", ".join(f"{key} = {_value(v)}" for key, v in entry["options"].items())
                blocks.append(
                    f"[{which}.{data}.{_value(name)}]\n"
                    f"model = {_value(entry['model'])}\n"
                    f"found = {_value(entry['found'])}\n"
                    f"options = {{ {options} }}\n"
                )
    return "\n".join(blocks)


def _value(value: Any) -> str:
    """Write a text, number or truth value in TOML."""
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


def _small(preset: Preset) -> Preset:
    known = MODELS[preset.model]().get_params()
    small = {name: value for name, value in SMALL.items() if name in known}
    return replace(preset, options={**preset.options, **small})
