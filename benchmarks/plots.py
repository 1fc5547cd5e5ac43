"""Curves on logarithmic axes, in the style of all figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.records import progress


@dataclass(frozen=True)
class Panel:
    """One pair of logarithmic axes with its curves, each a list of x and one of y."""

    x: str
    y: str
    curves: dict[str, tuple[Sequence[float], Sequence[float]]]
    ticks: Sequence[float] | None = None
    target: float | None = None


def draw(folder: Path, name: str, panels: list[Panel]) -> str:
    """Draw the panels side by side, with one legend; return the name of the SVG file.

    Without matplotlib nothing is drawn: a page can be written again where there is one.
    """
    if find_spec("matplotlib") is None:
        progress(f"no {name}.svg: there is no matplotlib")
        return f"{name}.svg"
    from reproduction import figures  # noqa: PLC0415 - needs matplotlib

    with figures.style():
        figure, axes = figures.panels(len(panels), columns=len(panels), height=2.8)
        if len(panels) == 1:
            figure.set_size_inches(6.0, 4.2)
        for place, panel in zip(axes, panels, strict=True):
            _panel(place, panel, figures.line_style)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
        folder.mkdir(parents=True, exist_ok=True)
        return figures.save(figure, folder / name).name


def _panel(axes: Any, panel: Panel, line_style: Any) -> None:
    from matplotlib import ticker  # noqa: PLC0415

    for place, (name, (x, y)) in enumerate(panel.curves.items()):
        every = max(1, len(x) // 12)
        axes.plot(x, y, label=name, markevery=every, **line_style(place)._asdict())
    axes.set_xscale("log")
    axes.set_yscale("log")
    if panel.target is not None:
        axes.axhline(panel.target, color="black", linewidth=0.8)
    else:  # what hardly changes shall look so
        low, high = axes.get_ylim()
        axes.set_ylim(low / 1.5, high * 1.5)
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(ticker.NullFormatter())
    if panel.ticks is not None:
        axes.set_xticks(panel.ticks, [f"{round(tick, 1):g}" for tick in panel.ticks])
        axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        axes.tick_params(axis="x", labelrotation=45 if len(panel.ticks) > 5 else 0)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
