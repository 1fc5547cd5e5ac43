"""Line charts as SVG, with their scales in attributes for the page's script."""

import math
from dataclasses import dataclass

import numpy as np

from safecf.measures.tails import Floats
from safecf.reporting.content import Chart, Series
from safecf.reporting.drawing import svg
from safecf.reporting.drawing.svg import Scale
from safecf.reporting.markup import MINUS, level_name, percent, tag

SMALL = (300, 190)


@dataclass(frozen=True)
class Frame:
    """A drawing with its two scales."""

    width: int
    height: int
    x: Scale
    y: Scale
    label: str
    class_: str = ""

    def axes(
        self,
        x_label: str,
        y_label: str,
        x_format: str,
        y_format: str,
        *,
        x_count: int,
        y_count: int,
    ) -> str:
        """Draw grid lines, tick labels and the names of the axes, the y axis' above it."""
        left, right, bottom = self.x.start, self.x.end, self.y.start
        parts = [svg.text(0, 12, y_label, "axis-name")]
        rows = self.y.ticks(y_count)
        columns = self.x.ticks(x_count) if x_count else []
        grid = (svg.segment(left, self.y.at(value), right, self.y.at(value)) for value in rows)
        ticks = (svg.segment(x, bottom, x, bottom + 4) for x in map(self.x.at, columns))
        parts.append(tag("path", d="".join(grid), class_="grid"))
        parts.append(tag("path", d="".join(ticks), class_="tick"))
        for value in rows:
            written = _tick(value, y_format)
            parts.append(svg.text(left - 8, self.y.at(value) + 4, written, anchor="end"))
        for value in columns:
            written = _tick(value, x_format)
            parts.append(svg.text(self.x.at(value), bottom + 18, written, anchor="middle"))
        parts.append(svg.line(left, bottom, right, bottom, "axis"))
        parts.append(svg.text((left + right) / 2, self.height - 3, x_label, "axis-name", "middle"))
        return "".join(parts)

    def draw(self, content: str) -> str:
        """Wrap the content in an SVG element, with the scales for the page's script."""
        x, y = self.x, self.y
        return tag(
            "svg",
            content,
            viewBox=f"0 0 {self.width} {self.height}",
            role="img",
            aria_label=self.label,
            class_=f"plot {self.class_}".strip(),
            data_x=f"{x.low:.9g} {x.high:.9g} {x.start:.9g} {x.end:.9g} {int(x.log)}",
            data_y=f"{y.low:.9g} {y.high:.9g} {y.start:.9g} {y.end:.9g} {int(y.log)}",
        )


def _tick(value: float, style: str) -> str:
    """Write the value of a tick."""
    if style == "lift":
        return f"{value:+g} %".replace("-", MINUS) if value else "0 %"
    if style == "percent":
        return percent(value)
    if style == "signed":
        return f"{value:+g}".replace("-", MINUS) if value else "0"
    if style == "power":
        power = f"{math.log10(value):.0f}"
        return "10" + power.translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{value:,.10g}".replace("-", MINUS)


def level_chart(chart: Chart, *, level: float, label: str, y_label: str, narrow: bool) -> str:
    """Lift, or score, at every tail level; lift has a zero line and bands."""
    width, height = (360, 300) if narrow else (920, 360)
    relative = chart.y_format == "lift"
    x = Scale(0, 1, 52 if narrow else 60, width - 14, log=False)
    y = Scale(*_level_domain(chart, relative), height - 42, 26)
    frame = Frame(width, height, x, y, label, "narrow" if narrow else "wide")
    count = 5 if narrow else 10
    parts = [
        frame.axes(
            "share of users, from the worst-off to everybody",
            y_label,
            "percent",
            chart.y_format,
            x_count=count,
            y_count=5,
        )
    ]
    place = x.at(level)
    parts.append(svg.line(place, y.start, place, y.end, "mark"))
    side = "end" if level > 0.6 else "start"
    shift = -6 if level > 0.6 else 6
    parts.append(svg.text(place + shift, y.end + 8, level_name(level), "note", side))
    if relative:
        parts.append(svg.line(x.start, y.at(0), x.end, y.at(0), "zero"))
    xs = x(chart.x)
    drawn = []
    for series in _banded(chart):
        if series.low:
            edge = svg.band(xs, y(series.low), y(series.high))
            drawn.append(tag("path", d=edge, class_=f"band s{series.style % 8}"))
    for series in reversed(chart.series):
        drawn.append(_line(series.style, xs, y(series.y), markers=5 if narrow else 10))
    parts.append(_clipped("".join(drawn), x, y))
    for series in chart.series:
        parts.append(_exits(series.style, xs, y(series.y), y))
    return frame.draw("".join(parts))


def _exits(style: int, xs: Floats, ys: Floats, scale: Scale) -> str:
    """Draw an arrow where a line leaves the drawing, at the top or at the bottom."""
    found = []
    for edge, shape in ((scale.end, "h10l-5-9z"), (scale.start, "h10l-5 9z")):
        for place in range(len(xs) - 1):
            (a, b), (left, right) = ys[place : place + 2], xs[place : place + 2]
            if (a - edge) * (b - edge) < 0:
                across = left + (right - left) * (edge - a) / (b - a)
                start = f"M{svg.place(across - 5)} {svg.place(edge)}"
                found.append(tag("path", d=start + shape, class_="exit"))
    return tag("g", "".join(found), class_=f"s{style % 8}") if found else ""


def beyond(chart: Chart) -> dict[str, tuple[float, float]]:
    """Return the farthest point outside of the drawing, for each series that leaves it."""
    if chart.y_format != "lift":
        return {}
    low, high = _level_domain(chart, relative=True)
    found = {}
    for series in chart.series:
        known = [(x, y) for x, y in zip(chart.x, series.y, strict=True) if math.isfinite(y)]
        out = {max(y - high, low - y): (x, y) for x, y in known if not low <= y <= high}
        if out:
            found[series.name] = out[max(out)]
    return found


def _clipped(drawn: str, x: Scale, y: Scale) -> str:
    """Clip to the plot, with room for half a marker."""
    left, top = x.start - 5, y.end - 5
    width, height = x.end - x.start + 10, y.start - y.end + 5
    return tag(
        "svg",
        drawn,
        x=f"{left:g}",
        y=f"{top:g}",
        width=f"{width:g}",
        height=f"{height:g}",
        viewBox=f"{left:g} {top:g} {width:g} {height:g}",
        aria_hidden="true",
    )


def _level_domain(chart: Chart, relative: bool) -> tuple[float, float]:
    """Return the range of y that shows the levels with narrow enough intervals.

    The lift of a few users with scores near zero can be huge by chance: levels whose band is more
    than twice as wide as at the level of the page may leave the drawing.
    """
    if not relative:
        return 0.0, max(svg.domain([series.high for series in chart.series])[1], 1e-6)
    found = [np.zeros(1)]
    for series in chart.series:
        y, low, high = (np.array(values) for values in (series.y, series.low, series.high))
        width = high - low
        known = width <= 2 * width[chart.at] if np.isfinite(width[chart.at]) else np.isfinite(width)
        found.append(y[known])
        if series in _banded(chart):
            found += [low[known], high[known]]
    return svg.domain(np.concatenate(found))


def _banded(chart: Chart) -> list[Series]:
    """Return the series with a band: with more than two, only the first, as bands overlap."""
    return chart.series if len(chart.series) <= 2 else chart.series[:1]


def _line(style: int, xs: Floats, ys: Floats, markers: int) -> str:
    """Draw a line with a few markers."""
    known = np.flatnonzero(np.isfinite(ys))
    drawn = tag("path", d=svg.path(xs, ys), class_="line")
    if known.size:
        chosen = known[np.unique(np.linspace(0, known.size - 1, markers + 1).round().astype(int))]
        drawn += "".join(svg.marker(xs[place], ys[place], style) for place in chosen)
    return tag("g", drawn, class_=f"s{style % 8}")


def epoch_chart(chart: Chart, *, label: str, y_label: str, log: bool) -> str:
    """Values by epoch."""
    width, height = SMALL
    values = [series.y for series in chart.series]
    low, high = min(chart.x), max(chart.x)
    x = Scale(low, high if high > low else low + 1, 46, width - 8)
    y = Scale(*(svg.log_domain(values) if log else svg.domain(values)), height - 38, 24, log=log)
    frame = Frame(width, height, x, y, label)
    style = "power" if log else "plain"
    axes = frame.axes("epoch", y_label, "plain", style, x_count=4, y_count=4)
    lines = []
    for series in chart.series:
        data = np.array(series.y)
        places = y(np.where(data > 0, data, np.nan) if log else data)
        lines.append(_line(series.style, x(chart.x), places, markers=4))
    return frame.draw(axes + "".join(lines))
