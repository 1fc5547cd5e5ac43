"""`quantiles`: every model over iALS, by tail level."""

from typing import Any

import numpy as np

from reproduction import published
from reproduction.aggregate import Estimate, collect, heading, lifts
from reproduction.base import Cell, Experiment, Options, Results, cells_of
from reproduction.experiments import table_1
from reproduction.page import Page, table

LEVELS = [round(0.1 + 0.05 * place, 2) for place in range(19)]
SHOWN = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
NAMES = ("iALS", "Mult-VAE", "ERM-MF", "CVaR-MF", "SAFER2", "EASE")
BASELINE, BANDED = "iALS", "SAFER2"

Curves = dict[tuple[str, str], list[Estimate]]


def plan(options: Options) -> list[tuple[str, Cell]]:
    """Return the cells of `table-1` for these models; there are no others."""
    return [(name, cell) for name, cell in table_1.plan(options) if name in NAMES]


def metrics(options: Options) -> tuple[str, ...]:
    """Return the two metrics of the paper for the data set."""
    return tuple(metric for metric, level in published.columns(options.data) if level == 1)


def curves(results: Results, options: Options) -> Curves:
    """Return the gain of the tail mean over that of iALS at each level, by model and metric."""
    found = collect(plan(options), results)
    return {
        (name, metric): lifts(found[BASELINE], each, metric, LEVELS)
        for metric in metrics(options)
        for name, each in found.items()
        if name != BASELINE
    }


def render(results: Results, options: Options) -> Page:
    """Return the curves, and tables of some of their points."""
    found = curves(results, options)
    blocks = [
        "The mean recall of the worst-off share alpha of the test users, and by how many percent "
        f"it is above that of iALS; alpha = 1 is everybody. Means over {options.seeds} starts, and "
        "95 % paired bootstrap intervals over the test users; the largest gain of a level is "
        "bold. Models and settings are those of "
        "`table-1`. Levels are left out, and curves begin later, where iALS gives the worst-off of "
        "some draws of users nothing at all. The paper shows the figure for ML-20M and MSD, and "
        "no numbers."
    ]
    for metric in metrics(options):
        of_metric = {name: gains for (name, of), gains in found.items() if of == metric}
        places = [LEVELS.index(level) for level in SHOWN]
        best = {place: max(each[place].value for each in of_metric.values()) for place in places}
        lines = [
            [name, *(_cell(gains[place], best[place]) for place in places)]
            for name, gains in of_metric.items()
        ]
        blocks.append(table([heading((metric, 1.0)), *(f"alpha {a:g}" for a in SHOWN)], lines))
    return Page(
        blocks,
        [
            {"model": name, "metric": metric, "level": level}
            | {"gain over iALS in percent": each.value, "low": each.low, "high": each.high}
            for (name, metric), gains in found.items()
            for level, each in zip(LEVELS, gains, strict=True)
            if each.is_finite
        ],
        lambda: draw(found, options),
        f"Relative performance of each method over iALS for each quantile level; the band is the "
        f"95 % interval of {BANDED}",
    )


def draw(found: Curves, options: Options) -> Any:
    """Draw a panel per metric."""
    from reproduction.figures import line_styles, panels  # noqa: PLC0415

    chosen = metrics(options)
    figure, axes = panels(len(chosen), height=2.6)
    styles = line_styles(NAMES)
    for metric, panel in zip(chosen, axes, strict=True):
        curves = {name: gains for (name, of), gains in found.items() if of == metric}
        first = next((n for n in range(len(LEVELS)) if _known(curves, n)), len(LEVELS))
        for name, gains in curves.items():
            values = [1 + each.value / 100 for each in gains[first:]]
            style = styles[name]._asdict()
            panel.plot(LEVELS[first:], values, label=name, markevery=3, **style)
        ends = [[1 + end / 100 for end in (e.low, e.high)] for e in curves[BANDED][first:]]
        low, high = np.array(ends).reshape(-1, 2).T
        style = {"color": "#000000", "alpha": 0.1, "linewidth": 0}
        panel.fill_between(LEVELS[first:], low, high, label=f"95 % of {BANDED}", **style)
        panel.axhline(1, color="#7F7F7F", linestyle=":", linewidth=0.8)
        panel.set_xlabel(r"quantile level $\alpha$ (share of worst-off users)")
        panel.set_ylabel(f"{heading((metric, 1.0))} relative to iALS")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    return figure


def _known(curves: dict[str, list[Estimate]], place: int) -> bool:
    """Whether all intervals at a level are finite."""
    return all(each[place].is_finite for each in curves.values())


def _cell(gain: Estimate, best: float) -> str:
    text = gain.in_percent()
    return f"**{text}**" if text and gain.value == best else text


EXPERIMENT = Experiment(
    "quantiles",
    "Every model over iALS at each quantile level",
    'figure "relative performance of each method over iALS for each quantile level"',
    cells_of(plan),
    render,
    data=table_1.EXPERIMENT.data,
    seeds=table_1.EXPERIMENT.seeds,
)
