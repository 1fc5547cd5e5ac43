"""The progress bar of training: on stderr, and never a reason for training to fail."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from safecf.als.loop import Epoch

SECONDS_BETWEEN_DRAWINGS = 0.1


class QuietlyBroken(Console):
    """A console that falls silent when nobody reads it any more; rich's own ends the process."""

    def on_broken_pipe(self) -> None:
        """Write nothing from here on."""
        self.quiet = True


@contextmanager
def progress_bar(
    title: str, done: int, total: int, *, show: bool
) -> Iterator[Callable[[Epoch], None]]:
    """Yield what is to be called with every epoch's record.

    The bar is drawn by the caller's thread alone, between epochs. A stderr that is closed or
    missing only ends the drawing.
    """
    if not show:
        yield lambda record: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TextColumn("{task.fields[numbers]}"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    # Without ipywidgets, rich draws nothing in a notebook and warns; as plain text it does better.
    console = QuietlyBroken(stderr=True, force_jupyter=None if find_spec("ipywidgets") else False)
    bar = Progress(*columns, console=console, auto_refresh=False)
    task = bar.add_task(title, completed=done, total=total, numbers="")
    drawn = 0.0

    def draw(record: Epoch) -> None:
        nonlocal drawn
        numbers = f"objective {record.objective:.4g}  CVaR {record.cvar:.4g}"
        bar.update(task, completed=record.epoch, numbers=numbers)
        now = time.monotonic()
        if now - drawn >= SECONDS_BETWEEN_DRAWINGS:
            with suppress(OSError, ValueError):
                bar.refresh()
            drawn = now

    with suppress(OSError, ValueError):
        bar.start()
    try:
        yield draw
    finally:
        with suppress(OSError, ValueError):
            bar.stop()
