"""Parts that sections share: numbers that say what they are, read-outs, figures, tables."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from safecf.report import svg
from safecf.report.content import Chart, Estimate, Series
from safecf.report.text import FORMATS, escape, interval, name, percent, tag, to_json


@dataclass(frozen=True)
class Of:
    """What a number is the value of."""

    metric: str | None = None
    level: float | None = None
    model: str | None = None


def shown(value: float, of: Of, stat: str, style: str = "number") -> str:
    """Show a number with, in attributes, its full value and what it is the value of."""
    written = FORMATS[style](value)
    if not math.isfinite(value):
        return written
    return tag(
        "data",
        written,
        value=repr(float(value)),
        data_metric=of.metric,
        data_level=None if of.level is None else f"{of.level:g}",
        data_model=of.model,
        data_stat=stat,
        data_format=style,
    )


def with_interval(estimate: Estimate, number: str, style: str = "number") -> str:
    """Put an interval behind a number."""
    written = interval(estimate[1], estimate[2], style)
    return f'{number} <span class="ci">{written}</span>' if written else number


def level_name(level: float) -> str:
    """Write `worst-off 30 %`, or `all users`."""
    return "all users" if level == 1 else f"worst-off {percent(level)}"


def swatch(style: int) -> str:
    """Draw a piece of a series' line, for legends."""
    drawn = '<path class="line" d="M0 6H30"/>' + svg.marker(15, 6, style)
    return tag("svg", drawn, viewBox="0 0 30 12", aria_hidden="true")


def readout(chart: Chart, *, metric: str | None = None, swatches: bool = True) -> str:
    """The legend, with the values at one point; a script moves the point."""
    level = chart.x[chart.at] if metric is not None else None
    items = [_entry(chart, each, metric, level, swatches) for each in chart.series]
    lead = tag("span", escape(point_name(chart, chart.at)), class_="at")
    kind = "readout" if swatches else "readout inline"
    return tag("div", lead + tag("ul", "".join(items)), class_=kind)


def _entry(
    chart: Chart, series: Series, metric: str | None, level: float | None, swatches: bool
) -> str:
    value = series.y[chart.at]
    stat = "lift" if chart.y_format == "lift" else "point"
    number = shown(value, Of(metric, level, series.name), stat, chart.y_format)
    if not swatches:
        number = tag("span", number, class_="value")
        return tag("li", f"{number} {escape(series.name)}", class_=f"s{series.style % 8}")
    ends = ""
    if series.low:
        ends = interval(series.low[chart.at], series.high[chart.at], chart.y_format)
    body = swatch(series.style) + name(series.name) + tag("span", number, class_="value")
    body += tag("span", ends, class_="ci") if series.low else ""
    return tag("li", body, class_=f"s{series.style % 8}")


def point_name(chart: Chart, place: int) -> str:
    """Write what a point stands for: `Worst-off 30 %`."""
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
) -> str:
    """Put a drawing in its frame; `chart` is the way to its numbers inside the page's data."""
    inside = tag("figcaption", title) + above
    inside += tag("div", drawing, class_="drawing", data_label="Move through the points") + below
    return tag("figure", inside, data_chart=None if chart is None else to_json(list(chart)))


def table(
    head: Iterable[str], rows: Iterable[Iterable[str]], *, label: str, caption: str = ""
) -> str:
    """Write a table that scrolls by itself where it is wide; the first cell heads its row."""
    titles = "".join(tag("th", cell, scope="col") for cell in head)
    lines = []
    for row in rows:
        first, *rest = row
        cells = tag("th", first, scope="row", class_="wrap") + "".join(tag("td", c) for c in rest)
        lines.append(tag("tr", cells))
    body = (tag("caption", caption) if caption else "") + tag("thead", tag("tr", titles))
    return scrolling(tag("table", body + tag("tbody", "".join(lines))), label)


def scrolling(content: str, label: str) -> str:
    """Let something wide scroll inside the page, with the keyboard too."""
    return tag("div", content, class_="scroll", tabindex="0", role="region", aria_label=label)


def folded(summary: str, content: str) -> str:
    """Put a table behind its chart."""
    return tag("details", tag("summary", summary) + content, class_="numbers")


def section(key: str, title: str, lede: str, content: str) -> str:
    """Write a section with its heading and one sentence on how to read it."""
    heading = tag("h2", title, id=f"{key}-title")
    opening = heading + (tag("p", lede, class_="lede") if lede else "")
    return tag("section", opening + content, id=key, aria_labelledby=f"{key}-title")


def by_metric(panels: dict[str, str], chosen: str) -> str:
    """Put the chosen metric's part on the page, and those of the others hidden behind it."""
    parts = []
    for metric, content in panels.items():
        hidden = "" if metric == chosen else " hidden"
        parts.append(f'<div data-panel="{escape(metric)}"{hidden}>{content}</div>')
    return "".join(parts)
