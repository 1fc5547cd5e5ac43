"""`table-1`: quality of all models for all users and the worst-off; `quantiles`: by tail level."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from reproduction import presets, published, scores
from reproduction.data import SEED
from reproduction.experiment import Case, Options, Result, Row, Tables, grouped
from reproduction.experiments import declared
from reproduction.page import heading
from reproduction.tasks import statistics
from safecf.models.presets import Preset

COLUMNS = [(f"recall@{k}", level) for level in (1.0, 0.3) for k in (20, 50, 100)]
BASELINE = "iALS"
GRID = ", our grid"
# The models whose ranges the paper gives.
REPEATED = ("iALS", "Mult-VAE", "ERM-MF", "CVaR-MF", "SAFER2")
LEVELS = [round(0.1 + 0.05 * place, 2) for place in range(19)]
SHOWN = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
NAMES = ("iALS", "Mult-VAE", "ERM-MF", "CVaR-MF", "SAFER2", "EASE")
BANDED = "SAFER2"


def models(options: Options) -> dict[str, Preset]:
    """Return all models with the authors' settings, or the tuned ones for other data.

    Models that were tuned over the paper's ranges follow.
    """
    paper, tuned, grid = (
        presets.load(options.data, which, options.presets) for which in ("paper", "tuned", "grid")
    )
    which = "paper" if paper else "tuned"
    presets.require(options.data, which, (BASELINE, "ERM-MF", "SAFER2"), options.presets)
    again = {name + GRID: replace(each, name=name + GRID) for name, each in grid.items()}
    return {
        **(paper or tuned),
        **{name + GRID: again[name + GRID] for name in REPEATED if name in grid},
    }


def cases(options: Options) -> list[Case]:
    """Return the cases of all models, after the one for statistics of the data."""
    facts = Case(statistics, {"data": options.data, "split": SEED}, "facts")
    return [facts, *presets.on_splits(models(options), options)]


def tables(results: list[Result], options: Options) -> Tables:
    """Return scores with published ones below each, gains over iALS, facts and settings."""
    (facts, *_), found = results, grouped(results)
    del found["facts"]
    known = scores.evaluations(found)
    numbers = scores.numbers(found, COLUMNS)
    return {
        "numbers": numbers,
        "scores": beside(scores.means(numbers, known), options.data),
        "gains": scores.gains(known, [(name, BASELINE) for name in list(known)[1:]], COLUMNS),
        "facts": facts_of(facts.record["facts"], options.data),
        "settings": presets.rows(models(options)),
    }


def facts_of(facts: dict[str, int], data: str) -> list[Row]:
    """Return the numbers of users, items and interactions, and the paper's."""
    rows = [{"name": name, "number": f"{count:,}"} for name, count in facts.items()]
    theirs = {"name": "the paper: users, items, interactions"}
    reported = published.NUMBERS["statistics"].get(data)
    return [*rows, {**theirs, "number": ", ".join(reported)}] if reported else rows


def beside(ours: Sequence[Row], data: str) -> list[Row]:
    """Put what the paper and its authors' code have below our scores of each model."""
    found = []
    for model in dict.fromkeys(row["model"] for row in ours):
        found += [{**row, "by": f"**{model}**"} for row in ours if row["model"] == model]
        for source, by in (("paper", "the paper"), ("code", "authors' code")):
            for (metric, tail), value in published.reported(data, source).get(model, {}).items():
                row = {"model": model, "metric": metric, "tail": tail, "value": value, "by": by}
                found.append(row)
    return found


def draw(tables: Tables) -> Any:
    """Draw our numbers with their intervals, and those of the paper."""
    from reproduction.figures import error_bars, panels  # noqa: PLC0415

    data = tables["numbers"][0]["data"]
    ours = [row for row in tables["scores"] if "low" in row]
    names = list(dict.fromkeys(row["model"] for row in ours))
    columns = published.columns(data)
    figure, axes = panels(len(columns), height=0.8 + 0.15 * len(names), sharey=True)
    for column, panel in zip(columns, axes, strict=True):
        of = [row for row in ours if (row["metric"], row["tail"]) == column]
        values, lows, highs = ([row[name] for row in of] for name in ("value", "low", "high"))
        bars = error_bars(values, lows, highs)
        style: dict[str, Any] = {"fmt": "o", "color": "#0072B2", "label": "safecf, 95 %"}
        panel.errorbar(values, range(len(names)), xerr=bars, **style)
        theirs = published.reported(data)
        known = [(theirs[n][column], y) for y, n in enumerate(names) if column in theirs.get(n, {})]
        if known:
            style = {"linestyle": "none", "marker": "D", "markerfacecolor": "none"}
            panel.plot(*zip(*known, strict=True), color="#D55E00", label="the paper", **style)
        panel.set_yticks(range(len(names)), names)
        panel.set_xlabel(heading(*column))
    axes[0].invert_yaxis()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def quantile_cases(options: Options) -> list[Case]:
    """Return the cases of `table-1` for some models; there are no others."""
    return [case for case in cases(options) if case.label in NAMES]


def quantiles(results: list[Result], options: Options) -> Tables:
    """Return the gains over iALS at each level, as far as their intervals are finite."""
    known = scores.evaluations(grouped(results))
    metrics = list(dict.fromkeys(metric for metric, _ in published.columns(options.data)))
    columns = [(metric, level) for metric in metrics for level in LEVELS]
    found = scores.gains(known, [(name, BASELINE) for name in list(known)[1:]], columns)
    numbers = [
        {"model": row["model"], "metric": row["metric"], "level": row["tail"]}
        | {"gain over iALS in percent": row["gain"], "low": row["low"], "high": row["high"]}
        for row in sorted(found, key=lambda row: metrics.index(row["metric"]))
        if row["gain"] is not None
    ]
    return {"numbers": numbers, "shown": shown(numbers)}


def shown(numbers: Sequence[Row]) -> list[Row]:
    """Return the rows of some levels, the largest gain of a level with a mark."""
    found = []
    of_level: dict[tuple[str, float], list[float]] = {}
    for row in numbers:
        key = (row["metric"], row["level"])
        of_level.setdefault(key, []).append(row["gain over iALS in percent"])
    for metric in dict.fromkeys(row["metric"] for row in numbers):
        of = {(r["model"], r["level"]): r for r in numbers if r["metric"] == metric}
        for model in dict.fromkeys(model for model, _ in of):
            for level in SHOWN:
                row = {"model": model, "metric": metric, "level": level}
                if (model, level) in of:
                    each = of[model, level]
                    gain = each["gain over iALS in percent"]
                    mark = "**" if gain == max(of_level[metric, level]) else ""
                    row |= {"gain": gain, "low": each["low"], "high": each["high"], "mark": mark}
                found.append(row)
    return found


def draw_quantiles(tables: Tables) -> Any:
    """Draw a panel per metric, from the first level that all models have."""
    from reproduction.figures import Panel, curves  # noqa: PLC0415

    drawn, bands = [], []
    for metric in dict.fromkeys(row["metric"] for row in tables["numbers"]):
        of: dict[str, list[Row]] = {}
        for row in tables["numbers"]:
            if row["metric"] == metric:
                of.setdefault(row["model"], []).append(row)
        known = set.intersection(*({row["level"] for row in rows} for rows in of.values()))
        lines = {}
        for name, rows in of.items():
            chosen = [row for row in rows if row["level"] >= min(known, default=1.0)]
            levels = [row["level"] for row in chosen]
            lines[name] = levels, [1 + row["gain over iALS in percent"] / 100 for row in chosen]
            if name == BANDED:
                ends = [[1 + row[end] / 100 for row in chosen] for end in ("low", "high")]
                bands.append((levels, *ends))
        x = r"quantile level $\alpha$ (share of worst-off users)"
        drawn.append(Panel(x, f"{heading(metric)} relative to iALS", lines, level=1))
    figure, axes = curves(drawn, legend=6, height=2.6)
    for place, band in zip(axes, bands, strict=True):
        place.fill_between(*band, color="#000000", alpha=0.1, linewidth=0)
    return figure


EXPERIMENT = declared("table-1", cases, tables, draw)
QUANTILES = declared("quantiles", quantile_cases, quantiles, draw_quantiles)
