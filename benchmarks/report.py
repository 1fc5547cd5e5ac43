"""Pages of the benchmarks, under docs/results/."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safecf.experiments import page
from safecf.experiments.page import table

__all__ = ["table", "write"]

ROOT = Path(__file__).resolve().parents[1]


def write(
    name: str,
    title: str,
    *blocks: str,
    figure: Callable[[], Any] | None = None,
    caption: str = "",
) -> Path:
    """Write a page that says how it was made, and its figure, if there is one."""
    made = page.origin(f"python -m benchmarks {' '.join(sys.argv[1:])}", ROOT)
    shown = page.Page(blocks, figure=figure, caption=caption)
    folder = ROOT / "docs" / "results"
    page.write(folder, name, title, made, shown)
    return folder / f"{name}.md"
