"""Pages of the benchmarks, under docs/results/."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reproduction import page
from reproduction.page import RESULTS, ROOT, commit, machine, table

__all__ = ["RESULTS", "command", "commit", "machine", "met", "short", "table", "write"]


def command() -> str:
    """Name the command that is running, as in `python -m benchmarks cpu`."""
    file = Path(sys.argv[0]).resolve()
    inside = file.relative_to(ROOT) if file.is_relative_to(ROOT) else Path(file.name)
    name = ".".join(part for part in inside.with_suffix("").parts if part != "__main__")
    return " ".join(("python -m", name, *sys.argv[1:]))


def short(value: float) -> str:
    """Write a number with three digits, or all of those before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def met(seconds: float, goal: float) -> str:
    """Say whether a measurement reaches its goal.

    >>> met(15.6e-3, goal=15e-3)
    'not met'
    """
    return "met" if seconds <= goal else "not met"


def write(
    name: str,
    title: str,
    *blocks: str,
    figure: Callable[[], Any] | None = None,
    caption: str = "",
) -> Path:
    """Write a page that says how it was made, and its figure, if there is one."""
    shown = page.Page(blocks, figure=figure, caption=caption)
    page.write(RESULTS, name, title, page.origin_text(command()), shown)
    return RESULTS / f"{name}.md"
