"""Plots that can be read in grey: a marker and a line style for every series."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STYLES = ["o-", "s--", "^-.", "D:", "v-", "P--", "X-.", "*:", "<-"]


@dataclass(frozen=True)
class Panel:
    """One pair of logarithmic axes with its curves, each a list of x and one of y."""

    x: str
    y: str
    curves: dict[str, tuple[Sequence[float], Sequence[float]]]
    ticks: Sequence[float] | None = None
    target: float | None = None


def draw(file: Path, panels: list[Panel]) -> str:
    """Draw the panels side by side; return the name of the file."""
    import matplotlib as mpl  # noqa: PLC0415 - only in the benchmarks' environment

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    plt.rcParams["svg.hashsalt"] = "safecf"
    size = (7.0 if len(panels) == 1 else 4.6 * len(panels), 4.5)
    figure, axes = plt.subplots(1, len(panels), figsize=size, layout="constrained", squeeze=False)
    for place, panel in zip(axes[0], panels, strict=True):
        _panel(place, panel)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
    return file.name


def _panel(axes: Any, panel: Panel) -> None:
    for (name, (x, y)), style in zip(panel.curves.items(), STYLES, strict=False):
        every = max(1, len(x) // 12)
        axes.plot(x, y, style, label=name, markersize=4, linewidth=1.3, markevery=every)
    if panel.target is not None:
        axes.axhline(panel.target, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    if panel.ticks is not None:
        axes.set_xticks(panel.ticks, [f"{tick:.4g}" for tick in panel.ticks])
        axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
