"""`frontier`: all models with the settings that `tuning` found, on many splits."""

from typing import Any

import numpy as np

from reproduction import presets, ratios
from reproduction.aggregate import collect, gain, heading, over_splits, rows, without_users
from reproduction.base import Cell, Experiment, Options, Results
from reproduction.data import SEED
from reproduction.page import Page, table
from reproduction.spaces import searches
from reproduction.tasks.statistics import users
from safecf.models.presets import Preset

COLUMNS = sorted(ratios.COLUMNS, key=lambda column: column[0])  # a metric, then its tail
TUNED = (
    *("iALS", "ERM-MF", "CVaR-MF", "SAFER2", "SAFER2, rho = 1", "SAFER2, ridge in the risk"),
    *("EASE", "EASE, weighted"),
)
PAPER = (IALS, SAFER2) = ("iALS", "SAFER2")
THEIRS = ", the paper's settings"


def models(options: Options) -> dict[str, Preset]:
    """Return the tuned models, two with the paper's settings, and an iALS as large as SAFER2."""
    ours = presets.require(options.data, "tuned", TUNED, options.presets)
    theirs = presets.require(options.data, "paper", PAPER, options.presets)
    found = {each.name + THEIRS: each for each in theirs} | {each.name: each for each in ours}
    size = found[SAFER2].options["factors"]
    large = presets.load(options.data, "sized", options.presets).get(f"{IALS}, d = {size}")
    if large is None or large.options == found[IALS].options:
        return found
    return {**found, large.name: large}


def plan(options: Options) -> list[tuple[str, Cell]]:
    """Return the cells of every model on every split, with its name."""
    return presets.on_all_splits(models(options), options)


def cells(options: Options) -> list[Cell]:
    """Return all cells; the first has the users on whom the settings were chosen."""
    settings = {"data": options.data, "split": SEED, "on": "validation"}
    return [Cell(users, settings), *(cell for _, cell in plan(options))]


def render(results: Results, options: Options) -> Page:
    """Return means over the splits, and the gains of SAFER2 over each of the others."""
    (chosen_on, *rest) = results
    others = Results(tuple(rest))
    left_out = chosen_on.record["users"]
    found = collect(plan(options), others)
    fresh = collect(plan(options), without_users(others, left_out))
    known = ratios.sampled(found)
    lines = []
    for name in found:
        numbers = [over_splits(known[column][name]) for column in COLUMNS]
        lines.append([name, *(f"{n.value:.4f} [{n.low:.4f}, {n.high:.4f}]" for n in numbers)])
    pairs = [(SAFER2, name) for name in found if name != SAFER2]
    settings = [
        [name, presets.options_text(each.options), each.found]
        for name, each in models(options).items()
    ]
    return Page(
        [
            f"Means over the test users of {options.splits} splits. Our settings were chosen by "
            "`tuning`, on the validation users of the paper's split, not with the same means for "
            "all: the last table says how many settings of each were tried, and up to which "
            "number of factors, and before them came some 400 trainings of SAFER2, against some "
            "20 of iALS, from which the ranges of SAFER2 follow. ERM-MF and SAFER2 also had "
            "their `normalisation` rho chosen, with other ranges; with rho = 1 the loss is the "
            "paper's. All but one of the SAFER2 have the users' ridge outside the risk, as the "
            "paper has. EASE, weighted, has weights of users and a denoising ridge. Mult-VAE, "
            "which `table-1` has, is left out, since it would take as long as all the others. An "
            "iALS with as many factors as SAFER2, the best of those for the "
            "validation users, was added after a look at 33 splits, when the smaller one fell "
            "short there, and ERM-MF was tuned again, over wider ranges, after a look at all. The "
            "95 % intervals draw users, each with all their appearances in test sets. They are "
            "wide since users differ; models are better compared by the gains below, on the same "
            "users.",
            table(["", *map(heading, COLUMNS)], lines),
            "What SAFER2 gains over the others on the same splits, in percent of the means, and "
            f"how many splits it wins. {ratios.INTERVALS}",
            ratios.summary(ratios.ratios(known, pairs)),
            f"The {len(left_out):,} users on whom the settings were chosen are test users of other "
            "splits. Without them, nobody who is tested was scored when settings were chosen, save "
            "for what was done later, to iALS and ERM-MF:",
            ratios.summary(ratios.ratios(ratios.sampled(fresh), pairs)),
            "The settings:",
            table(["", "options", "found"], settings),
            "How they were sought:",
            table(["", "settings tried", "factors up to", "epochs up to"], _searched(options)),
        ],
        [row for name, each in found.items() for row in rows(name, each, COLUMNS)],
        lambda: draw(known),
        "Change of mean and tail over the tuned iALS, with 95 % intervals that draw users",
    )


def _searched(options: Options) -> list[list[str]]:
    """Return a row per model: the number of settings that `tuning` tries, and the largest sizes."""
    chosen = [each for each in searches(options.data) if each.which == "tuned"]
    return [
        [each.name, str(each.budget), str(each.largest or ""), str(max(each.final))]
        for each in chosen
    ]


def draw(known: ratios.Samples) -> Any:
    """Draw every model as a point: its gain over iALS for all users and for the worst-off."""
    from reproduction.figures import error_bars, line_styles, panels  # noqa: PLC0415

    figure, axes = panels(2, height=3.1)
    styles = line_styles(dict.fromkeys(map(_base, known[COLUMNS[0]])))
    for panel, (mean, tail) in zip(axes, (COLUMNS[:2], COLUMNS[2:]), strict=True):
        for name in known[mean]:
            x, y = (gain(known[column][IALS], known[column][name]) for column in (mean, tail))
            drawn = styles[_base(name)]
            panel.errorbar(
                x.value,
                y.value,
                xerr=error_bars([x.value], *np.reshape(x.users, (2, 1))),
                yerr=error_bars([y.value], *np.reshape(y.users, (2, 1))),
                label=name,
                color=drawn.color,
                marker=drawn.marker,
                markersize=5,
                fillstyle=_fill(name),
                linestyle="none",
                linewidth=0.8,
            )
        for line in (panel.axhline, panel.axvline):
            line(0, color="#7F7F7F", linestyle=":", linewidth=0.8)
        panel.set_xlabel(f"{heading(mean)} over iALS, %")
        panel.set_ylabel(f"{heading(tail)} over iALS, %")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _base(name: str) -> str:
    """Return the model of a name: "SAFER2" of "SAFER2, rho = 1"."""
    return name.split(", ", maxsplit=1)[0]


def _fill(name: str) -> str:
    """Return the fill of the marker, which tells apart presets of the same model."""
    if name == _base(name):
        return "full"
    if name.endswith(THEIRS):
        return "none"
    return "right" if name.endswith(("ridge in the risk", "weighted")) else "left"


EXPERIMENT = Experiment(
    "frontier",
    "All models, tuned, over the splits",
    "none; the models of Table 1 with more factors, settings by `tuning`",
    cells,
    render,
    splits=50,
)
