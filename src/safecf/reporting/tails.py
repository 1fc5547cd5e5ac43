"""Charts of who is in the tail: its users beside all others, and the groups they are from."""

import math

from safecf.evaluation.profile import Spread
from safecf.reporting import svg
from safecf.reporting.charts import SMALL, Frame
from safecf.reporting.content import Group
from safecf.reporting.svg import Scale
from safecf.reporting.text import FORMATS, tag


def spread_chart(
    rows: list[tuple[str, int, Spread, Spread]], *, label: str, x_label: str, x_format: str
) -> str:
    """By model, the worst-off (filled) above the others (open): median, middle half and 80 %."""
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
    """Ticks of a scale; 1, 2, 5, 10, 20, ... where it is logarithmic, thinned to a few."""
    if not x.log:
        return x.ticks(4)
    found = [m * 10.0**p for p in range(-6, 8) for m in (1, 2, 5) if x.low <= m * 10.0**p <= x.high]
    return found if len(found) <= 6 else found[::2]


def risk_chart(
    groups: list[Group], everybody: Group, styles: dict[str, int], *, label: str, narrow: bool
) -> str:
    """By group and model, how much more often it is in the tail than all users are."""
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


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
