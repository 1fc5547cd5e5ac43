"""SAFER2 over other models, on many splits: `frontier`, `robustness` and `kernels`.

`frontier` has models as they come, with the paper's settings and tuned.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from reproduction import presets, scores, settings
from reproduction.data import SEED
from reproduction.experiment import Case, Options, Result, Row, Tables, grouped
from reproduction.experiments import declared
from reproduction.experiments.tuning import searches
from reproduction.figures import Panel, curves, line_styles
from reproduction.page import heading
from reproduction.tasks import statistics
from safecf.models.presets import Preset

COLUMNS = sorted(scores.RATIOS, key=lambda column: column[0])  # a metric, then its tail
DATA = settings("experiments/frontier")
RATIOS = settings("experiments/ratios")
TUNED, IALS = DATA["tuned"], DATA["reference"]


def _models(options: Options) -> dict[str, Preset]:
    """Return all models by their names here, with an iALS as large as the largest SAFER2."""
    paper, tuned, sized = (
        presets.load(options.data, which) for which in ("paper", "tuned", "sized")
    )
    found = {
        f"{name}, defaults": Preset(name, kind, {}, "as it comes")
        for name, kind in DATA["defaults"].items()
    }
    found |= {f"{name}, the paper's settings": paper[name] for name in ("iALS", "SAFER2")}
    found |= {TUNED[name]: tuned[name] for name in TUNED}
    size = max(found[name].options["factors"] for name in DATA["ours"][1:])
    large = sized[f"iALS, d = {size}"]
    if large.options != found[IALS].options:
        found[f"{IALS}, d = {size}"] = large
    return found


def _model(name: str) -> str:
    """Return the model of a name: "SAFER2" of "SAFER2, tuned"."""
    return name.split(", ", maxsplit=1)[0]


def _cases(options: Options) -> list[Case]:
    """Return all cases; the first has the users on whom the settings were chosen."""
    facts = Case(statistics, {"data": options.data, "split": SEED}, "facts")
    return [facts, *presets.on_splits(_models(options), options)]


def _tables(results: list[Result], options: Options) -> Tables:
    """Return means over the splits, and the gains of SAFER2 over each of the others."""
    found = grouped(results[1:])
    users = results[0].record["validation users"]
    known, fresh = scores.evaluations(found), scores.evaluations(found, users)
    numbers = scores.numbers(found, COLUMNS)
    searched = [
        {"model": TUNED[each.name], "tried": each.budget, "epochs": max(each.final)}
        | {"factors": max([*each.sizes, each.fixed.get("factors", 0)]) or None}
        for each in searches(replace(options, searches=()))
        if each.which == "tuned" and each.name in TUNED
    ]
    return {
        "numbers": numbers,
        "means": scores.means(numbers, known),
        "gains": _gains(known, numbers),
        "fresh": _gains(fresh, scores.numbers(found, COLUMNS, users)),
        "over": scores.gains(known, [(name, IALS) for name in known if name != IALS], COLUMNS),
        "settings": presets.rows(_models(options)),
        "searched": searched,
        "facts": [{"left out": len(users)}],
    }


def _gains(known: scores.Known, numbers: list[Row]) -> list[Row]:
    """Return the gains, and on how many splits the worst-off gain at R@20."""
    others = [name for name in known if _model(name) != "SAFER2"]
    pairs = [(ours, other) for ours in DATA["ours"] for other in others] + DATA["further"]
    gains = scores.gains(known, pairs, COLUMNS)
    names = ("model", "baseline", "won", "splits")
    won = [row for row in scores.over(numbers, gains) if (row["metric"], row["tail"]) == COLUMNS[1]]
    better = [{**{name: row[name] for name in names}, "heading": "better on"} for row in won]
    return [*gains, *better]


def _draw(tables: Tables) -> Any:
    of = {(row["model"], row["metric"], row["tail"]): row for row in tables["over"]}
    names = list(grouped(tables["means"], "model"))
    colours = line_styles(dict.fromkeys(map(_model, names)))
    common = {"markersize": 6, "markeredgecolor": "white", "markeredgewidth": 0.6}
    styles = {
        name: {**common, "linestyle": "none", "color": colours[_model(name)].color}
        | {"marker": DATA["markers"].get(name.removeprefix(_model(name)), "P")}
        | {"zorder": 4 if name.endswith(", defaults") else 3}  # else the tuned ones may hide them
        for name in names
    }
    drawn = []
    for mean, tail in (COLUMNS[:2], COLUMNS[2:]):
        points: dict[str, Any] = {}
        bars: dict[str, Any] = {}
        for name in names:
            pair = [of.get((name, *column), {}) for column in (mean, tail)]
            none = 0.0 if name == IALS else np.nan
            x, y = ([[r.get(end, none)] for end in ("gain", "low", "high")] for r in pair)
            points[name], bars[name] = (x[0], y[0]), (*y[1:], *x[1:])
        titles = [f"{heading(*column)} over {IALS}, %" for column in (mean, tail)]
        drawn.append(Panel(titles[0], titles[1], points, level=0, at=0, bars=bars))
    return curves(drawn, legend=3, height=4.4, styles=styles)[0]


FRONTIER = declared("frontier", _cases, _tables, _draw)


def _ratio_models(name: str, options: Options) -> dict[str, Preset]:
    return {
        model: presets.load(options.data, which)[model]
        for which, models in RATIOS[name]["models"].items()
        for model in models
    }


def _ratio_cases(name: str, options: Options) -> list[Case]:
    return presets.on_splits(_ratio_models(name, options), options)


def _ratio_tables(name: str, results: list[Result], options: Options) -> Tables:
    """Return the means of all models, their bandwidths, and a table for each list of pairs."""
    found = grouped(results)
    known, numbers = scores.evaluations(found), scores.numbers(found, scores.RATIOS)
    gains = {
        table: scores.over(numbers, scores.gains(known, pairs, scores.RATIOS))
        for table, pairs in RATIOS[name]["pairs"].items()
    }
    bandwidths = [
        {"model": each.name, "found": each.found}
        | {option: each.options[option] for option in ("kernel", "bandwidth")}
        for each in _ratio_models(name, options).values()
        if each.name.startswith("SAFER2, ")
    ]
    return {"numbers": numbers, **gains, "means": scores.means(numbers), "bandwidths": bandwidths}


ROBUSTNESS, KERNELS = (
    declared(
        name,
        *(partial(_ratio_cases, name), partial(_ratio_tables, name)),
        partial(scores.draw_ratios, RATIOS[name]["pairs"]["gains"]),
    )
    for name in ("robustness", "kernels")
)
