"""What commands print: texts from outside as they are, without markup and control characters."""

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from safecf.texts import visible

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
