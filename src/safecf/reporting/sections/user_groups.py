"""The section on groups of users: the worst-served first, small ones marked."""

from safecf.evaluation.groups import ENOUGH
from safecf.reporting.content import Content, Group, Panel
from safecf.reporting.markup import count, escape, interval, name, percent, tag, whom
from safecf.reporting.sections.elements import by_metric, section, shown, table, with_interval


def groups(content: Content) -> str:
    """The groups of users that the data name, the worst first."""
    if not (parts := by_metric(content, _groups)):
        return ""
    lede = "The mean of each group that is named in the data, the worst-served first"
    if content.level < 1:
        lede += f", and the share of the group that is among {whom(content.level)} of all users"
    lede += f". A group is called the worst only if it has at least {ENOUGH} users."
    return section("groups", "Groups of users", lede, parts)


def _groups(content: Content, panel: Panel) -> str:
    found = panel.groups
    if not (found.large or found.small):
        return ""
    rows = [*found.large, found.pooled, found.everybody]
    parts = [
        _worst(content, panel),
        _table(content, panel, [each for each in rows if each is not None]),
    ]
    if found.small:
        said = f"Each has fewer than {ENOUGH} users: some are high or low by chance alone."
        inside = tag("p", said, class_="fine") + _table(content, panel, found.small)
        title = "The smaller groups, one by one"
        parts.append(tag("details", tag("summary", title) + inside, class_="also-printed"))
    if found.left_out:
        said = f"{count(found.left_out)} more groups are left out."
        parts.append(tag("p", said, class_="fine"))
    return "".join(parts)


def _worst(content: Content, panel: Panel) -> str:
    """List the worst group of each model with its mean."""
    said = []
    for model in content.models:
        if model in panel.groups.worst:
            label, estimate = panel.groups.worst[model]
            ends = interval(*estimate[1:], "number")
            value = shown(estimate[0], "worst group", model=model)
            said.append(f"{name(model)}: {name(label)}, {value} {tag('span', ends, class_='ci')}")
    if not said:
        why = f"Fewer than two groups have {ENOUGH} users, so no group is called the worst."
        return tag("p", why, class_="fine")
    listed = "".join(tag("li", each) for each in said)
    title = "Worst-served group; its interval allows for another group being the worst:"
    return tag("p", title, class_="list-title") + tag("ul", listed, class_="plain")


def _table(content: Content, panel: Panel, groups: list[Group]) -> str:
    """One row per group; small groups have no intervals and no share in the tail."""
    models = content.models
    few = not groups[0].enough
    at_risk = not few and content.level < 1
    rows = []
    for group in groups:
        cells = [name(group.label), f"{count(group.users)} ({percent(round(group.share, 3))})"]
        if few:
            cells[0] += tag("span", "few users", class_="flag few")
        for model in models:
            estimate = group.means[model]
            worst = panel.groups.worst.get(model, ("",))[0] == group.label
            flag = tag("span", "worst", class_="flag") if worst and not few else ""
            cells.append(with_interval(estimate, flag + shown(estimate[0], "group", model=model)))
        if at_risk:
            cells += [shown(round(group.risks[m], 3), "risk", model=m) for m in models]
        rows.append(cells)
    head = ["Group", "users", *(f"{escape(panel.metric)}<br>{name(m)}" for m in models)]
    if at_risk:
        head += [f"in the tail<br>{name(m)}" for m in models]
    marks = [{"data_group": group.label} for group in groups]
    label = f"{panel.metric} by {'smaller ' if few else ''}group"
    return table(head, rows, label=label, marks=marks)
