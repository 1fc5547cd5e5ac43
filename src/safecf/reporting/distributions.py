"""Charts of how users are spread: their losses, their gains."""

import math

import numpy as np

from safecf.reporting import svg
from safecf.reporting.charts import SMALL, Frame
from safecf.reporting.content import Bin, Chart, Losses
from safecf.reporting.svg import Scale
from safecf.reporting.text import FORMATS, MISSING, escape, short, tag


def loss_chart(losses: Losses, *, label: str) -> str:
    """The distribution of the losses: the tail is filled, VaR and CVaR are marked."""
    width, height = SMALL[0], SMALL[1] + 20
    (series,) = losses.chart.series
    edges, counts = np.array(losses.edges), np.array(series.y)
    x = Scale(edges[0], edges[-1], 40, width - 8)
    y = Scale(0, max(counts.max(), 1) * 1.36, height - 38, 22)
    frame = Frame(width, height, x, y, label)
    parts = [frame.axes("loss of a user", "users", "plain", "plain", x_count=4, y_count=3)]
    tail = losses.var if math.isfinite(losses.var) else edges[-1]
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        # A bar on the boundary is split there.
        split = min(max(tail, low), high)
        top, base = y.at(count), y.start
        for start, end, class_ in ((low, split, "bar quiet"), (split, high, "bar")):
            if end > start and count:
                gap = 0.6 if end == high else 0
                across = x.at(end) - x.at(start) - gap
                parts.append(svg.rect(x.at(start), top, across, base - top, class_))
    name, value = ("CVaR", losses.cvar) if math.isfinite(losses.cvar) else ("mean", losses.mean)
    high, low = y.end + 8, y.end + 23
    place = x.at(value)
    parts.append(svg.line(place, y.start, place, high + 4, "mark solid"))
    middle = min(max(place, x.start + 34), x.end - 34)
    parts.append(svg.text(middle, high, f"{name} {short(value)}", "note", "middle"))
    if math.isfinite(losses.var):
        place = x.at(losses.var)
        parts.append(svg.line(place, y.start, place, low - 8, "mark"))
        shift, anchor = (-5, "end") if place - x.start > 46 else (5, "start")
        parts.append(svg.text(place + shift, low, f"VaR {short(losses.var)}", "note halo", anchor))
    return frame.draw(tag("g", "".join(parts), class_=f"s{series.style % 8}"))


def gain_chart(chart: Chart, *, label: str, y_label: str, limit: float) -> str:
    """Users sorted by their difference to the baseline: filled above zero, hatched below."""
    width, height = SMALL
    series = chart.series[0]
    x = Scale(0, 1, 46, width - 12)
    y = Scale(-limit, limit, height - 38, 24)
    frame = Frame(width, height, x, y, label)
    axes = frame.axes("users, sorted", y_label, "percent", "signed", x_count=4, y_count=4)
    xs, values = x(chart.x), np.array(series.y)
    zero = np.full_like(xs, y.at(0))
    areas = [
        tag("path", d=svg.band(xs, zero, y(np.maximum(values, 0))), class_="gain"),
        tag("path", d=svg.band(xs, y(np.minimum(values, 0)), zero), class_="loss"),
        svg.line(x.start, y.at(0), x.end, y.at(0), "zero"),
        tag("path", d=svg.path(xs, y(values)), class_="line plain"),
    ]
    return frame.draw(axes + tag("g", "".join(areas), class_=f"s{series.style % 8}"))


def bin_chart(
    bins: list[Bin], style: int, *, label: str, x_label: str, x_format: str, limit: float
) -> str:
    """Mean difference to the baseline by quarter of the users, with intervals."""
    width, height = SMALL
    x = Scale(0, max(len(bins), 1), 46, width - 8)
    y = Scale(-limit, limit, height - 38, 24)
    frame = Frame(width, height, x, y, label)
    axes = frame.axes(x_label, "mean difference", "", "signed", x_count=0, y_count=4)
    parts = [svg.line(x.start, y.at(0), x.end, y.at(0), "zero")]
    for place, each in enumerate(bins):
        middle, (gain, low, high) = x.at(place + 0.5), each.gain
        top, bottom = sorted((y.at(gain), y.at(0)))
        class_ = "gain" if gain >= 0 else "loss"
        bar = svg.rect(middle - 17, top, 34, bottom - top, class_)
        if math.isfinite(low):
            bar += svg.line(middle, y.at(low), middle, y.at(high), "whisker")
        ends = [_short_end(end, x_format) for end in (each.low, each.high)]
        name = ends[0] if ends[0] == ends[1] else MISSING.join(ends)
        title = f"{name}: {FORMATS['signed'](gain)}, {each.users:,} users"
        parts.append(tag("g", tag("title", escape(title)) + bar))
        parts.append(svg.text(middle, y.start + 18, name, anchor="middle"))
    return frame.draw(axes + tag("g", "".join(parts), class_=f"s{style % 8}"))


def _short_end(value: float, style: str) -> str:
    """Write the end of a bin; percent without the sign, which the axis has."""
    return f"{100 * value:.0f}" if style == "percent" else FORMATS[style](value)


def gain_bar(wins: int, ties: int, losses: int, style: int, *, label: str) -> str:
    """One bar of all users: better, alike, worse."""
    width, height, total = 920.0, 30.0, max(wins + ties + losses, 1)
    parts, place = [], 0.0
    for number, class_ in ((wins, "gain strong"), (ties, "same"), (losses, "loss")):
        across = width * number / total
        parts.append(svg.rect(place, 0, max(across - 2, 0), height, class_))
        place += across
    content = tag("g", "".join(parts), class_=f"s{style % 8}")
    return tag(
        "svg",
        content,
        viewBox=f"0 0 {width:g} {height:g}",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
        class_="split",
    )
