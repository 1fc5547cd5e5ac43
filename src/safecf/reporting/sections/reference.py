"""The reference sections: what is needed to repeat the evaluation, and the glossary."""

import keyword
from collections.abc import Mapping

from safecf.defaults import LEVEL
from safecf.reporting.content import Content, Run
from safecf.reporting.markup import escape, escape_lines, percent, tag
from safecf.reporting.sections.elements import scrolling, section

COMMAND = "command"  # the setting that is a command line

METRICS = {
    "recall": "Of the items that a user went on to like, the share that is among the first {k} "
    "recommendations; of {k}, if there are more, so that 1 can be reached.",
    "ndcg": "Like recall, but a hit counts more the higher it is ranked among the first {k} "
    "recommendations. 1 is a perfect order.",
    "precision": "Of the first {k} recommendations, the share that the user went on to like.",
    "map": "Average precision: the share of hits down to each hit in the list of {k}, averaged. 1 "
    "is a perfect list.",
    "mrr": "One divided by the rank of the first hit among {k}: 1 for the first place, 0.5 for "
    "the second, 0 without a hit.",
    "hit": "1 if at least one of the first {k} recommendations is right, else 0.",
}
WHOLE_RANKING = {
    "ndcg": "Over the whole ranking: every item that the user went on to like counts, and the more "
    "the higher it is ranked. 1 is a perfect order.",
    "auc": "How often an item that the user went on to like is ranked above one that they did not: "
    "0.5 is chance, 1 is perfect. Counted over the whole ranking.",
    "log_rank": "How high the items are ranked that the user went on to like, on a logarithmic "
    "scale over the whole ranking: 1 if they come first, 0 if they come last.",
}

TERMS = {
    "Worst-off {level}": "The {level} of the users with the lowest scores, by each model's own "
    "scores: two models may leave different people behind. The number is their mean score.",
    "Lift": "How much higher the mean is than the baseline's, in percent of the baseline's.",
    "Interval": "The users are drawn again at random, many times; in {confidence} of the draws "
    "the number lies in this range. If the interval of a difference includes zero, the difference "
    "may be chance. It leaves out the randomness of training, which other seeds would show.",
    "Baseline": "The model that the others are compared with, user by user.",
    "Loss": "What a model minimises in training: how far its scores are from what the user did. "
    "Low is good, the opposite of the metrics.",
    "Weight in training": "How much a user counts in training, where 1 is the average. Safe "
    "training gives more weight to users with high losses.",
    "VaR and CVaR": "Value at risk: the loss at which the worst-off {level} begin. Conditional "
    "value at risk: the mean loss of those users. Those of the held-out users differ from those of "
    "the training users.",
    "Coverage and Gini": "Coverage is the share of all items that is recommended to at least one "
    "user. Gini is 0 if all items are recommended equally often, and near 1 if only a few are.",
    "p": "How likely a difference at least this clear is if neither model is better.",
}


def settings(content: Content) -> str:
    """What is needed to repeat the evaluation."""
    given = dict(content.settings)
    command = given.pop(COMMAND, None)
    data = {**content.data, **given}
    if content.fingerprint:
        data["fingerprint of the test users"] = content.fingerprint
    calls = "\n".join(_call(run) for run in content.runs if _named(run.kind))
    parts = [
        _code("Command", command),
        _code("Models", calls),
        tag("div", _pairs("Data", data) + _pairs("Versions", content.versions), class_="pair"),
    ]
    lede = "The command, the options of each model, the data and the versions of the software."
    return section("settings", "How to repeat this", lede, "".join(parts))


def _call(run: Run) -> str:
    """Write the model as a line of Python, below its name."""
    given = ", ".join(f"{key}={_value(value)}" for key, value in run.params.items() if _named(key))
    lines = [f"# {' '.join(run.model.split())}", f"{run.kind}({given})"]
    if run.resolved:
        known = ", ".join(f"{key} = {value}" for key, value in run.resolved.items())
        lines.append(f"# in this training: {known}")
    return "\n".join(lines)


def _named(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _value(value: object) -> str:
    """Write an option; an infinite one comes as a string, because JSON has no infinity."""
    return f'float("{value}")' if value in ("inf", "-inf", "nan") else repr(value)


def _code(title: str, text: str | None) -> str:
    return tag("h3", title) + tag("pre", escape_lines(text)) if text else ""


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
    """The terms of the page, explained."""
    level = content.level if content.level < 1 else LEVEL
    words = {"{level}": percent(level), "{confidence}": percent(content.confidence)}
    terms = []
    for pair in [*_explained(list(content.panels)), *TERMS.items()]:
        written = [escape(part) for part in pair]
        for mark, word in words.items():
            written = [part.replace(mark, word) for part in written]
        terms.append(written)
    items = "".join(tag("div", tag("dt", term) + tag("dd", text)) for term, text in terms)
    return section("glossary", "In plain words", "", tag("dl", items, class_="glossary"))


def _explained(metrics: list[str]) -> list[tuple[str, str]]:
    """Return each metric on the page, at its first cutoff, with its explanation."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for metric in metrics:
        kind, sign, cutoff = metric.partition("@")
        known = METRICS if sign else WHOLE_RANKING
        if kind in known and (kind, sign) not in found:
            found[kind, sign] = (metric, known[kind].replace("{k}", cutoff))
    return list(found.values())
