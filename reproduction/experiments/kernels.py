"""`kernels`: SAFER2 with each smoothing kernel over iALS, on many splits."""

from reproduction import presets, ratios
from reproduction.aggregate import collect, rows
from reproduction.base import Cell, Experiment, Options, Results, cells_of
from reproduction.page import Page, table
from safecf.models.presets import Preset

BASELINE = "iALS"
KERNELS = tuple(
    f"SAFER2, {kernel}"
    for kernel in ("Gaussian", "Epanechnikov", "logistic", "uniform", "triangular")
)
GAUSSIAN = KERNELS[0]


def models(options: Options) -> list[Preset]:
    """Return iALS as published, and every kernel with the best bandwidth of a grid."""
    return [
        *presets.require(options.data, "paper", (BASELINE,), options.presets),
        *presets.require(options.data, "grid", KERNELS, options.presets),
    ]


def plan(options: Options) -> list[tuple[str, Cell]]:
    """Return the cells of every model on every split with every seed."""
    return presets.on_all_splits({each.name: each for each in models(options)}, options)


def render(results: Results, options: Options) -> Page:
    """Return the distributions of the ratios, and tables of them."""
    found = collect(plan(options), results)
    known = ratios.sampled(found)
    compared = ratios.ratios(known, [(name, BASELINE) for name in KERNELS])
    kernels = ratios.ratios(known, [(name, GAUSSIAN) for name in KERNELS if name != GAUSSIAN])
    bandwidths = [
        [each.name, each.options["kernel"], f"{each.options['bandwidth']:g}", each.found]
        for each in models(options)
        if each.name != BASELINE
    ]
    return Page(
        [
            f"{options.splits} splits, {options.seeds} starts on each, whose mean is one point. "
            f"{ratios.INTERVALS}",
            ratios.summary(compared),
            "The paper says that the Gaussian kernel is slightly, but not much, better than "
            "Epanechnikov's, and easier to tune. The kernels beside each other:",
            ratios.summary(kernels),
            "Means over the splits ± their standard deviation:",
            ratios.means(known),
            "The bandwidth of each kernel was tuned on the same grid, for the validation users of "
            "the paper's split; the other settings are the authors':",
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
    cells_of(plan),
    render,
    splits=50,
    seeds=3,
)
