"""One style for all figures: sized for a paper, and readable in greyscale.

Matplotlib is imported where something is drawn, since measuring works without it.
"""

import io
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reproduction.experiment import Row, grouped
from safecf.atomic import replace_file

FEW_DECADES = 60.0  # log axes with a smaller ratio of their ends have three ticks per decade
FEW_POINTS = 20  # all of which have a marker
COLUMN, PAGE = 3.4, 7.0  # inches: the width of one column, and of two

# The colour-blind safe palette of Okabe and Ito; markers and dashes also differ, for greyscale.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)))

STYLE = Path(__file__).with_suffix(".mplstyle")
SVG = {"Date": None, "Creator": None}  # left out, so that the same figure gives the same file
GREY = "#7F7F7F"


class LineStyle(NamedTuple):
    """Colour, marker and dashes of a line."""

    color: str
    marker: str
    linestyle: Any


def line_style(place: int) -> LineStyle:
    """Return the n-th style; colour, marker and dashes all differ from those of the others."""
    return LineStyle(*(of[place % len(of)] for of in (COLOURS, MARKERS, DASHES)))


# Models have the same style in all figures.
MODELS = ("SAFER2", "iALS", "ERM-MF", "Mult-VAE", "CVaR-MF", "EASE", "SAFER2++", "iALS++")


def line_styles(names: Iterable[str]) -> dict[str, LineStyle]:
    """Return a different style for each name: its own if it is one of `MODELS`, else a free one."""
    chosen = {name: line_style(MODELS.index(name)) if name in MODELS else None for name in names}
    free = (each for each in map(line_style, count()) if each not in chosen.values())
    return {name: each or next(free) for name, each in chosen.items()}


def panels(
    number: int, *, columns: int = 2, height: float = 2.2, **options: Any
) -> tuple[Any, Any]:
    """Return a figure and a list of `number` axes, in rows of `columns`."""
    import matplotlib.pyplot as plt  # noqa: PLC0415

    columns = min(columns, number)
    rows = -(-number // columns)
    size = (COLUMN if columns == 1 else PAGE, height * rows)
    figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, **options)
    for unused in grid.flat[number:]:
        unused.set_visible(False)
    return figure, list(grid.flat[:number])


def _log_ticks(axis: Any) -> None:
    """Make an axis logarithmic, with few ticks in plain numbers; call it after drawing."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = axis.get_view_interval()
    subs = (1.0, 2.0, 5.0) if high < FEW_DECADES * low else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


class Panel(NamedTuple):
    """Axes with curves by name, each of x and y, and marks for some of them.

    `bars` are low and high ends of error bars by the name of the curve: of y, then of x if there
    are any. `log` has the axes with a logarithmic scale; `level` and `at` are dotted lines.
    """

    x: str
    y: str
    curves: Mapping[str, tuple[Any, Any]]
    title: str = ""
    log: str = ""
    level: float | None = None
    at: float | None = None
    bars: Mapping[str, tuple[Any, ...]] = {}


def curves(
    drawn: Sequence[Panel], *, legend: int = 4, styles: Mapping[str, Any] = {}, **options: Any
) -> tuple[Any, Any]:
    """Return a figure and its axes; a curve has the same style in all, and a place in the legend.

    `styles` has what differs from the usual style, by the name of the curve.

    >>> curves([Panel("epochs", "R@20", {"iALS": ([1, 2], [0.31, 0.34])})], height=2.4)
    """
    figure, axes = panels(len(drawn), **options)
    usual = line_styles(dict.fromkeys(name for panel in drawn for name in panel.curves))
    labels: dict[str, Any] = {}
    for panel, place in zip(drawn, axes, strict=True):
        for name, (x, y) in panel.curves.items():
            style = {"label": name, **usual[name]._asdict(), **styles.get(name, {})}
            if name in panel.bars:
                low, high, *ends = panel.bars[name]
                wide = error_bars(x, *ends) if ends else None
                style = {"linewidth": 0.8, **style}
                labels[name] = place.errorbar(x, y, error_bars(y, low, high), wide, **style)
            else:
                every = len(x) // 8 if len(x) > FEW_POINTS else None
                (labels[name],) = place.plot(x, y, markevery=every, **style)
        for line, value in ((place.axhline, panel.level), (place.axvline, panel.at)):
            if value is not None:
                line(value, color=GREY, linestyle=":", linewidth=0.8)
        place.set(xlabel=panel.x, ylabel=panel.y, title=panel.title)
        for name in panel.log:
            _log_ticks(getattr(place, f"{name}axis"))
    order = [name for name in usual if name in labels]
    figure.legend([labels[n] for n in order], order, loc="outside lower center", ncols=legend)
    return figure, axes


def lines_of(rows: Iterable[Row], name: str, x: str, y: str) -> dict[Any, tuple[Any, Any]]:
    """Return the curves of rows, by what they have as `name`."""
    return {
        key: ([row[x] for row in of], [row[y] for row in of])
        for key, of in grouped(rows, name).items()
    }


def error_bars(values: Any, lows: Any, highs: Any) -> Any:
    """Return the lengths of error bars below and above; 0 if an end is on the wrong side."""
    values, lows, highs = (np.array(each, dtype=float) for each in (values, lows, highs))
    return np.maximum(0, [values - lows, highs - values])


def violins(axes: Any, samples: Sequence[Any], names: Sequence[str]) -> None:
    """Draw distributions side by side: a violin, the box of its quartiles, and the mean."""
    places = range(1, len(samples) + 1)
    samples = [np.asarray(each)[np.isfinite(each)] for each in samples]
    if all(len(set(each)) > 1 for each in samples):
        drawn = axes.violinplot(samples, positions=places, showextrema=False)
        for body in drawn["bodies"]:
            body.set(facecolor="#56B4E9", edgecolor="#000000", alpha=0.5, linewidth=0.6)
    axes.boxplot(samples, positions=places, widths=0.15)
    axes.set_xticks(list(places), names)


def save(draw: Any, path: Path) -> list[Path]:
    """Write PATH.svg with what a function draws in this style, and return it; [] for None."""
    import matplotlib.pyplot as plt  # noqa: PLC0415

    plt.switch_backend("Agg")
    with plt.style.context(STYLE):
        figure = draw()
        if figure is None:
            return []
        content, file = io.BytesIO(), path.with_name(f"{path.name}.svg")
        figure.savefig(content, format="svg", metadata=SVG)
        plt.close(figure)
    replace_file(file, content.getvalue())
    return [file]
