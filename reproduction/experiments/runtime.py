"""`runtime`: seconds per epoch of every model, with the paper's solvers and with the library's."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from reproduction import presets, published
from reproduction.experiment import Case, Options, Result, Row, Tables
from reproduction.experiments import declared
from reproduction.experiments.convergence import NAMES, course_cases, shape_of

TIMED = {"ml-20m": 5, "msd": 2}  # epochs after the first; other data as msd
BLOCK = 128
BLOCKS, SPECTRAL = f"blocks of {BLOCK}", "spectral CG"
THEIRS = ("exact", "one step of Adam", "Adam, by batches")  # the solvers of the paper's table
# Label and grey of each step.
STEPS = {
    "quantile": (r"$\xi$ and weights", "#000000"),
    "losses": ("losses", "#444444"),
    "rotate": ("rotations", "#777777"),
    "users": ("users", "#AAAAAA"),
    "items": ("items", "#E5E5E5"),
    "training": ("batches", "#FFFFFF"),
}
# By data set: models of which only the first epoch is timed, since it takes a minute.
SLOW = {"ml-20m": ("Mult-VAE",), "msd": ("iALS, exact", "SAFER2, exact", "iALS++", "SAFER2++")}
# By data set: models that are left out, since they take too long.
LEFT_OUT = {"msd": ("ERM-MF, exact", "Mult-VAE")}


def cases(options: Options) -> list[Case]:
    """Return every model with each of its solvers; users are not scored."""
    shape = shape_of(options.data)
    ials, erm, cvar, safer2 = presets.require(shape, "paper", NAMES, options.presets)
    vae = presets.load(shape, "paper", options.presets).get("Mult-VAE")
    planned = [
        ("iALS", THEIRS[0], presets.exact(ials)),
        ("iALS", SPECTRAL, ials),
        ("iALS++", BLOCKS, presets.blockwise(ials, BLOCK)),
        ("ERM-MF", THEIRS[0], presets.exact(erm)),
        ("ERM-MF", SPECTRAL, erm),
        ("CVaR-MF", THEIRS[1], presets.adam(cvar)),
        ("SAFER2", THEIRS[0], presets.exact(safer2)),
        ("SAFER2", SPECTRAL, safer2),
        ("SAFER2-CG", "CG, 5 steps", presets.cg(safer2)),
        ("SAFER2++", BLOCKS, presets.blockwise(safer2, BLOCK)),
        *([("Mult-VAE", THEIRS[2], vae)] if vae else []),
    ]
    found = []
    for name, solver, preset in planned:
        if preset.name not in LEFT_OUT.get(shape, ()):
            slow = preset.name in SLOW.get(shape, ())
            count = 1 if slow else 1 + TIMED.get(shape, TIMED["msd"])
            chosen = presets.changed(preset, iterations=count)
            found += course_cases((name, solver, int(not slow)), chosen, options, 1, scored=False)
    return found


def tables(results: list[Result], options: Options) -> Tables:
    """Return the seconds of each step and epoch, and their medians beside those of the paper."""
    numbers = []
    for each in results:
        name, solver, first = each.label
        rows = each.record["rows"]
        for step in rows[0]["seconds"]:
            for epoch, row in enumerate(rows, 1):
                about = {"model": name, "solver": solver, "epoch": epoch, "step": step}
                seconds = {"seconds": round(row["seconds"][step], 5), "counts": epoch > first}
                numbers.append(about | seconds)
    factors = results[0].settings["options"]["factors"]
    shape = shape_of(options.data)
    facts = {"factors": factors, "epochs": TIMED.get(shape, TIMED["msd"])}
    return {"numbers": numbers, "models": medians(numbers, shape), "facts": [facts]}


def medians(numbers: Sequence[Row], shape: str) -> list[Row]:
    """Return a row per model and solver: median and range over the epochs that count."""
    totals: dict[tuple[str, str], dict[int, float]] = {}
    for row in numbers:
        if row["counts"]:
            of = totals.setdefault((row["model"], row["solver"]), {})
            of[row["epoch"]] = of.get(row["epoch"], 0.0) + row["seconds"]
    found = []
    for (model, solver), of in totals.items():
        theirs = (
            published.NUMBERS["seconds"].get(shape, {}).get(model) if solver in THEIRS else None
        )
        ends = {"low": min(of.values()), "high": max(of.values())}
        row = {"model": model, "solver": solver, "seconds": float(np.median(list(of.values())))}
        found.append({**row, **ends, "epochs": len(of), "theirs": theirs})
    return found


def draw(tables: Tables) -> Any:
    """Draw a stacked bar of the steps per model, and the seconds of the paper."""
    from reproduction.figures import panels  # noqa: PLC0415

    models = tables["models"]
    figure, (panel,) = panels(1, height=0.9 + 0.2 * len(models))
    figure.set_figwidth(5.5)
    names = [f"{row['model']} ({row['solver']})" for row in models]
    left = np.zeros(len(names))
    steps: dict[tuple[str, str], list[float]] = {}
    for row in tables["numbers"]:
        if row["counts"]:
            step = "rotate" if row["step"] == "turn" else row["step"]  # its name until 0.1
            steps.setdefault((f"{row['model']} ({row['solver']})", step), []).append(row["seconds"])
    for step, (label, grey) in STEPS.items():
        times = [float(np.median(steps.get((name, step), [0.0]))) for name in names]
        if any(times):
            style = {"color": grey, "edgecolor": "k", "linewidth": 0.4}
            panel.barh(names, times, left=left, label=label, **style)
        left += times
    theirs = [np.nan if row["theirs"] is None else row["theirs"] for row in models]
    if not np.isnan(theirs).all():
        style = {"color": "#D55E00", "markerfacecolor": "none", "label": "the paper's machine"}
        panel.plot(theirs, names, "D", **style)
    longest = int(np.argmax(left))
    others = 1.3 * np.nanmax([*np.delete(left, longest), *theirs])
    shown = min(others, 1.05 * np.nanmax([*left, *theirs]))
    panel.set_xlim(0, shown)
    if left[longest] > shown:  # far longer than the others: cut off
        text = rf"{left[longest]:.1f} s $\rightarrow$"
        panel.text(0.99 * shown, longest, text, ha="right", va="center", fontsize="small")
    panel.set_xlabel("seconds per epoch")
    panel.grid(visible=False, axis="y")
    panel.invert_yaxis()
    figure.legend(loc="outside lower center", ncols=5)
    return figure


EXPERIMENT = declared("runtime", cases, tables, draw)
