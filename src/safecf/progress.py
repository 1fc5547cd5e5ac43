"""Progress bars on stderr; errors in drawing them never stop the work."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib.util import find_spec
from typing import Any, Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

SECONDS_BETWEEN_DRAWINGS = 0.1
SECONDS_BETWEEN_LINES = 60.0  # where there is no terminal

EPOCHS = (
    TextColumn("{task.completed:.0f}/{task.total:.0f}"),
    TextColumn("{task.fields[numbers]}"),
    TimeRemainingColumn(elapsed_when_finished=True),
)


class Draw(Protocol):
    """Updates a progress bar."""

    def __call__(self, done: int, **fields: Any) -> None:
        """Show the amount done, and new values for the fields of the columns."""


class QuietlyBroken(Console):
    """A console that goes quiet on a broken pipe, where rich's own ends the process."""

    def on_broken_pipe(self) -> None:
        """Stop writing."""
        self.quiet = True


@contextmanager
def progress_bar(
    title: str, done: int, total: int | None, *columns: ProgressColumn, show: bool, **fields: Any
) -> Iterator[Draw]:
    """Show a title, a bar and the `columns`; `fields` are the first values of their fields.

    The bar is drawn in the caller's thread, when it is updated; in a file or a pipe, it is one line
    per minute. If stderr is closed or missing, nothing is drawn.
    """
    if not show:
        yield lambda done, **fields: None
        return
    # In a notebook without ipywidgets, rich warns and draws nothing; then draw plain text.
    console = QuietlyBroken(stderr=True, force_jupyter=None if find_spec("ipywidgets") else False)
    heading = TextColumn("{task.description}"), BarColumn(bar_width=20)
    bar = Progress(*heading, *columns, console=console, auto_refresh=False)
    task = bar.add_task(title, completed=done, total=total, **fields)
    lines = not (console.is_terminal or console.is_jupyter)
    drawn = time.monotonic() if lines else 0.0

    def draw(done: int, **fields: Any) -> None:
        nonlocal drawn
        bar.update(task, completed=done, **fields)
        now = time.monotonic()
        if now - drawn >= (SECONDS_BETWEEN_LINES if lines else SECONDS_BETWEEN_DRAWINGS):
            with suppress(OSError, ValueError):
                console.print(bar) if lines else bar.refresh()
            drawn = now

    with suppress(OSError, ValueError):
        bar.start()
    try:
        yield draw
    finally:
        with suppress(OSError, ValueError):
            bar.stop()


def epoch_bar(title: str, done: int, total: int, *, show: bool) -> AbstractContextManager[Draw]:
    """Show a training: epochs done of all, the field `numbers`, and how long it still takes."""
    return progress_bar(title, done, total, *EPOCHS, show=show, numbers="")
