"""`report`: the tail report, one self-contained HTML file."""

import base64
import gzip
import hashlib
import os
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from safecf.atomic import replace_file
from safecf.checks import check_type
from safecf.defaults import LEVEL
from safecf.evaluation.comparison import Comparison
from safecf.evaluation.json_records import to_json as to_values
from safecf.evaluation.result import Evaluation
from safecf.reporting.collect import collect
from safecf.reporting.content import Content, compact
from safecf.reporting.drawing.svg import marker_shapes
from safecf.reporting.markup import escape, tag, to_json
from safecf.reporting.sections import (
    curves,
    headline,
    reference,
    splits,
    tables,
    tuning_trials,
    user_groups,
    users,
)
from safecf.reporting.sections.elements import HIDDEN
from safecf.reporting.source import source

if TYPE_CHECKING:
    from safecf.tuning import Tuning

SECTIONS = {
    "verdict": ("Verdict", headline.verdict),
    "levels": ("Levels", curves.levels),
    "splits": ("Splits", splits.splits),
    "gains": ("Who gains", users.gains),
    "tail": ("Worst-off", users.tail),
    "groups": ("Groups", user_groups.groups),
    "losses": ("Losses", curves.losses),
    "tuning": ("Tuning", tuning_trials.tuning),
    "training": ("Training", curves.training),
    "numbers": ("Numbers", tables.numbers),
    "settings": ("Settings", reference.settings),
    "glossary": ("Glossary", reference.glossary),
}


def report(
    results: Comparison | Evaluation | Sequence[Evaluation],
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    metric: str | None = None,
    level: float = LEVEL,
    data_summary: Mapping[str, object] | str | None = None,
    settings: Mapping[str, object] | str | None = None,
    tuning: "Tuning | None" = None,
) -> Path:
    """Write one self-contained HTML page about the worst-off users.

    Parameters
    ----------
    results
        A comparison; or one evaluation; or several, which are compared with the first.
    path
        The file to write; it is replaced atomically.
    title
        The page's heading; the models' names by default.
    metric
        The metric that the page opens with; the first one by default. The reader can choose
        another.
    level
        The share of worst-off users that the verdict is about.
    data_summary
        A description of the data: a text, or names and values.
    settings
        Whatever else is needed to repeat the evaluation: a text, or names and values, of which
        "command" is shown as a command line. They follow the evaluations' own `settings`.
    tuning
        What `tune` returned, to show its trials; `results` are then its `evaluations`.

    Examples
    --------
    >>> report(compare([evaluate(ials, split), evaluate(safer2, split)]), "report.html")
    """
    check_type("path", path, (str, os.PathLike), "name the HTML file to write")
    if not os.fspath(path):
        raise ValueError("path is empty; name the HTML file to write")
    check_type("title", title, (str, type(None)), "give a text, or None")
    described = (Mapping, str, type(None))
    check_type("data_summary", data_summary, described, "give a text, or names and values")
    check_type("settings", settings, described, "give a text, or names and values")
    if tuning is not None and not hasattr(tuning, "searches"):
        raise TypeError(f"tuning is of type {type(tuning).__name__}; give what tune returns")
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; name the HTML file to write")
    found = source(results, metric, level)
    html = render(collect(found, title, data_summary, settings, tuning))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        reason = f"there is no folder {target.parent}, and it cannot be made: {problem.strerror}"
        raise OSError(problem.errno, reason, str(target)) from None
    replace_file(target, html.encode("utf-8"))
    return target


def render(content: Content) -> str:
    """Write the page."""
    parts = {key: write(content) for key, (_, write) in SECTIONS.items()}
    present = {key: SECTIONS[key][0] for key, part in parts.items() if part}
    save = tag("button", "Save the numbers (JSON)", id="save", type="button", class_="needs-script")
    footer = tag("footer", tag("span", "Made by safecf. This file needs no network.") + save)
    body = headline.header(content) + _bar(content, present)
    body += tag("main", "".join(parts.values())) + footer
    body, *hidden = body.split(HIDDEN)
    body += "".join(hidden[1::2])
    data = compact(to_values(content))
    others = {each: data["panels"].pop(each) for each in content.panels if each != content.metric}
    static = files("safecf.reporting") / "static"
    script = (static / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Template((static / "page.html").read_text(encoding="utf-8")).substitute(
        title=escape(content.title),
        script_hash=f"sha256-{digest}",
        style=(static / "page.css").read_text(encoding="utf-8"),
        shapes=marker_shapes(),
        body=body,
        data=to_json(data),
        more=pack({"html": hidden[::2], "panels": others}),
        script=script,
    )


def pack(value: object) -> str:
    """Return compressed JSON, for the metrics that the page shows only on demand."""
    return base64.b64encode(gzip.compress(to_json(value).encode(), mtime=0)).decode()


def _bar(content: Content, present: Mapping[str, str]) -> str:
    """The links to the sections, and the choice of the metric."""
    links = "".join(tag("li", tag("a", text, href=f"#{key}")) for key, text in present.items())
    inside = tag("nav", tag("ul", links), aria_label="Sections")
    if len(content.panels) > 1:
        options = "".join(
            f'<option value="{escape(each)}"{" selected" if each == content.metric else ""}>'
            f"{escape(each)}</option>"
            for each in content.panels
        )
        choice = tag("select", options, id="metric", autocomplete="off")
        inside += tag("label", f"<span>Metric</span>{choice}", class_="needs-script")
    return tag("div", tag("div", inside), class_="top-bar")
