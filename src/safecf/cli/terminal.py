"""What commands print: texts from outside as they are, without markup and control characters."""

import json
import math
import sys
import textwrap
from collections.abc import Mapping
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from safecf.texts import UNSAFE, visible

NAME, NUMBER = 12, 8  # least widths of a column with names, and of one with numbers


class Plain(Console):
    """A console that prints every text as it is, line by line: no markup, no emoji codes.

    Control characters and line breaks inside a text are shown as escapes.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text to print."""
        return super().render_str(visible(text), **options)

    def line_of(self, text: str) -> None:
        """Print one line, however long; paths in it can be copied."""
        self.print(text, soft_wrap=True)


class Rows(Table):
    """A table whose names are folded, never cut off, so that they stay distinct.

    Where the terminal is too narrow, lines become longer than it.
    """

    def __init__(self, title: str, names: list[str], numbers: list[str]) -> None:
        super().__init__(title=title)
        for heading in names:
            self.add_column(heading, overflow="fold", min_width=NAME)
        for heading in numbers:
            self.add_column(heading, overflow="fold", min_width=NUMBER, justify="right")

    def show(self, console: Console) -> None:
        """Print the table."""
        console.print(self, crop=False)


def print_json(record: Any) -> None:
    """Print one JSON document on one line; NaN and infinity are null.

    Characters that a terminal acts on are escaped, and all others than ASCII where the encoding of
    standard output lacks one of them.
    """
    ascii_only = json.dumps(_finite(record), allow_nan=False, default=str)
    text = json.dumps(_finite(record), allow_nan=False, default=str, ensure_ascii=False)
    text = UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = ascii_only
    typer.echo(text)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_facts(console: Plain, facts: Mapping[str, object]) -> None:
    """Print names and values, one per line, the values below each other; long ones are wrapped."""
    width = max(map(len, facts), default=0) + 2
    for name, value in facts.items():
        room = max(NAME, console.width - width)
        lines = textwrap.wrap(visible(value), room, break_on_hyphens=False) or [""]
        for heading, line in zip([name, *[""] * len(lines)], lines, strict=False):
            console.line_of(f"{heading:<{width}}{line}")


def seconds_text(seconds: float) -> str:
    """Return a duration as it is said.

    >>> seconds_text(0.42), seconds_text(8.3), seconds_text(754)
    ('0.42 s', '8.3 s', '12 min 34 s')
    """
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 1 else f"{seconds:.1f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def bytes_text(size: float) -> str:
    """Return a size as it is said.

    >>> bytes_text(512), bytes_text(14_200_000)
    ('512 bytes', '14.2 MB')
    """
    for unit, bytes_per_unit in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= bytes_per_unit:
            return f"{size / bytes_per_unit:,.1f} {unit}"
    return f"{size:.0f} bytes"
