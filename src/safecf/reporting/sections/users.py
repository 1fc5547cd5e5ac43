"""The sections on users: who gains, who loses, who is among the worst-off."""

import math

from safecf.evaluation.profile import Spread
from safecf.reporting.content import Bin, Content, Panel
from safecf.reporting.drawing import user_charts
from safecf.reporting.markup import FORMATS, count, name, percent, tag, whom
from safecf.reporting.sections.elements import (
    by_metric,
    figure,
    folded,
    readout,
    section,
    shown,
    swatch,
    table,
    with_interval,
)

PROPERTIES = {  # name and format
    "history_length": ("items in the history", "count"),
    "popularity": ("popularity of their items", "percent"),
    "weight": ("weight in training, 1 for the average user", "short"),
    "target_count": ("held-out items", "count"),
    "loss": ("loss", "short"),
}
COLUMNS = 3  # figures in a row
GROUPS = 7  # rows in the chart of groups


def gains(content: Content) -> str:
    """Users who gain and lose, and who they are."""
    if content.baseline is None or not content.panels:
        return ""
    lede = (
        f"Every user's score is compared with the same user's score under "
        f"{name(content.baseline)}. A model can help a few users a lot and cost many a little: "
        "the sorted curves show how large the gains and the losses are."
    )
    return section("gains", "Who gains and who loses", lede, by_metric(content, _gains))


def _gains(content: Content, panel: Panel) -> str:
    ordered = [(other, panel.gains[other]) for other in content.others]
    limit = max((abs(v) for _, g in ordered for v in g.curve.series[0].y), default=1) or 1.0
    every = [each for _, g in ordered for found in g.bins.values() for each in found]
    ends = [abs(v) for each in every for v in each.gain if math.isfinite(v)]
    bin_limit = 1.1 * max(ends, default=1) or 1.0
    blocks, lines = [], []
    for other, gain in ordered:
        label = f"Differences in {panel.metric} between {other} and the baseline, sorted"
        drawing = user_charts.gain_chart(
            gain.curve, label=label, y_label=f"difference in {panel.metric}", limit=1.08 * limit
        )
        path = ("panels", panel.metric, "gains", other, "curve")
        above = readout(gain.curve, swatches=False)
        figures = [figure("User by user", drawing, chart=path, above=above)]
        for key, found in gain.bins.items():
            if found:
                figures.append(_bin_figure(content, found, other, key, bin_limit))
                lines += _bin_rows(found, other, key)
        blocks.append(tag("h3", name(other)) + _balance(content, panel, other))
        blocks.append(tag("div", "".join(figures), class_="row"))
    head = ["Model", "property", "from, to", "users", "mean difference"]
    fallback = folded("Show as a table", table(head, lines, label="Differences by property"))
    return "".join(blocks) + (fallback if lines else "")


def _bin_figure(content: Content, bins: list[Bin], model: str, key: str, limit: float) -> str:
    label, write = PROPERTIES[key]
    drawing = user_charts.bin_chart(
        bins,
        content.styles[model],
        label=f"Mean difference by {label}: {_bins_spoken(bins, write)}",
        x_label=label + (", %" if write == "percent" else ""),
        x_format=write,
        limit=limit,
    )
    said = f"Quarters of the users, {percent(content.confidence)} intervals"
    return figure(f"By {label}", drawing, above=tag("p", said, class_="readout"))


def _bin_rows(bins: list[Bin], model: str, key: str) -> list[list[str]]:
    label, style = PROPERTIES[key]
    write = FORMATS[style]
    return [
        [
            name(model),
            label,
            f"{write(each.low)} to {write(each.high)}",
            count(each.users),
            with_interval(each.gain, FORMATS["signed"](each.gain[0]), "signed"),
        ]
        for each in bins
    ]


def _bins_spoken(bins: list[Bin], style: str) -> str:
    write = FORMATS[style]
    return "; ".join(
        f"{write(b.low)} to {write(b.high)}: {FORMATS['signed'](b.gain[0])}" for b in bins
    )


def _balance(content: Content, panel: Panel, other: str) -> str:
    gain, style = panel.gains[other], content.styles[other]
    total = max(gain.wins + gain.ties + gain.losses, 1)
    label = f"{other}: {gain.wins} users better, {gain.ties} the same, {gain.losses} worse"
    bar = user_charts.gain_bar(gain.wins, gain.ties, gain.losses, style, label=label)
    items = []
    for stat, class_, word in (
        ("wins", "gain strong", "better off"),
        ("ties", "same", "the same"),
        ("losses", "loss", "worse off"),
    ):
        value = getattr(gain, stat)
        square = f'<rect x=".5" y=".5" width="11" height="11" class="{class_}"/>'
        key = tag("svg", square, viewBox="0 0 12 12", class_="key", aria_hidden="true")
        written = shown(value, stat, model=other, level=1.0)
        items.append(tag("li", f"{key}{written} {word} ({percent(round(value / total, 3))})"))
    shares = tag("ul", "".join(items), class_=f"shares s{style % 8}")
    return tag("figure", bar + shares)


def tail(content: Content) -> str:
    """Who the worst-off users are."""
    if not content.panels or content.level == 1:
        return ""
    lede = (
        f"For each model, {whom(content.level)} of the users (filled dots) beside all others (open "
        "dots). The dot is the median; half of the users are within the thick line, and 80 % "
        "within the thin one."
    )
    return section("tail", "Who the worst-off users are", lede, by_metric(content, _profile))


def _profile(content: Content, panel: Panel) -> str:
    figures, lines = [], []
    for key, (label, style) in PROPERTIES.items():
        rows: list[tuple[str, int, Spread, Spread]] = []
        for model, number in content.styles.items():
            found = panel.profiles[model].properties.get(key)
            if found is None or not math.isfinite(found[0].median):
                continue
            rows.append((model, number, *found))
            medians = [FORMATS[style](each.median) for each in found]
            halves = [f"{FORMATS[style](s.q25)} to {FORMATS[style](s.q75)}" for s in found]
            lines.append([label, name(model), medians[0], halves[0], medians[1], halves[1]])
        # The losses of different models have different scales and share no chart.
        if rows and key != "loss" and not (key == "weight" and _constant(rows)):
            drawing = user_charts.spread_chart(
                rows,
                label=f"{label} of the worst-off and the others",
                x_label=label,
                x_format=style,
            )
            figures.append(figure(label.partition(",")[0].capitalize(), drawing))
    head = ["Property", "model", "worst-off: median", "middle half", "others: median"]
    head.append("middle half")
    fallback = folded("Show as a table", table(head, lines, label="Users of the tail"))
    inside = panel.profiles[content.headline].inside
    note = ""
    if inside > round(content.level * panel.users) + 1:
        note = tag(
            "p",
            f"Many users have the same score as the best of the worst-off; all of them are "
            f"counted here: {count(inside)} of {count(panel.users)} for {name(content.headline)}.",
            class_="fine",
        )
    drawn = tag("div", "".join(figures[:COLUMNS]), class_="row") + _group_figure(content, panel)
    return drawn + note + (fallback if lines else "")


def _constant(rows: list[tuple[str, int, Spread, Spread]]) -> bool:
    """Whether every model gives all users the same weight."""
    ends = [end for _, _, *both in rows for each in both for end in (each.q10, each.q90)]
    return all(math.isclose(end, 1) for end in ends if math.isfinite(end))


def _group_figure(content: Content, panel: Panel) -> str:
    """The groups that are most often among the worst-off, by the baseline."""
    found = panel.groups
    first = content.baseline or content.headline
    by_risk = sorted(found.large, key=lambda group: group.risks[first], reverse=True)
    groups = ([found.pooled] if found.pooled else []) + by_risk[:GROUPS]
    if found.everybody is None or len(groups) < 2:
        return ""
    spoken = "; ".join(f"{group.label} {percent(round(group.risks[first], 3))}" for group in groups)
    drawing = "".join(
        user_charts.risk_chart(
            groups,
            found.everybody,
            content.styles,
            label=f"Share of each group that is among the worst-off of {first}: {spoken}",
            narrow=narrow,
        )
        for narrow in (False, True)
    )
    legend = "".join(
        tag("li", swatch(style) + name(model), class_=f"s{style % 8}")
        for model, style in content.styles.items()
    )
    said = "To the right of the line: more often among the worst-off than the average user."
    above = tag("div", tag("span", said, class_="at") + tag("ul", legend), class_="readout")
    return figure("Groups of the worst-off users", drawing, above=above, class_="below")
