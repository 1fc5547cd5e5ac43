"""`runtime`: seconds per epoch of every model, with the paper's solvers and with the library's."""

from typing import Any

import numpy as np

from reproduction import presets, scores, settings
from reproduction.experiment import Case, Options, Result, Row, Tables, grouped
from reproduction.experiments import declared
from reproduction.experiments.convergence import course_cases, shape_of
from reproduction.figures import panels

DATA = settings("experiments/runtime")
STEPS = DATA["steps"]  # label and grey of each


def _cases(options: Options) -> list[Case]:
    """Return every model with each of its solvers; users are not scored."""
    shape, found = shape_of(options.data), []
    models = presets.load(shape, "paper")
    presets.require(shape, "paper", ("iALS", "ERM-MF", "CVaR-MF", "SAFER2"))
    for each in DATA["models"]:
        if each["of"] not in models:
            continue
        preset = presets.solved(models[each["of"]], each.get("by"))
        if preset.name not in DATA["left_out"].get(shape, ()):
            slow = preset.name in DATA["slow"].get(shape, ())
            label = (each["model"], each["solver"], int(not slow))
            chosen = presets.changed(preset, iterations=1 if slow else 1 + _epochs(shape))
            found += course_cases(label, chosen, options, 1, scored=False)
    return found


def _epochs(shape: str) -> int:
    """Return the number of epochs after the first; those of other data are those of msd."""
    return int(DATA["epochs"].get(shape, DATA["epochs"]["msd"]))


def _tables(results: list[Result], options: Options) -> Tables:
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
    shape = shape_of(options.data)
    factors = results[0].settings["options"]["factors"]
    facts = {"factors": factors, "epochs": _epochs(shape)}
    return {"numbers": numbers, "models": _medians(numbers, shape), "facts": [facts]}


def _medians(numbers: list[Row], shape: str) -> list[Row]:
    """Return a row per model and solver: median and range over the epochs that count."""
    found = []
    published = scores.PUBLISHED["seconds"].get(shape, {})
    counted = grouped((row for row in numbers if row["counts"]), "model", "solver")
    for (model, solver), of in counted.items():
        steps = grouped(of, "epoch").values()
        totals = [sum(row["seconds"] for row in epoch) for epoch in steps]
        row = {"model": model, "solver": solver, "seconds": float(np.median(totals))}
        row |= {"low": min(totals), "high": max(totals), "epochs": len(totals)}
        theirs = published.get(model) if solver in DATA["theirs"] else None
        found.append({**row, "theirs": theirs})
    return found


def _draw(tables: Tables) -> Any:
    """Draw a stacked bar of the steps per model, and the seconds of the paper."""
    models = tables["models"]
    figure, (panel,) = panels(1, height=0.9 + 0.2 * len(models))
    figure.set_figwidth(5.5)
    names = [f"{row['model']} ({row['solver']})" for row in models]
    left = np.zeros(len(names))
    counted = (row for row in tables["numbers"] if row["counts"])
    steps = grouped(counted, "model", "solver", "step")
    for step, (label, grey) in STEPS.items():
        of = [steps.get((row["model"], row["solver"], step), []) for row in models]
        times = [float(np.median([row["seconds"] for row in rows] or [0.0])) for rows in of]
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
    if left[longest] > shown:  # far longer than the others: cut off
        text = rf"{left[longest]:.1f} s $\rightarrow$"
        panel.text(0.99 * shown, longest, text, ha="right", va="center", fontsize="small")
    panel.set(xlim=(0, shown), xlabel="seconds per epoch")
    panel.grid(visible=False, axis="y")
    panel.invert_yaxis()
    figure.legend(loc="outside lower center", ncols=5)
    return figure


EXPERIMENT = declared("runtime", _cases, _tables, _draw)
