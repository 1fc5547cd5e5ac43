"""`kernels`: the smoothing kernels of SAFER2 against iALS, from split to split."""

from safecf.experiments import presets, ratios
from safecf.experiments.aggregate import collect, rows
from safecf.experiments.base import Cell, Experiment, Options, Results
from safecf.experiments.page import Page, table

BASELINE = "iALS"
KERNELS = (
    "SAFER2",
    "SAFER2, Epanechnikov",
    "SAFER2, logistic",
    "SAFER2, uniform",
    "SAFER2, triangular",
)


def models(options: Options) -> list[presets.Preset]:
    """Return iALS and every kernel; a bandwidth that our grid has found comes first."""
    names = (BASELINE, *KERNELS)
    known = presets.require(options.data, "paper", names, options.presets)
    ours = presets.load(options.data, "grid", options.presets)
    return [ours.get(each.name, each) if "," in each.name else each for each in known]


def plan(options: Options) -> list[tuple[str, Cell]]:
    """Return every model on every split from every start, with its name."""
    return presets.on_all_splits({each.name: each for each in models(options)}, options)


def cells(options: Options) -> list[Cell]:
    """Return all cells; those of iALS and the Gaussian kernel are shared with `robustness`."""
    return [cell for _, cell in plan(options)]


def render(results: Results, options: Options) -> Page:
    """Return the distributions of the ratios, and a summary of each."""
    found = collect(plan(options), results)
    compared = ratios.ratios(found, [(name, BASELINE) for name in KERNELS])
    bandwidths = [
        [each.name, each.options["kernel"], f"{each.options['bandwidth']:g}", each.found]
        for each in models(options)
        if each.name != BASELINE
    ]
    return Page(
        [
            f"{options.splits} splits, {options.seeds} starts on each, whose mean is one point. "
            "SAFER2 stands for the Gaussian kernel. The paper compares it with Epanechnikov's: "
            f"slightly better, but not by much. {ratios.INTERVALS}",
            ratios.summary(compared),
            "Means over the splits ± their standard deviation:",
            ratios.means(found),
            "Each kernel has a bandwidth of its own; the other settings are those of SAFER2:",
            table(["", "kernel", "bandwidth", "found"], bandwidths),
        ],
        [row for name, each in found.items() for row in rows(name, each, ratios.COLUMNS)],
        lambda: ratios.draw(compared),
        "Distributions of the relative performance of each kernel over iALS",
    )


EXPERIMENT = Experiment(
    "kernels",
    "Five kernels of SAFER2 over iALS, from split to split",
    'figure "distributions of relative performance vs iALS"',
    cells,
    render,
    splits=50,
    seeds=3,
)
