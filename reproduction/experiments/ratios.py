"""`robustness` and `kernels`: SAFER2 over other models, on many splits."""

from typing import Any

from reproduction import presets, scores
from reproduction.experiment import Case, Options, Result, Tables, grouped
from reproduction.experiments import declared

BASELINE = "iALS"
MODELS = (BASELINE, "ERM-MF", "SAFER2")
PAIRS = [("SAFER2", "ERM-MF"), ("SAFER2", BASELINE)]
SMOOTHED = ("Gaussian", "Epanechnikov", "logistic", "uniform", "triangular")
NAMES = [f"SAFER2, {kernel}" for kernel in SMOOTHED]
OVER_IALS = [(name, BASELINE) for name in NAMES]
OVER_GAUSSIAN = [(name, NAMES[0]) for name in NAMES[1:]]


def robustness_cases(options: Options) -> list[Case]:
    """Return the cases of every model on every split with every seed."""
    chosen = presets.require(options.data, "paper", MODELS, options.presets)
    return presets.on_splits({each.name: each for each in chosen}, options)


def robustness(results: list[Result], options: Options) -> Tables:
    """Return the ratios of all pairs on the splits, and the means."""
    return compared(results, {"gains": PAIRS})


def kernel_cases(options: Options) -> list[Case]:
    """Return the cases of iALS as published, and of every kernel with the best bandwidth."""
    chosen = [
        *presets.require(options.data, "paper", (BASELINE,), options.presets),
        *presets.require(options.data, "grid", NAMES, options.presets),
    ]
    return presets.on_splits({each.name: each for each in chosen}, options)


def kernels(results: list[Result], options: Options) -> Tables:
    """Return the kernels over iALS and over the Gaussian one, and their bandwidths."""
    chosen = presets.require(options.data, "grid", NAMES, options.presets)
    bandwidths = [
        {"model": each.name, "kernel": each.options["kernel"], "found": each.found}
        | {"bandwidth": each.options["bandwidth"]}
        for each in chosen
    ]
    pairs = {"gains": OVER_IALS, "kernels": OVER_GAUSSIAN}
    return {**compared(results, pairs), "bandwidths": bandwidths}


def compared(results: list[Result], pairs: dict[str, list[tuple[str, str]]]) -> Tables:
    """Return the means of all models, and a table of gains for each list of pairs."""
    found = grouped(results)
    known, numbers = scores.evaluations(found), scores.numbers(found, scores.RATIOS)
    gains = {
        name: scores.over(numbers, scores.gains(known, each, scores.RATIOS))
        for name, each in pairs.items()
    }
    return {"numbers": numbers, **gains, "means": scores.means(numbers)}


def draw_robustness(tables: Tables) -> Any:
    """Draw the ratios of SAFER2 over ERM-MF and iALS."""
    return scores.draw_ratios(tables["numbers"], PAIRS)


def draw_kernels(tables: Tables) -> Any:
    """Draw the ratios of each kernel over iALS."""
    return scores.draw_ratios(tables["numbers"], OVER_IALS)


ROBUSTNESS = declared("robustness", robustness_cases, robustness, draw_robustness)
KERNELS = declared("kernels", kernel_cases, kernels, draw_kernels)
