"""`constants`: each constant behind the defaults changed by itself, on data of many densities."""

from typing import Any, NamedTuple

import numpy as np

from reproduction.base import TINY, Cell, Experiment, Options, Result, Results, canonical
from reproduction.data import SEED
from reproduction.page import Page, table
from reproduction.tasks.quality import quality
from safecf.defaults import LEVEL
from safecf.measures.tails import tail_mean

SEVERAL = "several"
DATA = (
    *("ml-1m", "book-crossing", "demo", "steam", "gowalla"),
    *("ml-1m-thin", "book-crossing-thin", "gowalla-thin", "short"),
)
MODELS = ("IALS", "SAFER2")
# Multiples of what the defaults were resolved to, and plain values.
MULTIPLES = {"unobserved_weight": (0.25, 0.5, 2.0, 4.0), "bandwidth": (0.5, 2.0, 4.0)}
VALUES: dict[str, tuple[float, ...]] = {
    "regularization": (0.0025, 0.005, 0.01, 0.02, 0.04),
    "factors": (64, 128),
    "iterations": (6, 24),
}
SMALL = {"factors": (2, 3), "iterations": (1, 2)}  # for "tiny" data
COLUMNS = (("recall@20", 1.0), ("ndcg", 1.0), ("ndcg", LEVEL))
HEADINGS = ("R@20", "nDCG", f"nDCG, worst-off {100 * LEVEL:g} %")


class Change(NamedTuple):
    """One option with another value, which is `times` that of the defaults if they have a scale."""

    option: str
    value: float
    times: float | None = None

    def __str__(self) -> str:
        return f"{self.value:g}" if self.times is None else f"x {self.times:g}"


def sets(options: Options) -> tuple[str, ...]:
    """Return the names of the data sets."""
    return (TINY,) if options.data == TINY else DATA


def cell(data: str, model: str, change: Change | None = None) -> Cell:
    """Return the cell of the defaults, or of one change, for the validation users."""
    chosen = {} if change is None else {change.option: change.value}
    about = {"data": data, "split": SEED, "on": "validation", "seed": 0}
    return Cell(
        quality, {**about, "model": model, "options": chosen, "metrics": ["recall", "ndcg"]}
    )


def changes(start: Result, data: str) -> list[Change]:
    """Return all changes, given the result of the defaults."""
    resolved = start.record["resolved"]
    found = [
        Change(option, float(f"{times * resolved[option]:.4g}"), times)
        for option, multiples in MULTIPLES.items()
        for times in multiples
        if option in resolved
    ]
    values = VALUES | (SMALL if data == TINY else {})
    return found + [Change(name, each) for name, many in values.items() for each in many]


def cells(options: Options) -> list[Cell]:
    """Return the defaults on all data."""
    return [cell(data, model) for data in sets(options) for model in MODELS]


def then(results: Results, options: Options) -> list[Cell]:
    """Return the changes, once the defaults are done."""
    known = results.by_settings()
    found = cells(options)
    for start in cells(options):
        done = known.get(canonical(start.settings))
        if done is not None:
            data, model = start.settings["data"], start.settings["model"]
            found += [cell(data, model, change) for change in changes(done, data)]
    return found


def render(results: Results, options: Options) -> Page:
    """Return a table per option and model: scores in percent of the defaults'."""
    known = results.by_settings()

    def scores(made: Cell) -> list[float]:
        record = known[canonical(made.settings)].record
        return [tail_mean(record[metric], level) for metric, level in COLUMNS]

    rows: list[dict[str, Any]] = []
    starts = []
    for data in sets(options):
        for model in MODELS:
            start = known[canonical(cell(data, model).settings)]
            base, resolved = scores(cell(data, model)), start.record["resolved"]
            names = ("regularization", "unobserved_weight", "bandwidth")
            shown = (f"{resolved[name]:.3g}" if name in resolved else "" for name in names)
            starts.append([data, model, *(f"{value:.3g}" for value in base), *shown])
            for change in changes(start, data):
                found = scores(cell(data, model, change))
                about: dict[str, Any] = {"data": data, "model": model, "option": change.option}
                about |= {"value": change.value, "change": str(change)}
                ratios = (100 * a / b if b else np.nan for a, b in zip(found, base, strict=True))
                rows.append({**about, **dict(zip(HEADINGS, ratios, strict=True))})
    blocks = [
        "Models as they come, with one option changed, for the validation users of one split: in "
        "percent of the scores of the defaults. Where options make up for each other, as b and "
        "lambda do, both would have to be changed. Data whose names end in -thin are real ones "
        "with a random share of the interactions; `demo` and `short` are synthetic; the "
        "confidences of `steam` are hours. The defaults, and what they were resolved to:",
        table(["", "", *HEADINGS, "lambda", "b", "h"], starts),
    ]
    for model in MODELS:
        for option in (*MULTIPLES, *VALUES):
            chosen = [row for row in rows if (row["model"], row["option"]) == (model, option)]
            if chosen:
                blocks += [f"**{model}, {option}**: {', '.join(HEADINGS)}.", _table(chosen)]
    return Page(blocks, rows, lambda: draw(rows), "nDCG in percent of that of the defaults")


def _table(rows: list[dict[str, Any]]) -> str:
    """Return a row per data set, a column per value; the defaults have 100."""
    names = list(dict.fromkeys(row["change"] for row in rows))
    lines = []
    for data in dict.fromkeys(row["data"] for row in rows):
        of = {row["change"]: row for row in rows if row["data"] == data}
        lines.append(
            [data, *(" / ".join(f"{of[name][each]:.0f}" for each in HEADINGS) for name in names)]
        )
    return table(["", *names], lines)


def draw(rows: list[dict[str, Any]]) -> Any:
    """Draw a panel per option of SAFER2, a line per data set."""
    from reproduction.figures import line_style, panels  # noqa: PLC0415

    options = [*MULTIPLES, *VALUES]
    figure, axes = panels(len(options), columns=3, height=2.0)
    for option, panel in zip(options, axes, strict=False):
        chosen = [row for row in rows if (row["model"], row["option"]) == (MODELS[-1], option)]
        for place, data in enumerate(dict.fromkeys(row["data"] for row in rows)):
            points = [(_place(row), row["nDCG"]) for row in chosen if row["data"] == data]
            if option in MULTIPLES:
                points.append((1.0, 100.0))
            style = line_style(place)._asdict() | {"fillstyle": "full" if place < 8 else "none"}
            panel.plot(*zip(*sorted(points), strict=True), label=data, **style)
        panel.axhline(100, color="#7F7F7F", linestyle=":", linewidth=0.8)
        panel.set_xscale("log")
        ticks = sorted({_place(row) for row in chosen} | ({1.0} if option in MULTIPLES else set()))
        panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
        panel.set_xticks([], minor=True)
        panel.set_xlabel(option + (", times" if option in MULTIPLES else ""))
    for panel in axes[::3]:
        panel.set_ylabel("nDCG, %")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _place(row: dict[str, Any]) -> float:
    return float(row["change"].removeprefix("x "))


EXPERIMENT = Experiment(
    "constants",
    "The constants behind the defaults",
    "none; defaults of our own, on data of different density",
    cells,
    render,
    then=then,
    data=(SEVERAL,),
)
