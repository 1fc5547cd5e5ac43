"""The section with all numbers: by metric, by level, and of the catalogue."""

import math

from safecf.evaluation.difference import UNCLEAR, Difference
from safecf.reporting.content import Content, Panel
from safecf.reporting.markup import MISSING, count, escape, level_name, name, p_value, percent, tag
from safecf.reporting.sections.elements import (
    by_metric,
    scrolling,
    section,
    shown,
    table,
    with_interval,
)


def numbers(content: Content) -> str:
    """All metrics at the level of the page, and the chosen one at all levels."""
    if not content.panels and not content.unscored:
        return ""
    parts = [_overview(content)] if len(content.panels) > 1 else []
    parts.append(by_metric(content, _levels))
    if content.unscored:
        listed = ", ".join(escape(metric) for metric in content.unscored)
        parts.append(tag("p", f"No user has a score for: {listed}.", class_="fine"))
    lede = (
        f"{percent(content.confidence)} intervals are from {count(content.resamples)} random draws "
        f"of the users{', each with all appearances' if content.splits > 1 else ''}."
    )
    if content.baseline is not None:
        lede += (
            " p is that of Wilcoxon's signed-rank test over the users in either model's tail; it "
            "is about how many users gain rather than how much, so it can disagree with the "
            f"interval. Where the baseline scores zero there is no lift ({MISSING}), and the "
            "absolute difference is given."
        )
    return section("numbers", "All numbers", lede, "".join(parts) + _catalogue(content))


def _overview(content: Content) -> str:
    """One row per metric: the worst-off and all users, with the lift over the baseline."""
    levels = sorted({content.level, 1.0})
    models = content.models
    top = ['<th rowspan="2" scope="col">Metric</th>']
    top += [
        tag("th", name(model), colspan=len(levels), scope="colgroup", class_="over")
        for model in models
    ]
    titles = [level_name(level).capitalize() for level in levels]
    second = [tag("th", title, scope="col") for _ in models for title in titles]
    rows = []
    for metric, panel in content.panels.items():
        cells = [tag("th", escape(metric), scope="row")]
        for model in models:
            for level in levels:
                value = shown(panel.scores[model][level][0], "value", model=model, level=level)
                change = panel.differences.get(model, {}).get(level)
                lift = "" if change is None else _lift(change, model, level)
                cells.append(tag("td", value + lift))
        rows.append(tag("tr", "".join(cells), data_metric=metric))
    head = tag("thead", tag("tr", "".join(top)) + tag("tr", "".join(second)))
    whole = tag("table", head + tag("tbody", "".join(rows)))
    title = tag("h3", "Every metric")
    if content.baseline is not None:
        note = "Means, with the lift below; it is bold if its interval excludes zero."
        title += tag("p", note, class_="fine")
    return tag("div", title + scrolling(whole, "Every metric"), class_="keep")


def _lift(change: Difference, model: str, level: float) -> str:
    """The lift below a value, bold where the interval excludes zero."""
    stat, value = (
        ("relative", change.relative) if change.has_lift else ("absolute", change.absolute)
    )
    clear = "ci" if change.outcome == UNCLEAR else "ci clear"
    return tag("span", shown(value[0], stat, model=model, level=level), class_=clear)


def _levels(content: Content, panel: Panel) -> str:
    """One row per level, one group of columns per model."""
    top = ['<th rowspan="2" scope="col">Users</th>']
    second: list[str] = []
    for model in content.models:
        against = model in panel.differences
        span = 4 if against else 1
        top.append(tag("th", name(model), colspan=span, scope="colgroup", class_="over"))
        titles = ["mean", "lift", "p", "better<br>: worse"] if against else ["mean"]
        second.extend(tag("th", title, scope="col") for title in titles)
    rows = []
    for level in content.tails:
        cells = [tag("th", level_name(level).capitalize(), scope="row")]
        for model in content.models:
            cells.extend(_cells(panel, model, level))
        chosen = "chosen" if level == content.level else None
        rows.append(tag("tr", "".join(cells), class_=chosen, data_level=f"{level:g}"))
    head = tag("thead", tag("tr", "".join(top)) + tag("tr", "".join(second)))
    whole = tag("table", head + tag("tbody", "".join(rows)))
    title = tag("h3", f"{escape(panel.metric)} at every level")
    wide = scrolling(whole, f"{panel.metric} by tail level and model")
    return tag("div", title + wide, class_="keep")


def _cells(panel: Panel, model: str, level: float) -> list[str]:
    estimate = panel.scores[model][level]
    cells = [with_interval(estimate, shown(estimate[0], "value", model=model))]
    change = panel.differences.get(model, {}).get(level)
    if change is not None:
        if change.has_lift:
            lift = shown(change.relative[0], "relative", model=model)
            cells.append(with_interval(change.relative, lift, "lift"))
        else:
            absolute = shown(change.absolute[0], "absolute", model=model)
            below = with_interval(change.absolute, absolute, "signed")
            cells.append(MISSING + tag("span", below, class_="ci"))
        cells.append(p_value(change.p_value))
        wins, losses = (
            shown(getattr(change, stat), stat, model=model) for stat in ("wins", "losses")
        )
        cells.append(f"{wins} : {losses}")
    return [tag("td", cell) for cell in cells]


def _catalogue(content: Content) -> str:
    """Measures of the catalogue, which are not per user."""
    measures = list(dict.fromkeys(key for found in content.catalogue.values() for key in found))
    if not measures:
        return ""
    models = content.models
    rows = [
        [
            escape(measure),
            *(
                shown(content.catalogue[model].get(measure, math.nan), "catalogue", model=model)
                for model in models
            ),
        ]
        for measure in measures
    ]
    head = ["Measure", *(name(model) for model in models)]
    marks = [{"data_metric": measure} for measure in measures]
    found = table(head, rows, label="The catalogue", marks=marks)
    return tag("div", tag("h3", "The catalogue") + found, class_="keep")
