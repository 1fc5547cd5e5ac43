"""`table-1`: ranking quality of all models, for all users and for the worst-off 30 %."""

import math
from dataclasses import replace
from typing import Any

from reproduction import presets, published
from reproduction.aggregate import Estimate, collect, estimate, heading, lift, rows
from reproduction.base import Cell, Experiment, Options, Result, Results
from reproduction.data import SEED
from reproduction.page import Page, table
from reproduction.tasks.statistics import statistics
from safecf.models.presets import Preset

COLUMNS = [(f"recall@{k}", level) for level in (1.0, 0.3) for k in (20, 50, 100)]
BASELINE = "iALS"
GRID = ", our grid"
TUNED_BY = ("recall@20", 0.3)
LEFT_OUT = {
    "gowalla": " EASE is left out, since with 41 thousand items it would need 19 GiB, and "
    "Mult-VAE, since tuning it would take many hours on a CPU.",
}
# The models whose ranges the paper gives.
REPEATED = ("iALS", "Mult-VAE", "ERM-MF", "CVaR-MF", "SAFER2")


def models(options: Options) -> list[Preset]:
    """Return all models with the authors' settings, or the tuned ones for other data.

    Models that were tuned over the paper's ranges follow.
    """
    paper, tuned, grid = (
        presets.load(options.data, which, options.presets) for which in ("paper", "tuned", "grid")
    )
    which = "paper" if paper else "tuned"
    presets.require(options.data, which, (BASELINE, "ERM-MF", "SAFER2"), options.presets)
    found = paper or tuned
    again = [replace(each, name=name + GRID) for name, each in grid.items() if name in REPEATED]
    return [*found.values(), *again]


def plan(options: Options) -> list[tuple[str, Cell]]:
    """Return the cells of all models with all seeds."""
    return [
        (model.name, presets.cell(model, options.data, SEED, seed))
        for model in models(options)
        for seed in presets.seeds(model, options.seeds)
    ]


def cells(options: Options) -> list[Cell]:
    """Return the cells of all models, after the one for statistics of the data."""
    facts = Cell(statistics, {"data": options.data, "split": SEED})
    return [facts, *(cell for _, cell in plan(options))]


def render(results: Results, options: Options) -> Page:
    """Return the table with published numbers below each row, and gains over iALS."""
    facts, *others = results
    found = collect(plan(options), Results(tuple(others)))
    baseline = found[BASELINE]
    names = ["", *map(heading, COLUMNS)]
    lifts = [
        [name, *(lift(baseline, each, column).in_percent() for column in COLUMNS)]
        for name, each in found.items()
        if name != BASELINE
    ]
    chosen = [
        [each.name, f"`{each.model}`", presets.options_text(each.options), each.found]
        for each in models(options)
    ]
    return Page(
        [
            f"{facts.record['test users']:,} test users that are new to the models: recall at 20, "
            "50 and 100 items of all of them, and the mean of the worst-off 30 %. Means over "
            f"{_starts(options)} ± their standard deviation, and 95 % bootstrap intervals over the "
            f"test users.{_grid_note(found)}{_tail_note(found)}{LEFT_OUT.get(options.data, '')}",
            table(names, _quality(found, options)),
            "How much better than iALS, with 95 % paired bootstrap intervals over the test users:",
            table(names, lifts),
            "The data, after the filters of the protocol:",
            _facts(facts, options),
            "The settings:",
            table(["", "model", "options", "found"], chosen),
        ],
        [row for name, each in found.items() for row in rows(name, each, COLUMNS)],
        lambda: draw(found, options),
        "Recall of all users and of the worst-off 30 %, with 95 % intervals",
    )


def draw(found: dict[str, list[Result]], options: Options) -> Any:
    """Draw our numbers with their intervals, and those of the paper."""
    from reproduction.figures import error_bars, panels  # noqa: PLC0415

    chosen = published.columns(options.data)
    reported = published.reported(options.data)
    figure, axes = panels(len(chosen), height=0.8 + 0.15 * len(found), sharey=True)
    places = range(len(found))
    for column, panel in zip(chosen, axes, strict=True):
        ours = [estimate(each, column) for each in found.values()]
        values = [each.value for each in ours]
        ends = error_bars(values, [each.low for each in ours], [each.high for each in ours])
        panel.errorbar(values, places, xerr=ends, fmt="o", color="#0072B2", label="safecf, 95 %")
        pairs = [
            (reported[name].get(column), y)
            for name, y in zip(found, places, strict=True)
            if name in reported
        ]
        known = [(x, y) for x, y in pairs if x is not None]
        if known:
            style = {"linestyle": "none", "marker": "D", "markerfacecolor": "none"}
            panel.plot(*zip(*known, strict=True), color="#D55E00", label="the paper", **style)
        panel.set_yticks(list(places), list(found))
        panel.set_xlabel(heading(column))
    axes[0].invert_yaxis()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _quality(found: dict[str, list[Result]], options: Options) -> list[list[str]]:
    """Return a row per model, followed by one for each source that has published numbers."""
    lines = []
    for name, each in found.items():
        lines.append([f"**{name}**", *(_number(estimate(each, column)) for column in COLUMNS)])
        for source, label in (("paper", "the paper"), ("code", "authors' code")):
            numbers = published.reported(options.data, source).get(name)
            if numbers:
                cells = (numbers.get(column) for column in COLUMNS)
                lines.append([label, *("" if n is None else f"{n:.4f}" for n in cells)])
    return lines


def _facts(facts: Result, options: Options) -> str:
    lines = [[name, f"{count:,}"] for name, count in facts.record.items() if name != "warnings"]
    reported = published.STATISTICS.get(options.data)
    if reported is not None:
        lines.append(["the paper: users, items, interactions", ", ".join(reported)])
    return table(["", "number"], lines)


def _number(found: Estimate) -> str:
    spread = "" if math.isnan(found.spread) else f" ± {found.spread:.4f}"
    return f"{found.value:.4f}{spread} [{found.low:.3f}, {found.high:.3f}]"


def _grid_note(found: dict[str, list[Result]]) -> str:
    if not any(name.endswith(GRID) for name in found):
        return ""
    return (
        f' Models "{GRID.removeprefix(", ")}" have the best settings of a grid over the ranges of '
        "the paper, for the validation users, see `tuning`; where those of the others are from is "
        "told below."
    )


def _tail_note(found: dict[str, list[Result]]) -> str:
    """Note that the tail is 0 for all models, so that tuning could not use it."""
    if any(estimate(each, TUNED_BY).value for each in found.values()):
        return ""
    return (
        " No model has any hit for the worst-off 30 % among 20 items, so that the settings, which "
        "were chosen by mean and tail of that, go by the mean alone."
    )


def _starts(options: Options) -> str:
    return f"{options.seeds} starts" if options.seeds > 1 else "1 start"


EXPERIMENT = Experiment(
    "table-1",
    "Ranking quality of all models",
    "Table 1, ranking quality comparison",
    cells,
    render,
    data=("ml-1m", "gowalla", "ml-20m", "msd"),
    seeds=5,
)
