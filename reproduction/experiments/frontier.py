"""`frontier`: models as they come, with the paper's settings and tuned, on many splits."""

from collections.abc import Iterable
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
PAPER = ("iALS", "SAFER2")
CLASSES = {"iALS": "IALS", "ERM-MF": "ERMMF", "SAFER2": "SAFER2"}
# The names of presets, and what this page calls them.
TUNED = {
    "iALS": "iALS, tuned",
    "ERM-MF": "ERM-MF, tuned",
    "CVaR-MF": "CVaR-MF, tuned",
    "EASE": "EASE, tuned",
    "EASE, weighted": "EASE, tuned, weighted",
    "SAFER2, ridge in the risk": "SAFER2, tuned",
    "SAFER2": "SAFER2, tuned, ridge outside",
    "SAFER2, rho = 1": "SAFER2, tuned, ridge outside, rho = 1",
}
IALS, ERM_MF, INSIDE, OUTSIDE, RHO_1 = (
    TUNED[name]
    for name in ("iALS", "ERM-MF", "SAFER2, ridge in the risk", "SAFER2", "SAFER2, rho = 1")
)
COMES, THEIRS = ", defaults", ", the paper's settings"
DEFAULTS = f"SAFER2{COMES}"
OURS = (DEFAULTS, INSIDE, OUTSIDE)  # whose gains over the other models are shown
# Further pairs of a model and what it is compared with.
FURTHER = (
    (INSIDE, DEFAULTS),
    (OUTSIDE, DEFAULTS),
    (OUTSIDE, INSIDE),
    (OUTSIDE, RHO_1),
    (DEFAULTS, f"SAFER2{THEIRS}"),
    (IALS, f"iALS{COMES}"),
    (ERM_MF, f"ERM-MF{COMES}"),
)
# The marker of each variant; the colour is that of the model.
MARKERS = {
    COMES: "o",
    THEIRS: "X",
    ", tuned": "s",
    ", tuned, weighted": "D",
    ", tuned, ridge outside": "^",
    ", tuned, ridge outside, rho = 1": "v",
}
LARGE = "P"  # of an iALS with as many factors as SAFER2


def models(options: Options) -> dict[str, Preset]:
    """Return all models by their names here, with an iALS as large as the largest SAFER2."""
    come = presets.defaults(options.data, CLASSES)
    theirs = presets.require(options.data, "paper", PAPER, options.presets)
    ours = presets.require(options.data, "tuned", TUNED, options.presets)
    found = {each.name + COMES: each for each in come}
    found |= {each.name + THEIRS: each for each in theirs}
    found |= {TUNED[each.name]: each for each in ours}
    size = max(found[name].options["factors"] for name in (INSIDE, OUTSIDE))
    large = presets.load(options.data, "sized", options.presets).get(f"iALS, d = {size}")
    if large is None or large.options == found[IALS].options:
        return found
    return {**found, f"{IALS}, d = {size}": large}


def pairs(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return which model is compared with which: SAFER2 with the others, and `FURTHER`."""
    others = [name for name in names if _model(name) != "SAFER2"]
    return [(ours, other) for ours in OURS for other in others] + list(FURTHER)


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
    settings = [
        [name, presets.options_text(each.options) or "none", each.found]
        for name, each in models(options).items()
    ]
    return Page(
        [
            f"Means over the test users of {options.splits} splits. `defaults` are the models as "
            "they come, `SAFER2()` and so on; the constants behind their automatic options were "
            "chosen on validation users of several data sets, this one among them. The tuned "
            "settings were chosen by `tuning`, on the validation users of the paper's split; a "
            "table below says how many settings of each were tried. SAFER2, tuned, has the form "
            "of `SAFER2()`; with the ridge outside the risk it has the paper's, and so does "
            "ERM-MF, tuned. But for rho = 1, with which the loss is the paper's, they also had "
            "their `normalisation` rho chosen. EASE, weighted, has weights of users and a "
            "denoising ridge. Mult-VAE, which `table-1` has, is left out, since it would take as "
            "long as all the others.",
            "What came before these numbers: some 400 trainings of SAFER2 with the ridge outside, "
            "against some 20 of iALS, from which its ranges follow. An iALS with as many factors "
            "as SAFER2 was added after a look at 33 splits, and ERM-MF was tuned again, over "
            "wider ranges, after a look at all. So were iALS and SAFER2 with the ridge inside, "
            "since the settings of their first searches did worse there than their own defaults: "
            "these second searches are on `tuning-chosen` and start at the defaults, the others "
            "are on `tuning` and do not. Tuning takes the fewest factors within 0.0005 of the "
            "best, so that forms of a model differ in size as well.",
            "The 95 % intervals draw users, each with all their appearances in test sets. They "
            "are wide since users differ; models are better compared by the gains below, on the "
            "same users.",
            table(["", *map(heading, COLUMNS)], lines),
            "What one model gains over another on the same splits, in percent of the means, with "
            "95 % intervals that draw users, and on how many splits it is better for the "
            "worst-off at R@20:",
            _gains(known),
            f"The {len(left_out):,} users on whom the settings were chosen are test users of other "
            "splits. Without them, nobody who is tested was scored when settings were chosen, save "
            "for what was done later, to iALS, ERM-MF and SAFER2 with the ridge inside:",
            _gains(ratios.sampled(fresh)),
            "The settings; options that are not named are the defaults:",
            table(["", "options", "found"], settings),
            "How they were sought, in the last search:",
            table(["", "settings tried", "factors up to", "epochs up to"], _searched(options)),
        ],
        [row for name, each in found.items() for row in rows(name, each, COLUMNS)],
        lambda: draw(known),
        "Change of mean and tail over the tuned iALS, with 95 % intervals that draw users",
    )


def _gains(known: ratios.Samples) -> str:
    """Return a table with a row for each of `pairs`."""
    lines = []
    for model, other in pairs(known[COLUMNS[0]]):
        found = [gain(known[column][other], known[column][model]) for column in COLUMNS]
        numbers = [ratios.finite("{:+.1f} % [{:+.1f}, {:+.1f}]", g.value, *g.users) for g in found]
        count = known[COLUMNS[1]][model].values.size
        won = f"{round(found[1].won * count)} of {count}"
        lines.append([f"{model} / {other}", *numbers, won])
    return table(["", *map(heading, COLUMNS), "better on"], lines)


def _searched(options: Options) -> list[list[str]]:
    """Return a row per model: the number of settings that `tuning` tries, and the largest sizes."""
    return [
        [TUNED[each.name], str(each.budget), str(each.largest or ""), str(max(each.final))]
        for each in searches(options.data)
        if each.which == "tuned" and each.name in TUNED
    ]


def draw(known: ratios.Samples) -> Any:
    """Draw every model as a point: its gain over iALS for all users and for the worst-off."""
    from reproduction.figures import error_bars, line_styles, panels  # noqa: PLC0415

    figure, axes = panels(2, height=4.4)
    styles = line_styles(dict.fromkeys(map(_model, known[COLUMNS[0]])))
    for panel, (mean, tail) in zip(axes, (COLUMNS[:2], COLUMNS[2:]), strict=True):
        for name in known[mean]:
            x, y = (gain(known[column][IALS], known[column][name]) for column in (mean, tail))
            panel.errorbar(
                x.value,
                y.value,
                xerr=error_bars([x.value], *np.reshape(x.users, (2, 1))),
                yerr=error_bars([y.value], *np.reshape(y.users, (2, 1))),
                label=name,
                color=styles[_model(name)].color,
                marker=marker(name),
                markersize=6,
                markeredgecolor="white",
                markeredgewidth=0.6,
                linestyle="none",
                linewidth=0.8,
                zorder=4 if name.endswith(COMES) else 3,  # else the tuned ones may hide them
            )
        for line in (panel.axhline, panel.axvline):
            line(0, color="#7F7F7F", linestyle=":", linewidth=0.8)
        panel.set_xlabel(f"{heading(mean)} over {IALS}, %")
        panel.set_ylabel(f"{heading(tail)} over {IALS}, %")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _model(name: str) -> str:
    """Return the model of a name: "SAFER2" of "SAFER2, tuned"."""
    return name.split(", ", maxsplit=1)[0]


def marker(name: str) -> str:
    """Return the marker of a name, which no other variant of the same model has.

    >>> marker("SAFER2, tuned"), marker("iALS, tuned, d = 512")
    ('s', 'P')
    """
    return MARKERS.get(name.removeprefix(_model(name)), LARGE)


EXPERIMENT = Experiment(
    "frontier",
    "All models, as they come and tuned, over the splits",
    "none; the models of Table 1 with more factors, settings by `tuning`",
    cells,
    render,
    splits=50,
)
