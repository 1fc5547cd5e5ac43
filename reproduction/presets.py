"""Presets in experiments: read, turned into cells, and written by `tuning`."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from reproduction.base import COMMAND, TINY, Cell, Options, Settings
from reproduction.data import REAL, RECIPES, repeated_seeds
from reproduction.search import has_option
from reproduction.spaces import SEARCHES, searches
from reproduction.tasks.quality import quality
from safecf.atomic import replace_file
from safecf.errors import choose
from safecf.models import presets as library
from safecf.models.presets import FILE, SETS, Preset, Presets

HEADER = """\
# Settings of models, by set, data set and name. "paper" is what the authors publish, "grid" the
# best of the ranges in the paper, "tuned" the best that we have found, "sized" the best of those by
# number of factors; `found` says how.
"""
SMALL = {"factors": 4, "iterations": 2, "block_size": 2, "batch_size": 50}  # for "tiny" data


def read(path: Path | None = None) -> Presets:
    """Read a file of presets, by default the library's, and check its data sets, too."""
    file = FILE if path is None else path
    found = library.read(file)
    for which, sets in found.items():
        for data in sets:
            try:
                choose("data set", data, {**REAL, **RECIPES})
            except ValueError as problem:
                raise ValueError(f"{file}, [{which}.{data}]: {problem}") from None
    return found


def load(data: str, which: str, path: Path | None = None) -> dict[str, Preset]:
    """Return the presets of a data set by their names; there may be none.

    "tiny" has those of ml-1m with few factors and epochs, unless the file has others for it.
    """
    choose("set of presets", which, dict.fromkeys(SETS))
    sets = read(path).get(which, {})
    found = sets.get(data, {})
    if data != TINY:
        return found
    return {name: _small(each) for name, each in sets.get("ml-1m", {}).items()} | found


def defaults(data: str, models: Mapping[str, str]) -> list[Preset]:
    """Return models as they come, by their names and the names of their classes."""
    found = [Preset(name, model, {}, "as it comes") for name, model in models.items()]
    return [_small(each) for each in found] if data == TINY else found


def _small(preset: Preset) -> Preset:
    small = {name: value for name, value in SMALL.items() if has_option(preset.model, name)}
    return replace(preset, options={**preset.options, **small})


def require(data: str, which: str, names: Iterable[str], path: Path | None = None) -> list[Preset]:
    """Return the presets of these names; raise if one is missing."""
    known = load(data, which, path)
    missing = [name for name in names if name not in known]
    if missing:
        raise ValueError(
            f"{path or FILE.name}: there are no {which!r} settings of {', '.join(missing)} for "
            f"{data}; {_remedy(data, which, missing)}"
        )
    return [known[name] for name in names]


def _remedy(data: str, which: str, missing: list[str]) -> str:
    """Return where missing presets can be got from; `tuning` searches for some of them."""
    searched = searches(data) if data in (*SEARCHES, TINY) else []
    if set(missing) <= {each.name for each in searched if each.which == which}:
        return (
            f"find them with: {COMMAND} tuning --data {data} --presets FILE, and give the same "
            "--presets here"
        )
    if set(missing) <= set(load(data, which)):
        return f"copy them from {FILE}"
    reason = "the authors publish none" if which == "paper" else "tuning does not search for them"
    return f"{reason}: add your own to a copy of {FILE}, and give it with --presets"


def seeds(preset: Preset, count: int) -> range:
    """Return the seeds to run a preset with: one if its model has none."""
    return range(count if has_option(preset.model, "random_state") else 1)


def settings(preset: Preset, data: str, split: int, seed: int, on: str = "test") -> Settings:
    """Return the settings of a cell that trains a preset."""
    return {
        "data": data,
        "split": split,
        "on": on,
        "model": preset.model,
        "options": preset.options,
        "seed": seed if has_option(preset.model, "random_state") else 0,
    }


def cell(preset: Preset, data: str, split: int, seed: int) -> Cell:
    """Return the cell that trains a preset and scores the test users."""
    return Cell(quality, settings(preset, data, split, seed))


def on_all_splits(models: Mapping[str, Preset], options: Options) -> list[tuple[str, Cell]]:
    """Return the cells of all models on all splits with all seeds, each with the model's name."""
    return [
        (name, cell(model, options.data, split, seed))
        for split in repeated_seeds(options.splits)
        for name, model in models.items()
        for seed in seeds(model, options.seeds)
    ]


def options_text(options: Mapping[str, Any]) -> str:
    """Write options for a page.

    >>> options_text({"factors": 32, "tail": 0.3})
    'factors 32, tail 0.3'
    """
    return ", ".join(f"{name} {value}" for name, value in options.items())


def put(everything: Presets, which: str, data: str, preset: Preset) -> None:
    """Add a preset, or replace the one of the same name."""
    everything.setdefault(which, {}).setdefault(data, {})[preset.name] = preset


def update(path: Path, data: str, chosen: Iterable[tuple[str, Preset]]) -> None:
    """Put presets, each with its set, into a file; a new file starts as a copy of the library's."""
    everything = read(path if path.exists() else None)
    for which, preset in chosen:
        put(everything, which, data, preset)
    replace_file(path, dump(everything).encode())


def dump(everything: Presets) -> str:
    """Write presets as TOML."""
    blocks = [HEADER]
    for which, sets in everything.items():
        for data, entries in sets.items():
            for name, preset in entries.items():
                options = ", ".join(f"{key} = {_value(v)}" for key, v in preset.options.items())
                blocks.append(
                    f"[{which}.{data}.{_value(name)}]\n"
                    f"model = {_value(preset.model)}\n"
                    f"found = {_value(preset.found)}\n"
                    f"options = {{ {options} }}\n"
                )
    return "\n".join(blocks)


def _value(value: Any) -> str:
    """Write a text, number or Boolean in TOML."""
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)
