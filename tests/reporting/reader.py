"""A reader of the page that needs no browser."""

import base64
import gzip
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from safecf import report

MINUS, SPACE = "\u2212", "\u00a0"
VOID = {"meta", "br", "img", "input", "link"}
Attributes = dict[str, str | None]


class Reader(HTMLParser):
    """Checks that elements nest, and collects numbers, identifiers, links and texts.

    The compressed metrics are read as well. `shown` is the text that is visible at first, `text`
    that of all metrics.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.stack: list[tuple[str, Attributes]] = []
        self.elements: list[tuple[str, Attributes]] = []
        self.numbers: list[tuple[Attributes, str]] = []
        self.words: list[str] = []
        self.payload: Any = None
        self._more: Any = None
        self.feed(page)
        self.shown = plain("".join(self.words))
        hidden = [a for _, a in self.elements if a.get("class") == "panel" and "hidden" in a]
        for around, part in zip(hidden, self._more["html"], strict=True):
            self.stack.append(("div", around))
            self.feed(part)
            self.stack.pop()
        self.close()
        self.payload["panels"] |= self._more["panels"]
        assert self.stack == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append((tag, dict(attrs)))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        tag, attributes = self.stack[-1] if self.stack else ("", {})
        if tag == "data":
            around: Attributes = {}
            for _, each in self.stack:
                around |= each
            self.numbers.append((around, data))
        if tag == "script":
            if attributes.get("id") == "data":
                self.payload = json.loads(data)
            elif attributes.get("id") == "more":
                self._more = json.loads(gzip.decompress(base64.b64decode(data)))
        elif tag != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return plain("".join(self.words))


def plain(text: str) -> str:
    """Undo the typesetting, so that sentences can be searched."""
    return text.replace(SPACE, " ").replace(MINUS, "-")


def read(results: Any, folder: Path, **options: Any) -> Reader:
    """Write a report and read it."""
    return Reader(report(results, folder / "report.html", **options).read_text(encoding="utf-8"))
