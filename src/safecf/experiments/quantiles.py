"""`quantiles`: every model over iALS, for the worst-off users at every level."""

from typing import Any

import numpy as np

from safecf.experiments import published, table_1
from safecf.experiments.aggregate import collect, heading, tails
from safecf.experiments.base import Cell, Experiment, Options, Results
from safecf.experiments.page import Page, table

LEVELS = [round(0.1 + 0.05 * place, 2) for place in range(19)]
SHOWN = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
NAMES = ("iALS", "Mult-VAE", "ERM-MF", "CVaR-MF", "SAFER2", "EASE")
BASELINE = "iALS"

Curves = dict[tuple[str, str], list[float]]


def plan(options: Options) -> list[tuple[str, Cell]]:
    """Return the cells of `table-1` that belong to these models."""
    return [(name, cell) for name, cell in table_1.plan(options) if name in NAMES]


def cells(options: Options) -> list[Cell]:
    """Return every model from every start; they are shared with `table-1`."""
    return [cell for _, cell in plan(options)]


def metrics(options: Options) -> tuple[str, ...]:
    """Return the two metrics of the data set in the paper."""
    return tuple(metric for metric, level in published.columns(options.data) if level == 1)


def curves(results: Results, options: Options) -> Curves:
    """Return by model and metric: the tail mean at each level over that of iALS."""
    found = collect(plan(options), results)
    ratios: Curves = {}
    for metric in metrics(options):
        base = [tails(found[BASELINE], (metric, level)).mean() for level in LEVELS]
        for name, each in found.items():
            own = [tails(each, (metric, level)).mean() for level in LEVELS]
            ratios[name, metric] = [a / b if b else np.nan for a, b in zip(own, base, strict=True)]
    return ratios


def render(results: Results, options: Options) -> Page:
    """Return the curves, and a table of some of their points."""
    found = curves(results, options)
    blocks = [
        "The mean recall of the worst-off share alpha of the test users, divided by that of iALS; "
        f"alpha = 1 is everybody. Means over {options.seeds} starts. Models and settings are those "
        "of `table-1`. The paper shows the figure for ML-20M and MSD, and no numbers."
    ]
    for metric in metrics(options):
        lines = [
            [name, *(_ratio(ratios[LEVELS.index(level)]) for level in SHOWN)]
            for (name, of), ratios in found.items()
            if of == metric
        ]
        blocks.append(table([heading((metric, 1.0)), *(f"alpha {a:g}" for a in SHOWN)], lines))
    return Page(
        blocks,
        [
            {"model": name, "metric": metric, "level": level, "ratio to iALS": ratio}
            for (name, metric), ratios in found.items()
            for level, ratio in zip(LEVELS, ratios, strict=True)
        ],
        lambda: draw(found, options),
        "Relative performance of each method over iALS for each quantile level",
    )


def draw(found: Curves, options: Options) -> Any:
    """Draw a panel per metric."""
    from safecf.experiments.figures import look_of, panels  # noqa: PLC0415

    chosen = metrics(options)
    figure, axes = panels(len(chosen))
    for metric, panel in zip(chosen, axes, strict=True):
        for (name, of), ratios in found.items():
            if of == metric:
                panel.plot(LEVELS, ratios, label=name, markevery=3, **look_of(name)._asdict())
        panel.set_xlabel(r"quantile level $\alpha$ (share of worst-off users)")
        panel.set_ylabel(f"{heading((metric, 1.0))} relative to iALS")
    axes[0].legend()
    return figure


def _ratio(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.3f}"


EXPERIMENT = Experiment(
    "quantiles",
    "Every model over iALS at each quantile level",
    'figure "relative performance of each method over iALS for each quantile level"',
    cells,
    render,
    data=table_1.EXPERIMENT.data,
    seeds=table_1.EXPERIMENT.seeds,
)
