"""The sections that explain: what it takes to get the numbers again, and the glossary."""

import keyword
from collections.abc import Mapping

from safecf.reporting.content import Content, Run
from safecf.reporting.figures import scrolling, section
from safecf.reporting.glossary import TERMS, explain
from safecf.reporting.text import escape, percent, tag

COMMAND = "command"  # the setting that is a command line
EXAMPLE = 0.3  # the share that explains what a tail is, on a page that is about all users


def settings(content: Content) -> str:
    """What it takes to get these numbers again."""
    given = dict(content.settings)
    command = given.pop(COMMAND, None)
    data = {**content.data, **given}
    if content.fingerprint:
        data["fingerprint of the test users"] = content.fingerprint
    calls = "\n".join(call(run) for run in content.runs if _named(run.kind))
    parts = [
        _code("Command", command),
        _code("Models", calls),
        tag("div", _pairs("Data", data) + _pairs("Versions", content.versions), class_="pair"),
    ]
    lede = "The data, the settings of each model, and the versions of what ran."
    return section("settings", "To repeat it", lede, "".join(parts))


def call(run: Run) -> str:
    """Write the line of Python that makes the model, below its name."""
    given = ", ".join(f"{key}={_value(value)}" for key, value in run.params.items() if _named(key))
    return f"# {' '.join(run.model.split())}\n{run.kind}({given})"


def _named(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _value(value: object) -> str:
    """Write an option; JSON has no infinity, so that it comes as a text."""
    return f'float("{value}")' if value in ("inf", "-inf", "nan") else repr(value)


def _code(title: str, text: str | None) -> str:
    return tag("h3", title) + tag("pre", escape(text)) if text else ""


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
    level = content.level if content.level < 1 else EXAMPLE
    words = {"{level}": percent(level), "{confidence}": percent(content.confidence)}
    terms = []
    for pair in [*explain(list(content.panels)), *TERMS.items()]:
        written = [escape(part) for part in pair]
        for mark, word in words.items():
            written = [part.replace(mark, word) for part in written]
        terms.append(written)
    items = "".join(tag("div", tag("dt", term) + tag("dd", text)) for term, text in terms)
    return section("glossary", "In plain words", "", tag("dl", items, class_="glossary"))
