"""`frontier`: models as they come, with the paper's settings and tuned, on many splits."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from reproduction import presets, scores
from reproduction.data import SEED
from reproduction.experiment import TINY, Case, Options, Result, Row, Tables, grouped
from reproduction.experiments import declared
from reproduction.experiments.tuning import searches
from reproduction.page import heading
from reproduction.tasks import statistics
from safecf.models.presets import Preset

COLUMNS = sorted(scores.RATIOS, key=lambda column: column[0])  # a metric, then its tail
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
IALS, INSIDE, OUTSIDE = "iALS, tuned", "SAFER2, tuned", "SAFER2, tuned, ridge outside"
DEFAULTS, PAPER_SETTINGS = ", defaults", ", the paper's settings"
OURS = ("SAFER2, defaults", INSIDE, OUTSIDE)  # whose gains over the other models are shown
# Further pairs of a model and what it is compared with.
FURTHER = (
    (INSIDE, OURS[0]),
    (OUTSIDE, OURS[0]),
    (OUTSIDE, INSIDE),
    (OUTSIDE, f"{OUTSIDE}, rho = 1"),
    (OURS[0], f"SAFER2{PAPER_SETTINGS}"),
    (IALS, "iALS, defaults"),
    ("ERM-MF, tuned", "ERM-MF, defaults"),
)
# The marker of each variant; the colour is that of the model. "P" is an iALS as large as SAFER2.
MARKERS = {
    DEFAULTS: "o",
    PAPER_SETTINGS: "X",
    ", tuned": "s",
    ", tuned, weighted": "D",
    ", tuned, ridge outside": "^",
    ", tuned, ridge outside, rho = 1": "v",
}


def models(options: Options) -> dict[str, Preset]:
    """Return all models by their names here, with an iALS as large as the largest SAFER2."""
    data, file = options.data, options.presets
    come = [Preset(name, kind, {}, "as it comes") for name, kind in CLASSES.items()]
    found = {
        f"{each.name}{DEFAULTS}": presets.small(each) if data == TINY else each for each in come
    }
    for each in presets.require(data, "paper", ("iALS", "SAFER2"), file):
        found[each.name + PAPER_SETTINGS] = each
    found |= {TUNED[each.name]: each for each in presets.require(data, "tuned", TUNED, file)}
    size = max(found[name].options["factors"] for name in (INSIDE, OUTSIDE))
    large = presets.load(data, "sized", file).get(f"iALS, d = {size}")
    if large is None or large.options == found[IALS].options:
        return found
    return {**found, f"{IALS}, d = {size}": large}


def pairs(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return which model is compared with which: SAFER2 with the others, and `FURTHER`."""
    others = [name for name in names if _model(name) != "SAFER2"]
    return [(ours, other) for ours in OURS for other in others] + list(FURTHER)


def cases(options: Options) -> list[Case]:
    """Return all cases; the first has the users on whom the settings were chosen."""
    facts = Case(statistics, {"data": options.data, "split": SEED}, "facts")
    return [facts, *presets.on_splits(models(options), options)]


def tables(results: list[Result], options: Options) -> Tables:
    """Return means over the splits, and the gains of SAFER2 over each of the others."""
    (facts, *_), found = results, grouped(results)
    del found["facts"]
    users = facts.record["validation users"]
    known, fresh = scores.evaluations(found), scores.evaluations(found, users)
    numbers = scores.numbers(found, COLUMNS)
    searched = [
        {"model": TUNED[each.name], "tried": each.budget, "epochs": max(each.final)}
        | {"factors": each.largest}
        for each in searches(options.data)
        if each.which == "tuned" and each.name in TUNED
    ]
    return {
        "numbers": numbers,
        "means": scores.means(numbers, known),
        "gains": _gains(known, numbers),
        "fresh": _gains(fresh, scores.numbers(found, COLUMNS, users)),
        "over": scores.gains(known, [(name, IALS) for name in known if name != IALS], COLUMNS),
        "settings": presets.rows(models(options)),
        "searched": searched,
        "facts": [{"left out": len(users)}],
    }


def _gains(known: scores.Known, numbers: list[Row]) -> list[Row]:
    """Return the gains, and on how many splits the worst-off gain at R@20."""
    gains = scores.gains(known, pairs(known), COLUMNS)
    names = ("model", "baseline", "won", "splits")
    won = [row for row in scores.over(numbers, gains) if (row["metric"], row["tail"]) == COLUMNS[1]]
    better = [{**{name: row[name] for name in names}, "heading": "better on"} for row in won]
    return [*gains, *better]


def draw(tables: Tables) -> Any:
    """Draw every model as a point: its gain over iALS for all users and for the worst-off."""
    from reproduction.figures import error_bars, line_styles, panels  # noqa: PLC0415

    of = {(row["model"], row["metric"], row["tail"]): row for row in tables["over"]}
    names = list(dict.fromkeys(row["model"] for row in tables["means"]))
    figure, axes = panels(2, height=4.4)
    styles = line_styles(dict.fromkeys(map(_model, names)))
    none = {"gain": 0.0, "low": 0.0, "high": 0.0}
    for panel, (mean, tail) in zip(axes, (COLUMNS[:2], COLUMNS[2:]), strict=True):
        for name in names:
            x, y = (of.get((name, *column), none) for column in (mean, tail))
            panel.errorbar(
                *(np.nan if row["gain"] is None else row["gain"] for row in (x, y)),
                xerr=error_bars(*([x[key] or 0.0] for key in none)),
                yerr=error_bars(*([y[key] or 0.0] for key in none)),
                label=name,
                color=styles[_model(name)].color,
                marker=marker(name),
                markersize=6,
                markeredgecolor="white",
                markeredgewidth=0.6,
                linestyle="none",
                linewidth=0.8,
                zorder=4 if name.endswith(DEFAULTS) else 3,  # else the tuned ones may hide them
            )
        for line in (panel.axhline, panel.axvline):
            line(0, color="#7F7F7F", linestyle=":", linewidth=0.8)
        panel.set_xlabel(f"{heading(*mean)} over {IALS}, %")
        panel.set_ylabel(f"{heading(*tail)} over {IALS}, %")
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
    return MARKERS.get(name.removeprefix(_model(name)), "P")


EXPERIMENT = declared("frontier", cases, tables, draw)
