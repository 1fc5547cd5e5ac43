"""A reader of the page that needs no browser."""

import json
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "br", "img", "input", "link"}


class Reader(HTMLParser):
    """Checks that elements nest, and collects numbers, identifiers, links and texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.numbers: list[tuple[dict[str, str | None], str]] = []
        self.hidden: list[str] = []
        self.words: list[str] = []
        self.payload: Any = None
        self.feed(page)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        tag = self.stack[-1] if self.stack else ""
        if tag == "data":
            self.numbers.append((self.elements[-1][1], data))
        if tag == "script" and self.elements[-1][1].get("id") == "data":
            self.payload = json.loads(data)
        elif tag not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)
