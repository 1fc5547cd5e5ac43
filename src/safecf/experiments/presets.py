"""Presets: the settings of models on data sets, all in one file, and the command that found each.

There are three sets: "paper", what the authors publish; "grid", the best of the paper's ranges; and
"tuned", the best that we have found.
"""

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from safecf.atomic import replace_file
from safecf.errors import choose
from safecf.experiments.base import Cell, Options
from safecf.experiments.data import repeated_seeds
from safecf.experiments.quality import quality
from safecf.models import MODELS
from safecf.models.options import check_options

# By set, data set and name: "model", "found" and "options".
Everything = dict[str, dict[str, dict[str, dict[str, Any]]]]

SETS = ("paper", "grid", "tuned")
HEADER = """\
# Settings of models, by set, data set and name. "paper" is what the authors publish, "grid" the
# best of the ranges in the paper, "tuned" the best that we have found; `found` says how.
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
    """Return the presets of a data set by their names; those of "tiny" are ml-1m's, made small."""
    source = "ml-1m" if data == "tiny" else data
    choose("set of presets", which, dict.fromkeys(SETS))
    entries = read(path).get(which, {}).get(source, {})
    found = {
        name: Preset(name, entry["model"], dict(entry["options"]), entry["found"])
        for name, entry in entries.items()
    }
    return {name: _small(each) for name, each in found.items()} if data == "tiny" else found


def require(data: str, which: str, names: Iterable[str], path: Path | None = None) -> list[Preset]:
    """Return the presets of these names, all of which there have to be."""
    known = load(data, which, path)
    missing = [name for name in names if name not in known]
    if missing:
        raise ValueError(
            f"there are no {which!r} settings of {', '.join(missing)} for {data}; find them with: "
            f"safecf reproduce tuning --data {data} --presets FILE"
        )
    return [known[name] for name in names]


def on_all_splits(models: Mapping[str, Preset], options: Options) -> list[tuple[str, Cell]]:
    """Return every model on every split from every start, with its name."""
    return [
        (name, model.cell(options.data, split, seed))
        for split in repeated_seeds(options.splits)
        for name, model in models.items()
        for seed in model.seeds(options.seeds)
    ]


def read(path: Path | None = None) -> Everything:
    """Return all of a file, by set, data set and name; the one that comes along by default."""
    if path is None:
        text = files("safecf.experiments").joinpath("presets.toml").read_text(encoding="utf8")
    elif path.exists():
        text = path.read_text(encoding="utf8")
    else:
        raise FileNotFoundError(f"there is no {path}; copy the file of presets there first")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise ValueError(
            f"{path}: {problem}; it has to be a TOML file as presets.toml is"
        ) from None


def put(everything: Everything, which: str, data: str, preset: Preset) -> None:
    """Put a preset in the place of the one with its name."""
    entry = {"model": preset.model, "found": preset.found, "options": preset.options}
    everything.setdefault(which, {}).setdefault(data, {})[preset.name] = entry


def update(path: Path, which: str, data: str, preset: Preset) -> None:
    """Put a preset into a file; one that is not there yet begins as the one that comes along."""
    everything = read(path if path.exists() else None)
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
                    f'[{which}.{data}."{name}"]\n'
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
