"""`robustness` and `kernels`: SAFER2 over other models, on many splits; ratios.toml has them."""

from functools import partial

from reproduction import presets, scores, settings
from reproduction.experiment import Case, Options, Result, Tables, grouped
from reproduction.experiments import declared
from safecf.models.presets import Preset

DATA = settings("experiments/ratios")


def _models(name: str, options: Options) -> dict[str, Preset]:
    return {
        each.name: each
        for which, names in DATA[name]["models"].items()
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
        for table, pairs in DATA[name]["pairs"].items()
    }
    bandwidths = [
        {"model": each.name, "found": each.found}
        | {option: each.options[option] for option in ("kernel", "bandwidth")}
        for each in _models(name, options).values()
        if each.name.startswith("SAFER2, ")
    ]
    return {"numbers": numbers, **gains, "means": scores.means(numbers), "bandwidths": bandwidths}


ROBUSTNESS, KERNELS = (
    declared(
        name,
        *(partial(_cases, name), partial(_tables, name)),
        partial(scores.draw_ratios, DATA[name]["pairs"]["gains"]),
    )
    for name in ("robustness", "kernels")
)
