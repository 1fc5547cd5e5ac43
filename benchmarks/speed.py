"""The pages of speed on the CPU and on a GPU: their parts and figures."""

from typing import Any, NamedTuple

from benchmarks.harness import Part, Row, benchmark
from reproduction.experiment import Tables

Curve = list[tuple[float, float]]  # x and y
FLOOR = "floor, one step of CG"


class Panel(NamedTuple):
    """One pair of logarithmic axes with its curves."""

    x: str
    y: str
    curves: dict[str, Curve]
    target: float | None = None
    ticks: bool = True  # at every x, since there are few


def draw(panels: list[Panel]) -> Any:
    """Draw the panels side by side, with one legend."""
    from matplotlib import ticker  # noqa: PLC0415 - measuring works without it

    from reproduction import figures  # noqa: PLC0415

    figure, axes = figures.panels(len(panels), columns=len(panels), height=2.8)
    if len(panels) == 1:
        figure.set_size_inches(6.0, 4.2)
    for place, panel in zip(axes, panels, strict=True):
        for at, (name, points) in enumerate(panel.curves.items()):
            style = figures.line_style(at)._asdict()
            style["markevery"] = max(1, len(points) // 12)
            place.plot(*zip(*points, strict=True), label=name, **style)
        place.set(xscale="log", yscale="log", xlabel=panel.x, ylabel=panel.y)
        if panel.target is not None:
            place.axhline(panel.target, color="black", linewidth=0.8)
        else:  # what hardly changes shall look so
            low, high = place.get_ylim()
            place.set_ylim(low / 1.5, high * 1.5)
            place.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
            place.yaxis.set_major_formatter("{x:g}")
            place.yaxis.set_minor_formatter(ticker.NullFormatter())
        if panel.ticks:
            ticks = sorted({x for points in panel.curves.values() for x, _ in points})
            place.set_xticks(ticks, [f"{round(tick, 1):g}" for tick in ticks])
            place.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
            place.tick_params(axis="x", labelrotation=45 if len(ticks) > 5 else 0)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def draw_threads(tables: Tables) -> Any:
    """Draw seconds per epoch against threads, with the floor and ideal scaling."""
    cases = [row for row in tables.get("threads.cases", []) if "seconds" in row]
    panels = []
    for shape, d in dict.fromkeys((row["shape"], row["factors"]) for row in cases):
        own = [row for row in cases if (row["shape"], row["factors"]) == (shape, d)]
        first = own[0]["seconds"] * own[0]["threads"]
        curves = _curves("threads", own, {"safecf SAFER2": "seconds", FLOOR: "floor"})
        curves["ideal"] = [(row["threads"], first / row["threads"]) for row in own]
        if len(own) > 1:
            panels.append(Panel(f"threads ({shape}, d = {d})", "seconds per epoch", curves))
    return draw(panels) if panels else None


AXES = {"factors": "factors d", "interactions": "interactions, millions", "threads": "threads"}


def _by_axis(tables: Tables) -> dict[str, list[Row]]:
    """Return the cases of growth along each axis; that of the usual size is on all of them."""
    cases = [row for row in tables.get("growth.cases", []) if "seconds" in row]
    found: dict[str, list[Row]] = {}
    for axis in AXES if cases else ():
        [setting] = tables["growth.setting"]
        others = [name for name in AXES if name != axis]
        own = [row for row in cases if all(row[name] == setting[name] for name in others)]
        found[axis] = sorted(own, key=lambda row: float(row[axis]))
    return found


def _curves(axis: str, rows: list[Row], keys: dict[str, str], unit: float = 1) -> dict[str, Curve]:
    scale = 1e6 if axis == "interactions" else 1
    return {
        name: [(row[axis] / scale, row[key] / unit) for row in rows] for name, key in keys.items()
    }


def draw_growth(tables: Tables) -> Any:
    """Draw seconds per epoch against d, interactions and threads, with the floor."""
    keys = {"safecf SAFER2": "seconds", FLOOR: "floor"}
    panels = [
        Panel(AXES[axis], "seconds per epoch", _curves(axis, rows, keys))
        for axis, rows in _by_axis(tables).items()
    ]
    return draw(panels) if panels else None


def draw_memory(tables: Tables) -> Any:
    """Draw the peak of memory against d and interactions, with the formula."""
    keys = {"measured": "rise", "formula": "formula"}
    panels = [
        Panel(AXES[axis], "peak of training, MiB", _curves(axis, rows, keys, 2**20))
        for axis, rows in _by_axis(tables).items()
        if axis != "threads"
    ]
    return draw(panels) if panels else None


def draw_quality(tables: Tables) -> Any:
    """Draw the objective above its converged value by seconds."""
    curves: dict[str, Curve] = {}
    for row in tables.get("quality.curves", []):
        curves.setdefault(row["name"], []).append((row["seconds"], row["gap"]))
    if not curves:
        return None
    label = "gap to the converged objective, relative"
    [setting] = tables["quality.setting"]
    return draw([Panel("seconds", label, curves, target=setting["within"], ticks=False)])


def draw_solvers(tables: Tables) -> Any:
    """Draw the seconds by solver and number of factors."""
    curves: dict[str, Curve] = {}
    for row in tables["solvers"]:
        curves.setdefault(row["solver"], []).append((row["factors"], row["seconds"]))
    return draw([Panel("factors d", "seconds per epoch", curves)])


CPU = benchmark(
    "cpu",
    "Speed on the CPU",
    {
        "ml-20m": Part("One epoch, ML-20M shape", "epochs:beside_peers", shape="ml-20m"),
        "msd": Part("One epoch, MSD shape", "epochs:beside_peers", shape="msd"),
        "threads": Part("Threads", "growth:by_threads"),
        "eigen": Part("Eigenvectors", "eigen:measure"),
        "growth": Part("Growth", "growth:of_training"),
        "topk": Part("Top-k", "topk:on_host"),
        "quality": Part("Time to quality", "quality:measure"),
        "precision": Part("Precision and ranking", "precision:measure"),
    },
    figures={
        "-threads": draw_threads,
        "-growth": draw_growth,
        "-memory": draw_memory,
        "-quality": draw_quality,
    },
    repeats=3,
    beside=("implicit", "irspack"),
)
GPU = benchmark(
    "gpu",
    "Speed on a GPU",
    {
        "ml-20m": Part("One epoch, ML-20M shape", "epochs:on_device", shape="ml-20m"),
        "msd": Part("One epoch, MSD shape", "epochs:on_device", shape="msd"),
        "run": Part("A whole fit", "epochs:fit_on_device"),
        "topk": Part("Top-k", "topk:on_device"),
        "agreement": Part("Agreement with the float64 twin", ""),
        "precision": Part("Precision and ranking", "precision:measure", device=True),
    },
    repeats=10,
    threads=0,
    beside=("triton",),
    on_device=True,
)
SOLVERS = benchmark(
    "solvers", "Solvers of SAFER2", Part("", "growth:by_solver"), figures={"": draw_solvers}
)
