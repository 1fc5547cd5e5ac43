"""`table-1`: quality of all models for all users and the worst-off; `quantiles`: by tail level."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from reproduction import presets, scores
from reproduction.data import SEED
from reproduction.experiment import Case, Options, Result, Row, Tables, grouped
from reproduction.experiments import declared
from reproduction.figures import Panel, curves, lines_of
from reproduction.page import heading
from reproduction.tasks import statistics
from safecf.models.presets import Preset

COLUMNS = [(f"recall@{k}", level) for level in (1.0, 0.3) for k in (20, 50, 100)]
BASELINE = "iALS"
GRID = ", our grid"
LEVELS = [round(0.1 + 0.05 * place, 2) for place in range(19)]
SHOWN = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
NAMES = ("iALS", "Mult-VAE", "ERM-MF", "CVaR-MF", "SAFER2", "EASE")
GAIN = "gain over iALS in percent"


def _models(options: Options) -> dict[str, Preset]:
    """Return all models, with the authors' settings or else tuned; then those of the grids."""
    paper, tuned, grid = (presets.load(options.data, which) for which in ("paper", "tuned", "grid"))
    return (paper or tuned) | {
        name + GRID: presets.changed(grid[name], name + GRID) for name in NAMES if name in grid
    }


def _cases(options: Options) -> list[Case]:
    """Return the cases of all models, after the one for statistics of the data."""
    facts = Case(statistics, {"data": options.data, "split": SEED}, "facts")
    return [facts, *presets.on_splits(_models(options), options)]


def _tables(results: list[Result], options: Options) -> Tables:
    """Return scores with published ones below each, gains over iALS, facts and settings."""
    statistic, found = results[0], grouped(results[1:])
    known, numbers = scores.evaluations(found), scores.numbers(found, COLUMNS)
    facts = [{"name": n, "number": f"{of:,}"} for n, of in statistic.record["facts"].items()]
    theirs = scores.PUBLISHED["statistics"].get(options.data)
    if theirs:
        name = "the paper: users, items, interactions"
        facts.append({"name": name, "number": ", ".join(theirs)})
    return {
        "numbers": numbers,
        "scores": _beside(scores.means(numbers, known), options.data),
        "gains": scores.gains(known, [(name, BASELINE) for name in list(known)[1:]], COLUMNS),
        "facts": facts,
        "settings": presets.rows(_models(options)),
    }


def _beside(ours: Sequence[Row], data: str) -> list[Row]:
    """Put what the paper and its authors' code have below our scores of each model."""
    found = []
    for model, rows in grouped(ours, "model").items():
        found += [{**row, "by": f"**{model}**"} for row in rows]
        for source, by in (("paper", "the paper"), ("code", "authors' code")):
            theirs, about = scores.reported(data, source).get(model, {}), {"model": model, "by": by}
            found += [{**about, "metric": m, "tail": t, "value": v} for (m, t), v in theirs.items()]
    return found


def _draw(tables: Tables) -> Any:
    data = tables["numbers"][0]["data"]
    ours = grouped((row for row in tables["scores"] if "low" in row), "metric", "tail")
    theirs, drawn = scores.reported(data), []
    names = list(grouped(tables["numbers"], "model"))
    places = list(range(len(names)))
    for column in scores.columns(data):
        values, *ends = ([row[name] for row in ours[column]] for name in ("value", "low", "high"))
        points = {"safecf, 95 %": (values, places)}
        if any(name in theirs for name in names):
            points["the paper"] = [theirs.get(n, {}).get(column, np.nan) for n in names], places
        bars = {"safecf, 95 %": (places, places, *ends)}
        drawn.append(Panel(heading(*column), "", points, bars=bars))
    styles = {
        "safecf, 95 %": {"color": "#0072B2", "linestyle": "none", "linewidth": 1.2},
        "the paper": {"color": "#D55E00", "linestyle": "none", "marker": "D"}
        | {"markerfacecolor": "none"},
    }
    height = 0.8 + 0.15 * len(names)
    figure, axes = curves(drawn, legend=2, styles=styles, height=height, sharey=True)
    axes[0].set_yticks(places, names)
    axes[0].invert_yaxis()
    return figure


def _quantile_cases(options: Options) -> list[Case]:
    return [case for case in _cases(options) if case.label in NAMES]


def _quantiles(results: list[Result], options: Options) -> Tables:
    """Return the gains over iALS at each level, as far as their intervals are finite."""
    known = scores.evaluations(grouped(results))
    metrics = list(dict.fromkeys(metric for metric, _ in scores.columns(options.data)))
    columns = [(metric, level) for metric in metrics for level in LEVELS]
    gains = scores.gains(known, [(name, BASELINE) for name in list(known)[1:]], columns)
    numbers, shown = [], []  # all, and some levels of all models
    for row in sorted(gains, key=lambda row: metrics.index(row["metric"])):
        about = {"model": row["model"], "metric": row["metric"], "level": row["tail"]}
        found = {name: row[name] for name in ("gain", "low", "high") if row["gain"] is not None}
        if found:
            numbers.append({**about, GAIN: found["gain"], "low": row["low"], "high": row["high"]})
        if row["tail"] in SHOWN:
            shown.append({**about, **found})
    levels = grouped(numbers, "metric", "level")
    for row in shown:
        if "gain" in row:
            best = max(each[GAIN] for each in levels[row["metric"], row["level"]])
            row["mark"] = "**" if row["gain"] == best else ""
    return {"numbers": numbers, "shown": shown}


def _draw_quantiles(tables: Tables) -> Any:
    drawn: list[Panel] = []
    bands: list[list[Any]] = []
    x = r"quantile level $\alpha$ (share of worst-off users)"
    for metric, of in grouped(tables["numbers"], "metric").items():
        known = [{row["level"] for row in rows} for rows in grouped(of, "model").values()]
        first = min(set.intersection(*known), default=1.0)
        rows = [
            {**row} | {name: 1 + row[name] / 100 for name in (GAIN, "low", "high")}
            for row in of
            if row["level"] >= first
        ]
        lines = lines_of(rows, "model", "level", GAIN)
        drawn.append(Panel(x, f"{heading(metric)} relative to iALS", lines, level=1))
        shown = [row for row in rows if row["model"] == "SAFER2"]
        bands.append([[row[name] for row in shown] for name in ("level", "low", "high")])
    figure, axes = curves(drawn, legend=6, height=2.6)
    for place, band in zip(axes, bands, strict=True):
        place.fill_between(*band, color="#000000", alpha=0.1, linewidth=0)
    return figure


EXPERIMENT = declared("table-1", _cases, _tables, _draw)
QUANTILES = declared("quantiles", _quantile_cases, _quantiles, _draw_quantiles)
