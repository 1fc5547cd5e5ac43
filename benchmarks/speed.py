"""The figures of speed on the CPU and of solvers."""

from typing import Any

from reproduction.experiment import Tables, grouped
from reproduction.figures import Panel, curves, lines_of

KEYS = {"safecf SAFER2": "seconds", "floor, one step of CG": "floor"}  # by the name of the curve
SECONDS = "seconds per epoch"
# What training grows with, in the units of the figure.
AXES = {
    "factors": ("factors d", 1),
    "interactions": ("interactions, millions", 1e6),
    "threads": ("threads", 1),
}


def draw(panels: list[Panel], target: float | None = None) -> Any:
    """Draw curves side by side on logarithmic axes, with one legend; None if there are none.

    With a target there are many points, and without one a few, each with its tick.
    """
    from matplotlib import ticker  # noqa: PLC0415 - measuring works without it

    panels = [panel for panel in panels if panel.curves]
    if not panels:
        return None
    figure, axes = curves(panels, legend=2, columns=len(panels), height=2.8)
    if len(panels) == 1:
        figure.set_size_inches(6.0, 4.2)
    for place, panel in zip(axes, panels, strict=True):
        place.set(xscale="log", yscale="log")
        for line in place.lines:
            line.set_markevery(max(1, len(line.get_xdata()) // 12))
        if target is not None:
            place.axhline(target, color="black", linewidth=0.8)
            continue
        low, high = place.get_ylim()
        place.set_ylim(low / 1.5, high * 1.5)  # what hardly changes shall look so
        place.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        place.yaxis.set_major_formatter("{x:g}")
        place.yaxis.set_minor_formatter(ticker.NullFormatter())
        ticks = sorted({x for points, _ in panel.curves.values() for x in points})
        place.set_xticks(ticks, [f"{round(tick, 1):g}" for tick in ticks])
        place.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        place.tick_params(axis="x", labelrotation=45 if len(ticks) > 5 else 0)
    return figure


def draw_threads(tables: Tables) -> Any:
    """Draw seconds per epoch against threads, with the floor and ideal scaling."""
    cases = [row for row in tables.get("threads.cases", []) if "seconds" in row]
    panels = []
    for (shape, d), own in grouped(cases, "shape", "factors").items():
        threads = [row["threads"] for row in own]
        found = {name: (threads, [row[key] for row in own]) for name, key in KEYS.items()}
        first = own[0]["seconds"] * own[0]["threads"]
        found["ideal"] = (threads, [first / count for count in threads])
        if len(own) > 1:
            panels.append(Panel(f"threads ({shape}, d = {d})", SECONDS, found))
    return draw(panels)


def draw_growth(tables: Tables, axes: list[str], y: str, keys: dict[str, str], unit: int) -> Any:
    """Draw a panel for each axis; the case of the usual size is on all of them.

    `keys` are what the rows have, by the name of the curve.
    """
    cases = [row for row in tables.get("growth.cases", []) if "seconds" in row]
    panels = []
    for axis in axes if cases else ():
        [setting] = tables["growth.setting"]
        others = [name for name in AXES if name != axis]
        own = [row for row in cases if all(row[name] == setting[name] for name in others)]
        own.sort(key=lambda row: float(row[axis]))
        label, scale = AXES[axis]
        x = [row[axis] / scale for row in own]
        found = {name: (x, [row[key] / unit for row in own]) for name, key in keys.items()}
        panels.append(Panel(label, y, found))
    return draw(panels)


def draw_lines(
    tables: Tables, table: str, columns: list[str], labels: list[str], **how: Any
) -> Any:
    """Draw a curve for each name in a table; `columns` are those of the name, of x and of y."""
    return draw([Panel(*labels, lines_of(tables.get(table, []), *columns))], **how)
