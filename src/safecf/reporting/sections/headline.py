"""The top of the page: title, verdict, and a few large numbers."""

import math

from safecf.evaluation.difference import BETTER, UNCLEAR, WORSE, Difference
from safecf.evaluation.groups import ENOUGH
from safecf.reporting.content import Content, Panel
from safecf.reporting.markup import (
    count,
    escape,
    interval,
    level_name,
    name,
    percent,
    tag,
    typeset,
    whom,
)
from safecf.reporting.sections.elements import by_metric, shown

SIGNS = {BETTER: "▲", WORSE: "▼", UNCLEAR: "●"}


def header(content: Content) -> str:
    """Title, and the numbers of users, metrics and models."""
    metrics = len(content.panels)
    facts = [f"{count(content.distinct)} {'user' if content.distinct == 1 else 'users'}"]
    if content.splits > 1:
        facts.append(f"{count(content.splits)} splits")
    facts.append(f"{metrics} {'metric' if metrics == 1 else 'metrics'}")
    if content.baseline is not None:
        facts.append(f"{len(content.styles)} models, baseline {name(content.baseline)}")
    facts.extend(f"{name(key)}: {name(value)}" for key, value in list(content.data.items())[:2])
    brand = tag("p", "<b>safecf</b> · tail report")
    toggle = tag("button", "Dark", id="theme", type="button", class_="needs-script")
    return tag(
        "header",
        tag("div", brand + toggle, class_="brand")
        + tag("h1", tag("bdi", typeset(content.title, content.styles)))
        + tag("p", " · ".join(facts), class_="about")
        + _splits(content)
        + _differences(content),
        class_="top",
    )


def _splits(content: Content) -> str:
    """Say what is averaged over the splits, and what is not, if there are several."""
    if content.splits == 1:
        return ""
    said = (
        f"Every model was trained on {count(content.splits)} splits. Means and lifts are averages "
        f"over the splits; charts and tables of users show all {count(content.users)} appearances "
        "of the users; curves of training are those of the first split."
    )
    return tag("p", said, class_="about")


def _differences(content: Content) -> str:
    """List the options in which models of one class differ."""
    said = [
        f"{name(run.model)}: " + escape(", ".join(f"{k}={v}" for k, v in run.differs.items()))
        for run in content.runs
        if run.differs
    ]
    return tag("p", " · ".join(said), class_="about") if said else ""


def verdict(content: Content) -> str:
    """The verdict, for every metric."""
    if not content.panels:
        message = "No user has a score, so there is nothing to show."
        inside = tag("p", message, class_="sentence")
    else:
        inside = by_metric(content, _verdict)
    heading = '<h2 class="skip" id="verdict-title">Verdict</h2>'
    return tag(
        "section", heading + inside, id="verdict", class_="verdict", aria_labelledby="verdict-title"
    )


def _verdict(content: Content, panel: Panel) -> str:
    if content.baseline is None:
        return _alone(content, panel)
    others = content.others
    first = _tail_change(content, panel, content.headline)
    users = min(panel.users, content.distinct)
    few = users < ENOUGH
    state = UNCLEAR if few else first.outcome
    said = {
        BETTER: f"Better for {whom(content.level)}",
        WORSE: f"Worse for {whom(content.level)}",
        UNCLEAR: f"No clear difference for {whom(content.level)}",
    }[state]
    sentence = typeset(f"{panel.verdicts[content.headline]}.", content.styles)
    if few:
        who = "1 user was" if users == 1 else f"{count(users)} users were"
        said = "Too few users to tell"
        sentence = f"{who} measured; it takes {ENOUGH} before a difference means anything."
    parts = [
        tag("p", f'<span aria-hidden="true">{SIGNS[state]}</span> {said}', class_=f"chip {state}"),
        tag("p", sentence, class_="sentence"),
        _floor(panel),
        _caution(panel),
    ]
    several = len(others) > 1 and not few
    if several:
        parts.append(_other_verdicts(content, panel))
    changes = {each.level: each for each in (first, panel.differences[content.headline][1.0])}
    cards = [_lift_card(content, each) for each in changes.values()]
    cards += [_users_card(content, panel), _coverage_card(content, panel)]
    parts.append(tag("dl", "".join(cards), class_="cards"))
    if several:
        note = (
            f"{name(content.headline)} is shown first because it has the highest "
            f"{escape(_tail_metric(content.panels[content.metric]))} of {len(others)} models for "
            f"{whom(content.level)}; to be the best of several is partly chance."
        )
        parts.append(tag("p", note, class_="fine"))
    return "".join(parts)


def _tail_metric(panel: Panel) -> str:
    """The metric that the worst-off are compared by."""
    return panel.metric if panel.floor is None else panel.floor.metric or panel.metric


def _tail_change(content: Content, panel: Panel, model: str) -> Difference:
    """What a model does for the worst-off, by a metric that is not at its floor."""
    if panel.floor is not None and model in panel.floor.differences:
        return panel.floor.differences[model]
    return panel.differences[model][content.level]


def _floor(panel: Panel) -> str:
    """Say that the tail is zero with every model."""
    return (
        "" if panel.floor is None else tag("p", f"{escape(panel.floor.sentence)}.", class_="fine")
    )


def _caution(panel: Panel) -> str:
    """Say that the users are too few for the interval of the tail."""
    said = panel.caution[:1].upper() + panel.caution[1:]
    return tag("p", f"{typeset(said)}.", class_="fine") if said else ""


def _other_verdicts(content: Content, panel: Panel) -> str:
    """The verdicts on the models other than the headline, as a list."""
    items = []
    for other in content.others[1:]:
        sign = SIGNS[_tail_change(content, panel, other).outcome]
        text = tag("span", typeset(f"{panel.verdicts[other]}.", content.styles))
        items.append(tag("li", f'<span aria-hidden="true">{sign}</span>{text}'))
    return tag("ul", "".join(items), class_="also")


def _card(title: str, big: str, *subs: str) -> str:
    below = "".join(tag("dd", sub, class_="sub") for sub in subs if sub)
    return tag("div", tag("dt", title) + tag("dd", big, class_="big") + below, class_="card")


def _whole(content: str) -> str:
    """Keep something on one line."""
    return tag("span", content, class_="whole")


def _lift_card(content: Content, change: Difference) -> str:
    """The lift at one level, with its interval and the two means."""
    title = level_name(change.level).capitalize() + (", on average" if change.level == 1 else "")
    lift = change.has_lift
    estimate, style = (change.relative, "lift") if lift else (change.absolute, "signed")
    level, model, metric = change.level, content.headline, change.metric
    stat = "relative" if lift else "absolute"
    big = shown(estimate[0], stat, model=model, level=level, metric=metric)
    ends = f"{percent(content.confidence)} interval {_whole(interval(*estimate[1:], style))}"
    before = shown(change.baseline, "value", model=content.baseline, level=level, metric=metric)
    after = shown(change.value, "value", model=model, level=level, metric=metric)
    return _card(title, big, ends, f"{escape(metric)} {_whole(f'{before} → {after}')}")


def _users_card(content: Content, panel: Panel) -> str:
    gains = panel.gains[content.headline]
    wins, ties, losses = (
        shown(getattr(gains, stat), stat, model=content.headline, level=1.0)
        for stat in ("wins", "ties", "losses")
    )
    big = f'{wins}<span class="vs"> : </span>{losses}'
    return _card(
        "Users better : worse off", big, f"{ties} have the same score as with the baseline"
    )


def _coverage_card(content: Content, panel: Panel) -> str:
    cutoff = panel.metric.rpartition("@")[2]
    key = f"coverage@{cutoff}"
    value = content.catalogue.get(content.headline, {}).get(key)
    if value is None or not math.isfinite(value):
        return ""
    before = content.catalogue.get(content.baseline or "", {}).get(key)
    was = f"; {percent(before)} with the baseline" if before is not None else ""
    big = shown(value, "coverage", model=content.headline, metric=key)
    return _card("Items shown to anyone", big, f"of the catalogue{was}")


def _alone(content: Content, panel: Panel) -> str:
    """The page of one model, without a baseline."""
    model = content.headline
    tail, everybody = (panel.scores[model][level] for level in (content.level, 1.0))
    share = tail[0] / everybody[0] if everybody[0] > 0 else float("nan")
    low = shown(tail[0], "value", model=model, level=content.level)
    mean = shown(everybody[0], "value", model=model, level=1.0)
    inside, around = (interval(*each[1:], "number") for each in (tail, everybody))
    reached = f"reaches a {escape(panel.metric)} of {low} {inside}"
    sentence = f"On average over its users, {name(model)} {reached}."
    confidence = percent(content.confidence)
    average = _card("All users, on average", mean, f"{confidence} interval {_whole(around)}")
    cards = [average, _coverage_card(content, panel)]
    if content.level < 1:
        sentence = (
            f"For {whom(content.level)} of its users, {name(model)} {reached}; the "
            f"average is {mean} {around}."
        )
        title = level_name(content.level).capitalize()
        cards[:1] = [
            _card(title, low, f"{confidence} interval {_whole(inside)}"),
            average,
            _card("The worst-off reach", percent(share), "of the average user's score"),
        ]
        if panel.floor is not None and panel.floor.metric:
            beside, (value, *ends) = panel.floor.metric, panel.floor.tails[model]
            big = shown(value, "value", model=model, level=content.level, metric=beside)
            sub = f"{confidence} interval {_whole(interval(ends[0], ends[1], 'number'))}"
            cards[2] = _card(f"{title}, {escape(beside)}", big, sub)
    opening = tag("p", sentence, class_="sentence") + _floor(panel) + _caution(panel)
    return opening + tag("dl", "".join(cards), class_="cards")
