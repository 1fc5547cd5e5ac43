"""The top of the page: what it is about, the verdict in plain words, a few large numbers."""

import math

from safecf.evaluation.comparison import Difference
from safecf.report.content import Content, Panel
from safecf.report.figures import Of, by_metric, level_name, shown
from safecf.report.text import count, escape, interval, name, percent, tag

FEW = 30  # users, below which no interval is to be trusted
BETTER, WORSE, UNCLEAR = "better", "worse", "unclear"
SIGNS = {BETTER: "▲", WORSE: "▼", UNCLEAR: "●"}


def outcome(difference: Difference) -> str:
    """Say better or worse only where the interval excludes zero."""
    _, low, high = difference.absolute
    return BETTER if low > 0 else WORSE if high < 0 else UNCLEAR


def header(content: Content) -> str:
    """Title, and what was measured on whom."""
    metrics = len(content.panels)
    facts = [f"{count(content.users)} {'user' if content.users == 1 else 'users'}"]
    facts.append(f"{metrics} {'metric' if metrics == 1 else 'metrics'}")
    if content.baseline is not None:
        facts.append(f"{len(content.styles)} models, baseline {name(content.baseline)}")
    facts.extend(f"{name(key)}: {name(value)}" for key, value in list(content.data.items())[:2])
    brand = tag("p", "<b>safecf</b> · tail report")
    toggle = tag("button", "Dark", id="theme", type="button", class_="needs-script")
    return tag(
        "header",
        tag("div", brand + toggle, class_="brand")
        + tag("h1", name(content.title))
        + tag("p", " · ".join(facts), class_="about"),
        class_="top",
    )


def verdict(content: Content) -> str:
    """The verdict, for every metric."""
    if not content.panels:
        message = "No user has a score, so there is nothing to compare."
        inside = tag("p", message, class_="sentence")
    else:
        inside = by_metric(
            {metric: _panel(content, panel) for metric, panel in content.panels.items()},
            content.metric,
        )
    heading = '<h2 class="skip" id="verdict-title">Verdict</h2>'
    return tag(
        "section", heading + inside, id="verdict", class_="verdict", aria_labelledby="verdict-title"
    )


def _panel(content: Content, panel: Panel) -> str:
    if content.baseline is None:
        return _alone(content, panel)
    others = content.others
    first = panel.differences[content.headline][content.level]
    few = panel.users < FEW
    state = UNCLEAR if few else outcome(first)
    said = {
        BETTER: f"Better for the {level_name(content.level)}",
        WORSE: f"Worse for the {level_name(content.level)}",
        UNCLEAR: f"No clear difference for the {level_name(content.level)}",
    }[state]
    if few:
        said = f"Too few users to tell: {count(panel.users)}"
    parts = [
        tag("p", f'<span aria-hidden="true">{SIGNS[state]}</span> {said}', class_=f"chip {state}"),
        tag("p", f"{escape(panel.verdicts[content.headline])}.", class_="sentence"),
    ]
    if len(others) > 1:
        items = []
        for other in others[1:]:
            sign = SIGNS[outcome(panel.differences[other][content.level])]
            text = tag("span", f"{escape(panel.verdicts[other])}.")
            items.append(tag("li", f'<span aria-hidden="true">{sign}</span>{text}'))
        parts.append(tag("ul", "".join(items), class_="also"))
    everybody = panel.differences[content.headline][1.0]
    cards = [_lift_card(content, panel, first)]
    if content.level != 1:
        cards.append(_lift_card(content, panel, everybody))
    cards.append(_users_card(content, panel))
    cards.append(_coverage_card(content, panel))
    parts.append(tag("dl", "".join(cards), class_="cards"))
    if len(others) > 1:
        note = (
            f"{name(content.headline)} is shown first because it has the highest "
            f"{escape(content.metric)} of {len(others)} models for the "
            f"{level_name(content.level)}; the best of several is helped a little by chance."
        )
        parts.append(tag("p", note, class_="fine"))
    return "".join(parts)


def _card(title: str, big: str, *subs: str) -> str:
    below = "".join(tag("dd", sub, class_="sub") for sub in subs if sub)
    return tag("div", tag("dt", title) + tag("dd", big, class_="big") + below, class_="card")


def _whole(content: str) -> str:
    """Keep something on one line."""
    return tag("span", content, class_="whole")


def _lift_card(content: Content, panel: Panel, change: Difference) -> str:
    """The lift at one level, with where it comes from."""
    title = level_name(change.level)
    title = f"{title[0].upper()}{title[1:]}" + (", on average" if change.level == 1 else "")
    relative = all(math.isfinite(each) for each in change.relative)
    estimate, style = (change.relative, "lift") if relative else (change.absolute, "signed")
    old, new = (Of(panel.metric, change.level, m) for m in (content.baseline, content.headline))
    big = shown(estimate[0], new, "relative" if relative else "absolute", style)
    ends = f"{percent(content.confidence)} interval {_whole(interval(*estimate[1:], style))}"
    before, after = shown(change.baseline, old, "value"), shown(change.value, new, "value")
    return _card(title, big, ends, f"{escape(panel.metric)} {_whole(f'{before} → {after}')}")


def _users_card(content: Content, panel: Panel) -> str:
    gains, of = panel.gains[content.headline], Of(panel.metric, 1.0, content.headline)
    wins, ties, losses = (
        shown(getattr(gains, stat), of, stat, "count") for stat in ("wins", "ties", "losses")
    )
    big = f'{wins}<span class="vs"> : </span>{losses}'
    return _card("Users better : worse off", big, f"{ties} fare the same as with the baseline")


def _coverage_card(content: Content, panel: Panel) -> str:
    cutoff = panel.metric.rpartition("@")[2]
    key = f"coverage@{cutoff}"
    value = content.catalogue.get(content.headline, {}).get(key)
    if value is None or not math.isfinite(value):
        return ""
    before = content.catalogue.get(content.baseline or "", {}).get(key)
    was = f"; {percent(before)} with the baseline" if before is not None else ""
    big = shown(value, Of(key, None, content.headline), "catalogue", "percent")
    return _card("Items that anyone is shown", big, f"of the catalogue{was}")


def _alone(content: Content, panel: Panel) -> str:
    """A model that is compared with nothing."""
    model = content.headline
    tail, everybody = (panel.scores[model][level] for level in (content.level, 1.0))
    share = tail[0] / everybody[0] if everybody[0] > 0 else float("nan")
    low = shown(tail[0], Of(panel.metric, content.level, model), "value")
    mean = shown(everybody[0], Of(panel.metric, 1.0, model), "value")
    inside, around = (interval(*each[1:], "number") for each in (tail, everybody))
    sentence = (
        f"For the {level_name(content.level)} of its users, {name(model)} reaches a "
        f"{escape(panel.metric)} of {low} {inside}; the average is {mean} {around}."
    )
    confidence = percent(content.confidence)
    cards = [
        _card(
            level_name(content.level).capitalize(), low, f"{confidence} interval {_whole(inside)}"
        ),
        _card("All users, on average", mean, f"{confidence} interval {_whole(around)}"),
        _card("The worst-off reach", percent(share), "of the average user's score"),
        _coverage_card(content, panel),
    ]
    return tag("p", sentence, class_="sentence") + tag("dl", "".join(cards), class_="cards")
