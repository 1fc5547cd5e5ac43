"""`robustness` and `kernels`: SAFER2 over other models, on many splits."""

from functools import partial
from typing import Any

from reproduction import presets, scores
from reproduction.experiment import Case, Options, Result, Tables, grouped
from reproduction.experiments import declared
from safecf.models.presets import Preset

SMOOTHED = ("Gaussian", "Epanechnikov", "logistic", "uniform", "triangular")
NAMES = [f"SAFER2, {kernel}" for kernel in SMOOTHED]
# By experiment: names of presets by their set, and which models are compared in which table.
MODELS = {
    "robustness": {"paper": ["iALS", "ERM-MF", "SAFER2"]},
    "kernels": {"paper": ["iALS"], "grid": NAMES},
}
PAIRS: dict[str, Any] = {
    "robustness": {"gains": [("SAFER2", "ERM-MF"), ("SAFER2", "iALS")]},
    "kernels": {
        "gains": [(name, "iALS") for name in NAMES],
        "kernels": [(name, NAMES[0]) for name in NAMES[1:]],
    },
}


def _models(name: str, options: Options) -> dict[str, Preset]:
    return {
        each.name: each
        for which, names in MODELS[name].items()
        for each in presets.require(options.data, which, names)
    }


def _cases(name: str, options: Options) -> list[Case]:
    return presets.on_splits(_models(name, options), options)


def _tables(name: str, results: list[Result], options: Options) -> Tables:
    """Return the means of all models, their bandwidths, and a table for each list of pairs."""
    found = grouped(results)
    known, numbers = scores.evaluations(found), scores.numbers(found, scores.RATIOS)
    gains = {
        table: scores.over(numbers, scores.gains(known, pairs, scores.RATIOS))
        for table, pairs in PAIRS[name].items()
    }
    bandwidths = [
        {"model": each.name, "kernel": each.options["kernel"], "found": each.found}
        | {"bandwidth": each.options["bandwidth"]}
        for each in _models(name, options).values()
        if each.name in NAMES
    ]
    return {"numbers": numbers, **gains, "means": scores.means(numbers), "bandwidths": bandwidths}


ROBUSTNESS, KERNELS = (
    declared(
        name,
        partial(_cases, name),
        partial(_tables, name),
        partial(scores.draw_ratios, PAIRS[name]["gains"]),
    )
    for name in ("robustness", "kernels")
)
