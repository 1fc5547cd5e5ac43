"""Elements that sections share: labelled numbers, read-outs, figures, tables, metric panels."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat

from safecf.measures.bootstrap import Estimate
from safecf.reporting.content import Chart, Content, Panel, Series
from safecf.reporting.drawing import svg
from safecf.reporting.markup import FORMATS, escape, interval, name, tag, to_json

STATS = {  # kinds of numbers on the page, and their formats
    "value": "number",
    "relative": "lift",
    "absolute": "signed",
    "wins": "count",
    "ties": "count",
    "losses": "count",
    "splits_won": "count",
    "group": "number",
    "worst group": "number",
    "risk": "percent",
    "catalogue": "number",
    "coverage": "percent",
    "loss mean": "short",
    "loss var": "short",
    "loss cvar": "short",
}

HIDDEN = "\x00"  # around the parts that the page compresses; `escape` leaves none in a text


def shown(
    value: float,
    stat: str,
    *,
    model: str | None = None,
    level: float | None = None,
    metric: str | None = None,
) -> str:
    """Write a number, with its value to seven digits and its meaning in attributes.

    An attribute that is left out is that of the nearest element around the number.
    """
    written = FORMATS[STATS[stat]](value)
    if not math.isfinite(value):
        return written
    return tag(
        "data",
        written,
        value=f"{value:.7g}",
        data_metric=metric,
        data_level=None if level is None else f"{level:g}",
        data_model=model,
        data_stat=stat,
    )


def with_interval(estimate: Estimate, number: str, style: str = "number") -> str:
    """Append an interval to a number."""
    written = interval(estimate[1], estimate[2], style)
    return f'{number} <span class="ci">{written}</span>' if written else number


def swatch(style: int) -> str:
    """Draw a sample of a series' line, for legends."""
    drawn = '<path class="line" d="M0 6H30"/>' + svg.marker(15, 6, style)
    return tag("svg", drawn, viewBox="0 0 30 12", aria_hidden="true")


def readout(chart: Chart, *, stat: str | None = None, swatches: bool = True) -> str:
    """The legend, with the values at one point, which a script moves.

    If the chart has a text at rest, the values are hidden until the script shows them.
    """
    items = [_entry(chart, each, stat, swatches) for each in chart.series]
    lead = tag("span", escape(chart.rest or point_name(chart, chart.at)), class_="at")
    hidden = "hidden" if chart.rest else None
    kind = "readout" if swatches else "readout inline"
    return tag("div", lead + tag("ul", "".join(items), hidden=hidden), class_=kind)


def _entry(chart: Chart, series: Series, stat: str | None, swatches: bool) -> str:
    """One series of a legend; `stat` says what its value is, if it is one of the results."""
    value = series.y[chart.at]
    number = FORMATS[chart.y_format](value)
    if stat is not None:
        number = shown(value, stat, model=series.name, level=chart.x[chart.at])
    number = tag("span", number, class_="value")
    if not swatches:
        return tag("li", f"{number} {escape(series.name)}", class_=f"s{series.style % 8}")
    body = swatch(series.style) + name(series.name) + number
    if series.low:
        ends = interval(series.low[chart.at], series.high[chart.at], chart.y_format)
        body += tag("span", ends, class_="ci")
    return tag("li", body, class_=f"s{series.style % 8}")


def point_name(chart: Chart, place: int) -> str:
    """Name a point: `Worst-off 30 %`."""
    if chart.labels:
        return chart.labels[place]
    written = FORMATS[chart.x_format](chart.x[place])
    return chart.x_text.replace("{}", written)


def figure(
    title: str,
    drawing: str,
    *,
    chart: Sequence[str] | None = None,
    above: str = "",
    below: str = "",
    class_: str | None = None,
) -> str:
    """Frame a drawing with its title; `chart` is the path to its numbers in the page's data."""
    inside = tag("figcaption", title) + above
    inside += tag("div", drawing, class_="drawing") + below
    path = None if chart is None else to_json(list(chart))
    return tag("figure", inside, data_chart=path, class_=class_)


def table(
    head: Iterable[str],
    rows: Iterable[Sequence[str]],
    *,
    label: str,
    marks: Iterable[Mapping[str, object]] | None = None,
) -> str:
    """Write a table that scrolls if it is wide; the first cell is the heading of its row.

    `marks` are the attributes of each row.
    """
    titles = "".join(tag("th", cell, scope="col") for cell in head)
    lines = []
    for (first, *rest), mark in zip(rows, repeat({}) if marks is None else marks, strict=False):
        cells = tag("th", first, scope="row", class_="wrap") + "".join(tag("td", c) for c in rest)
        lines.append(tag("tr", cells, **mark))
    body = tag("thead", tag("tr", titles)) + tag("tbody", "".join(lines))
    return scrolling(tag("table", body), label)


def scrolling(content: str, label: str) -> str:
    """Let wide content scroll inside the page, by keyboard too."""
    return tag("div", content, class_="scroll", tabindex="0", role="region", aria_label=label)


def folded(summary: str, content: str) -> str:
    """Fold a table below its chart."""
    return tag("details", tag("summary", summary) + content, class_="numbers")


def section(key: str, title: str, lede: str, content: str) -> str:
    """Write a section with its heading and an introduction."""
    heading = tag("h2", title, id=f"{key}-title")
    opening = heading + (tag("p", lede, class_="lede") if lede else "")
    return tag("section", opening + content, id=key, aria_labelledby=f"{key}-title")


def by_metric(content: Content, write: Callable[[Content, Panel], str]) -> str:
    """Write a part for every metric: the chosen one is shown, the others are hidden.

    Metrics for which there is nothing to write are left out.
    """
    parts = []
    for metric, panel in content.panels.items():
        if not (inside := write(content, panel)):
            continue
        hidden = None
        if metric != content.metric:
            inside, hidden = f"{HIDDEN}{inside}{HIDDEN}", "hidden"
        parts.append(tag("div", inside, class_="panel", data_metric=metric, hidden=hidden))
    return "".join(parts)
