"""Charts of users: their losses and gains, who is in the tail, and from which groups."""

import math

import numpy as np

from safecf.evaluation.profile import Spread
from safecf.reporting.content import Bin, Chart, Group, Losses
from safecf.reporting.drawing import svg
from safecf.reporting.drawing.charts import SMALL, Frame
from safecf.reporting.drawing.svg import Scale
from safecf.reporting.markup import FORMATS, MISSING, escape, short, tag


def loss_chart(losses: Losses, *, label: str) -> str:
    """Histogram of the losses, with the tail darker, and VaR and CVaR marked."""
    width, height = SMALL[0], SMALL[1] + 20
    (series,) = losses.chart.series
    edges, counts = np.array(losses.edges), np.array(series.y)
    x = Scale(edges[0], edges[-1], 40, width - 8)
    y = Scale(0, max(counts.max(), 1) * 1.36, height - 38, 22)
    frame = Frame(width, height, x, y, label)
    parts = [frame.axes("loss of a user", "users", "plain", "plain", x_count=4, y_count=3)]
    tail = losses.var if math.isfinite(losses.var) else edges[-1]
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        # A bar that holds the VaR is split there.
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
    """Write the end of a bin; the sign of percent is on the axis."""
    return f"{100 * value:.0f}" if style == "percent" else FORMATS[style](value)


def gain_bar(wins: int, ties: int, losses: int, style: int, *, label: str) -> str:
    """One bar of all users: better, the same, worse."""
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


def spread_chart(
    rows: list[tuple[str, int, Spread, Spread]], *, label: str, x_label: str, x_format: str
) -> str:
    """By model, the worst-off (filled) above the others (open): median, half, 80 %."""
    step, top = 46, 10
    width, height = SMALL[0], top + step * len(rows) + 36
    values = [v for *_, a, b in rows for s in (a, b) for v in (s.q10, s.q90) if math.isfinite(v)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    log = low > 0 and high / low > 12
    if log:
        x = Scale(low / 1.15, high * 1.15, 8, width - 10, log=True)
    else:
        low, high = svg.domain(values)
        if x_format == "percent":
            low, high = max(low, 0.0), min(high, 1.0)
        x = Scale(low, high, 8, width - 10)
    y = Scale(0, 1, height - 36, top)
    frame = Frame(width, height, x, y, label)
    parts = []
    for value in _round_ticks(x):
        place = x.at(value)
        parts.append(svg.line(place, y.start, place, y.end, "grid"))
        written = FORMATS[x_format](value) if x_format == "percent" else f"{value:g}"
        parts.append(svg.text(place, y.start + 18, written, anchor="middle"))
    parts.append(svg.line(x.start, y.start, x.end, y.start, "axis"))
    parts.append(svg.text(width / 2, height - 3, x_label, "axis-name", "middle"))
    for row, (name, style, inside, outside) in enumerate(rows):
        base = top + step * row
        drawn = svg.text(x.start, base + 10, _cut(name, 30), "row-name halo")
        drawn += _spread(x, base + 21, inside, "inside") + _spread(x, base + 34, outside, "outside")
        parts.append(tag("g", drawn, class_=f"s{style % 8}"))
    return frame.draw("".join(parts))


def _spread(x: Scale, y: float, spread: Spread, class_: str) -> str:
    """Draw one line of a spread chart."""
    if not math.isfinite(spread.median):
        return ""
    ends = [
        x.at(value) for value in (spread.q10, spread.q25, spread.median, spread.q75, spread.q90)
    ]
    drawn = svg.line(ends[0], y, ends[4], y, "thin") + svg.line(ends[1], y, ends[3], y, "thick")
    drawn += tag("circle", cx=svg.place(ends[2]), cy=svg.place(y), r="4.5", class_="median")
    return tag("g", drawn, class_=f"spread {class_}")


def _round_ticks(x: Scale) -> list[float]:
    """Ticks of a scale; at most about six of 1, 2, 5, 10, 20, ... if it is logarithmic."""
    if not x.log:
        return x.ticks(4)
    found = [m * 10.0**p for p in range(-6, 8) for m in (1, 2, 5) if x.low <= m * 10.0**p <= x.high]
    return found if len(found) <= 6 else found[::2]


def risk_chart(
    groups: list[Group], everybody: Group, styles: dict[str, int], *, label: str, narrow: bool
) -> str:
    """By group and model, its risk to be in the tail divided by that of all users."""
    step, top = 24, 6
    width, height = 360 if narrow else 920, top + step * len(groups) + 40
    room, longest = (118, 18) if narrow else (210, 30)
    ratios = [
        {model: group.risks[model] / everybody.risks[model] for model in styles} for group in groups
    ]
    most = max((value for each in ratios for value in each.values()), default=1.0)
    x = Scale(0, 1.06 * max(most, 1.2), room, width - 14)
    y = Scale(0, 1, height - 40, top)
    frame = Frame(width, height, x, y, label, "narrow" if narrow else "wide")
    rows = [top + step * (row + 0.5) for row in range(len(groups))]
    parts = [svg.line(x.start, y.start, x.end, y.start, "axis")]
    parts += [svg.line(x.start, place, x.end, place, "grid") for place in rows]
    parts.append(svg.line(x.at(1), y.start, x.at(1), y.end, "mark"))
    for value in x.ticks(4):
        parts.append(svg.text(x.at(value), y.start + 18, f"{value:g}", anchor="middle"))
    named = "times as often as all users"
    parts.append(svg.text((x.start + x.end) / 2, height - 3, named, "axis-name", "middle"))
    for place, group, ratio in zip(rows, groups, ratios, strict=True):
        parts.append(svg.text(room - 10, place + 4, _cut(group.label, longest), "row-name", "end"))
        for model, style in reversed(styles.items()):
            mark = svg.marker(x.at(ratio[model]), place, style)
            parts.append(tag("g", mark, class_=f"s{style % 8}"))
    return frame.draw("".join(parts))


def split_chart(
    rows: list[tuple[str, int, list[float]]], *, label: str, x_label: str, narrow: bool
) -> str:
    """By row, a name, a style and a value for every split: one mark each, and a line at zero."""
    step, top = 24, 6
    width, height = 360 if narrow else 920, top + step * len(rows) + 40
    room, longest = (150, 24) if narrow else (260, 40)
    values = [value for *_, found in rows for value in found]
    margin = 0.06 * (max(*values, 0) - min(*values, 0) or 1.0)
    x = Scale(min(*values, 0) - margin, max(*values, 0) + margin, room, width - 14)
    y = Scale(0, 1, height - 40, top)
    frame = Frame(width, height, x, y, label, "narrow" if narrow else "wide")
    parts = [svg.line(x.start, y.start, x.end, y.start, "axis")]
    parts.append(svg.line(x.at(0), y.start, x.at(0), y.end, "mark"))
    for value in x.ticks(4):
        parts.append(svg.text(x.at(value), y.start + 18, f"{value:g}", anchor="middle"))
    parts.append(svg.text((x.start + x.end) / 2, height - 3, x_label, "axis-name", "middle"))
    for row, (name, style, found) in enumerate(rows):
        place = top + step * (row + 0.5)
        parts.append(svg.line(x.start, place, x.end, place, "grid"))
        parts.append(svg.text(room - 10, place + 4, _cut(name, longest), "row-name", "end"))
        marks = "".join(svg.marker(x.at(value), place, style) for value in found)
        parts.append(tag("g", marks, class_=f"s{style % 8}"))
    return frame.draw("".join(parts))


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
