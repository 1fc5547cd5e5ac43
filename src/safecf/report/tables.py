"""The sections with tables: all numbers, groups, settings, glossary."""

import math
from collections.abc import Mapping

from safecf.report.content import Content, Panel
from safecf.report.figures import (
    Of,
    by_metric,
    level_name,
    scrolling,
    section,
    shown,
    table,
    with_interval,
)
from safecf.report.glossary import TERMS, explain
from safecf.report.text import count, escape, name, p_value, percent, tag

SHOWN_GROUPS = 12


def numbers(content: Content) -> str:
    """All metrics at all levels."""
    parts = []
    for metric, panel in content.panels.items():
        opened = " open" if metric == content.metric else ""
        inside = tag("summary", escape(metric)) + _levels(content, panel)
        parts.append(
            f'<details class="metric" data-details="{escape(metric)}"{opened}>{inside}</details>'
        )
    if content.unscored:
        listed = ", ".join(escape(metric) for metric in content.unscored)
        parts.append(tag("p", f"No user has a score of: {listed}.", class_="fine"))
    if not parts:
        return ""
    catalogue = _catalogue(content)
    lede = (
        f"Every metric at every tail level, with {percent(content.confidence)} intervals from "
        f"{count(content.resamples)} draws of the users."
    )
    if content.baseline is not None:
        lede += (
            " p is Wilcoxon's signed-rank test over the users in either tail; it counts who gains "
            "rather than how much, so it can disagree with the interval."
        )
    return section("numbers", "All numbers", lede, "".join(parts) + catalogue)


def _levels(content: Content, panel: Panel) -> str:
    """One row per level, one group of columns per model."""
    top = ['<th rowspan="2" scope="col">Users</th>']
    second: list[str] = []
    for model in _ordered(content):
        against = model in panel.differences
        span = 4 if against else 1
        top.append(tag("th", name(model), colspan=span, scope="colgroup", class_="over"))
        titles = ["mean", "lift", "p", "better<br>: worse"] if against else ["mean"]
        second.extend(tag("th", title, scope="col") for title in titles)
    rows = []
    for level in content.tails:
        cells = [tag("th", level_name(level).capitalize(), scope="row")]
        for model in _ordered(content):
            cells.extend(_cells(panel, model, level))
        chosen = "chosen" if level == content.level else None
        rows.append(tag("tr", "".join(cells), class_=chosen))
    head = tag("thead", tag("tr", "".join(top)) + tag("tr", "".join(second)))
    whole = tag("table", head + tag("tbody", "".join(rows)))
    return scrolling(whole, f"{panel.metric} by tail level and model")


def _cells(panel: Panel, model: str, level: float) -> list[str]:
    of = Of(panel.metric, level, model)
    estimate = panel.scores[model][level]
    cells = [tag("td", with_interval(estimate, shown(estimate[0], of, "value")))]
    change = panel.differences.get(model, {}).get(level)
    if change is not None:
        relative = change.relative
        lift = shown(relative[0], of, "relative", "lift")
        cells.append(tag("td", with_interval(relative, lift, "lift")))
        cells.append(tag("td", p_value(change.p_value)))
        wins, losses = (
            shown(getattr(change, stat), of, stat, "count") for stat in ("wins", "losses")
        )
        cells.append(tag("td", f"{wins} : {losses}"))
    return cells


def _ordered(content: Content) -> list[str]:
    first = [] if content.baseline is None else [content.baseline]
    return first + (content.others or [content.headline])


def _catalogue(content: Content) -> str:
    """Coverage and exposure, which belong to no user."""
    measures = list(dict.fromkeys(key for found in content.catalogue.values() for key in found))
    if not measures:
        return ""
    rows = []
    for measure in measures:
        cells = []
        for model in _ordered(content):
            value = content.catalogue[model].get(measure, math.nan)
            cells.append(shown(value, Of(measure, None, model), "catalogue"))
        rows.append([escape(measure), *cells])
    head = ["", *(name(model) for model in _ordered(content))]
    return tag("h3", "The catalogue") + table(head, rows, label="The catalogue")


def groups(content: Content) -> str:
    """Groups of users, the worst first."""
    parts = {m: _groups(content, p) for m, p in content.panels.items() if p.groups}
    if not parts:
        return ""
    lede = (
        "The mean of each group the data name, the worst-served group first, and the share of the "
        f"group that is among the {level_name(content.level)} of all users."
    )
    return section("groups", "Groups of users", lede, by_metric(parts, content.metric))


def _groups(content: Content, panel: Panel) -> str:
    models = _ordered(content)
    rows = []
    for group in panel.groups:
        flags = [model for model in models if panel.worst.get(model) == group.label]
        cells = [name(group.label), count(group.users)]
        for model in models:
            value = group.means.get(model, math.nan)
            written = shown(value, Of(panel.metric, None, model), "group")
            cells.append(written + ('<span class="flag">worst</span>' if model in flags else ""))
        cells.extend(percent(round(group.risks.get(model, math.nan), 3)) for model in models)
        rows.append(cells)
    head = ["", "users", *(f"{escape(panel.metric)}<br>{name(m)}" for m in models)]
    head += [f"in the tail<br>{name(m)}" for m in models]
    found = table(head, rows[:SHOWN_GROUPS], label=f"{panel.metric} by group")
    if rows[SHOWN_GROUPS:]:
        more = table(head, rows[SHOWN_GROUPS:], label=f"{panel.metric} by group, continued")
        title = f"{count(len(rows) - SHOWN_GROUPS)} more groups"
        found += tag("details", tag("summary", title) + more)
    if panel.groups_left_out:
        found += tag("p", f"{count(panel.groups_left_out)} groups are left out.", class_="fine")
    return found


def settings(content: Content) -> str:
    """What it takes to get these numbers again."""
    calls = []
    for run in content.runs:
        if run.kind:
            given = ", ".join(f"{key}={value!r}" for key, value in run.params.items())
            calls.append(f"{run.model} = {run.kind}({given})")
    versions = _pairs("Versions", content.versions)
    data = _pairs("Data", content.data)
    code = tag("pre", escape("\n".join(calls))) if calls else ""
    lede = "The settings of each model, and the versions of what ran."
    content_ = code + tag("div", data + versions, class_="pair")
    return section("settings", "To repeat it", lede, content_)


def _pairs(title: str, pairs: Mapping[str, object]) -> str:
    if not pairs:
        return ""
    rows = "".join(
        tag(
            "tr",
            tag("th", escape(key), scope="row", class_="wrap")
            + tag("td", escape(value), class_="text"),
        )
        for key, value in pairs.items()
    )
    body = tag("caption", title) + tag("tbody", rows)
    return scrolling(tag("table", body), title)


def glossary(content: Content) -> str:
    """The words of the page, in plain language."""
    words = {"{level}": percent(content.level), "{confidence}": percent(content.confidence)}
    terms = []
    for pair in [*explain(list(content.panels)), *TERMS.items()]:
        written = [escape(part) for part in pair]
        for mark, word in words.items():
            written = [part.replace(mark, word) for part in written]
        terms.append(written)
    items = "".join(tag("div", tag("dt", term) + tag("dd", text)) for term, text in terms)
    return section("glossary", "In plain words", "", tag("dl", items, class_="glossary"))
