"""`runtime`: seconds per epoch of every model, with the paper's solvers and with the library's."""

from typing import Any

import numpy as np

from reproduction import presets, scores, settings
from reproduction.experiment import Case, Options, Result, Row, Tables, grouped
from reproduction.experiments import declared
from reproduction.experiments.convergence import course_cases, shape_of
from reproduction.figures import panels

DATA = settings("experiments/runtime")


def _cases(options: Options) -> list[Case]:
    """Return every model with each of its solvers; users are not scored."""
    shape, found = shape_of(options.data), []
    models = presets.load(shape, "paper")
    for each in (each for each in DATA["models"] if each["of"] in models):
        preset = presets.solved(models[each["of"]], each.get("by"))
        if preset.name not in DATA["left_out"].get(shape, ()):
            slow = preset.name in DATA["slow"].get(shape, ())
            label = (each["model"], each["solver"], int(not slow))
            chosen = presets.changed(preset, iterations=1 if slow else 1 + DATA["epochs"][shape])
            found += course_cases(label, chosen, options, 1, scored=False)
    return found


def _tables(results: list[Result], options: Options) -> Tables:
    """Return seconds of each step and epoch, and their medians beside those of the paper."""
    shape, numbers, models = shape_of(options.data), [], []
    published = scores.PUBLISHED["seconds"].get(shape, {})
    for each in results:
        name, solver, first = each.label
        about: Row = {"model": name, "solver": solver}
        epochs = [
            {step: round(seconds, 5) for step, seconds in row["seconds"].items()}
            for row in each.record["rows"]
        ]
        numbers += [
            {**about, "epoch": epoch, "step": step, "seconds": seconds[step]}
            | {"counts": epoch > first}
            for step in epochs[0]
            for epoch, seconds in enumerate(epochs, 1)
        ]
        totals = [sum(seconds.values()) for seconds in epochs[first:]]
        about |= {"low": min(totals), "high": max(totals), "epochs": len(totals)}
        theirs = published.get(name) if solver in DATA["theirs"] else None
        models.append({**about, "seconds": float(np.median(totals)), "theirs": theirs})
    factors = results[0].settings["options"]["factors"]
    facts = {"factors": factors, "epochs": DATA["epochs"][shape]}
    return {"numbers": numbers, "models": models, "facts": [facts]}


def _draw(tables: Tables) -> Any:
    models = tables["models"]
    figure, (panel,) = panels(1, height=0.9 + 0.2 * len(models))
    figure.set_figwidth(5.5)
    names = [f"{row['model']} ({row['solver']})" for row in models]
    left = np.zeros(len(names))
    counted = (row for row in tables["numbers"] if row["counts"])
    steps = grouped(counted, "model", "solver", "step")
    for step, (label, grey) in DATA["steps"].items():
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
