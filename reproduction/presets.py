"""Settings of models in experiments: read, turned into cases, and written by `tuning`."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

from reproduction.data import SEED, repeated_seeds
from reproduction.experiment import TINY, Case, Options, Settings
from reproduction.tasks import quality
from safecf.errors import choose
from safecf.models import MODELS
from safecf.models import presets as library
from safecf.models.presets import FILE, Preset, Presets

# The paper's exact solves, and Adam, with the best step of .003 to .2 for ML-1M's validation users.
SOLVERS: dict[str, Any] = {
    "exact": {"solver": "exact"},
    "Adam": {"optimizer": "adam", "step_size": 0.03},
}


@cache
def has_option(model: str, option: str) -> bool:
    """Whether a model, given by the name of its class, has an option."""
    return option in choose("model", model, MODELS)().get_params()


def load(data: str, which: str) -> dict[str, Preset]:
    """Return the presets of a data set by name; there may be none. "tiny" has those of ml-1m."""
    return library.read().get(which, {}).get("ml-1m" if data == TINY else data, {})


def changed(preset: Preset, name: str | None = None, /, **options: Any) -> Preset:
    """Return a preset with some other options, and another name if it is given."""
    return replace(preset, name=name or preset.name, options={**preset.options, **options})


def solved(preset: Preset, by: str | int | None = None) -> Preset:
    """Return a preset with another solver: "exact", "CG", "Adam", or blocks of a size."""
    if by is None:
        return preset
    if by == "CG":
        return replace(preset, name=f"{preset.name}-CG", model=f"{preset.model}CG")
    if isinstance(by, str):
        return changed(preset, f"{preset.name}, {by}", **SOLVERS[by])
    options = {**preset.options, "block_size": min(by, preset.options["factors"])}
    return Preset(f"{preset.name}++", f"{preset.model}PP", options, preset.found)


def seeds(preset: Preset, count: int) -> range:
    """Return the seeds to run a preset with: one if its model has none."""
    return range(count if has_option(preset.model, "random_state") else 1)


def settings(
    preset: Preset, data: str, split: int = SEED, seed: int = 0, on: str = "test"
) -> Settings:
    """Return the settings of a case that trains a preset."""
    about = {"data": data, "split": split, "on": on, "model": preset.model}
    return {**about, "options": preset.options, "seed": seed}


def on_splits(models: Mapping[str, Preset], options: Options) -> list[Case]:
    """Return the cases of all models on all splits with all seeds, labelled by the model's name."""
    splits = [SEED] if options.splits == 1 else repeated_seeds(options.splits)
    return [
        Case(quality, settings(model, options.data, split, seed), name)
        for split in splits
        for name, model in models.items()
        for seed in seeds(model, options.seeds)
    ]


def options_text(options: Mapping[str, Any]) -> str:
    """Write options for a page, as in 'factors 32, tail 0.3'."""
    return ", ".join(f"{name} {value}" for name, value in options.items())


def rows(models: Mapping[str, Preset]) -> list[dict[str, Any]]:
    """Return the settings of models for a page."""
    return [
        {"model": name, "class": each.model, "options": options_text(each.options) or "none"}
        | {"found": each.found}
        for name, each in models.items()
    ]


def added(old: Presets, data: str, chosen: Iterable[tuple[str, Preset]]) -> str:
    """Write presets as TOML, with others for a data set, each of which comes with its set."""
    text = partial(json.dumps, ensure_ascii=False)
    for which, preset in chosen:
        old.setdefault(which, {}).setdefault(data, {})[preset.name] = preset
    blocks = [
        f"[{which}.{of}.{text(name)}]\nmodel = {text(each.model)}\nfound = {text(each.found)}\n"
        f"options = {{ {', '.join(f'{key} = {text(v)}' for key, v in each.options.items())} }}\n"
        for which, sets in old.items()
        for of, entries in sets.items()
        for name, each in entries.items()
    ]
    return "\n".join([FILE.read_text("utf8").partition("\n\n")[0] + "\n", *blocks])
