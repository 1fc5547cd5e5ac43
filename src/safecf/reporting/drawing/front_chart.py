"""The trials of tuning as points: mean across, tail upwards, and the front between them."""

import math

import numpy as np

from safecf.reporting.content import TrialPoint, Tuned, TunedModel
from safecf.reporting.drawing import svg
from safecf.reporting.drawing.charts import Frame
from safecf.reporting.drawing.svg import Scale
from safecf.reporting.markup import escape, number, tag, whom

LINE = 15  # between the names of two points
QUARTER = 0.25  # of the trials of a model, the lowest may lie outside of the chart


def front_chart(tuned: Tuned, *, label: str, narrow: bool) -> str:
    """Draw every trial as a dot, the front as a line, a cross on trial 0, the defaults."""
    width, height = (360, 330) if narrow else (920, 420)
    low, high = bounds(tuned)
    x = Scale(low[0], high[0], 52 if narrow else 60, width - 16)
    y = Scale(low[1], high[1], height - 42, 26)
    frame = Frame(width, height, x, y, label, "narrow" if narrow else "wide")
    axes = frame.axes(
        f"mean {tuned.metric} of all users",
        f"mean {tuned.metric} of {whom(tuned.level)}",
        "plain",
        "plain",
        x_count=4 if narrow else 8,
        y_count=6,
    )
    drawn = "".join(_model(each, x, y, inside(each, low)) for each in reversed(tuned.models))
    return frame.draw(axes + drawn + _labels(tuned.models, x, y))


def bounds(tuned: Tuned) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the lowest and the highest mean and tail that are drawn.

    All fronts and defaults are inside, and three quarters of the trials of each model.
    """
    found = []
    for each in tuned.models:
        points = np.array([(t.mean, t.tail) for t in each.trials if math.isfinite(t.mean)])
        needed = [p for t, p in zip(_scored(each), points, strict=True) if t.number in each.front]
        found += [
            (each.trials[0].mean, each.trials[0].tail),
            *needed,
            np.quantile(points, QUARTER, axis=0),
            points.max(axis=0),
        ]
    (x_low, x_high), (y_low, y_high) = (svg.domain(values) for values in np.array(found).T)
    return (x_low, y_low), (x_high, y_high)


def inside(model: TunedModel, low: tuple[float, float]) -> list[TrialPoint]:
    """Return the trials that are drawn."""
    return [each for each in _scored(model) if each.mean >= low[0] and each.tail >= low[1]]


def _scored(model: TunedModel) -> list[TrialPoint]:
    return [each for each in model.trials if math.isfinite(each.mean)]


def _model(model: TunedModel, x: Scale, y: Scale, trials: list[TrialPoint]) -> str:
    parts = []
    front = [each for each in trials if each.number in model.front]
    front.sort(key=lambda each: each.mean)
    for each in trials:
        spoken = f"{model.model}, trial {each.number}: {number(each.mean)}, {number(each.tail)}"
        place = {"cx": svg.place(x.at(each.mean)), "cy": svg.place(y.at(each.tail)), "r": "3.5"}
        class_ = "trial pruned" if each.state == "pruned" else "trial"
        title = tag("title", escape(spoken))
        parts.append(tag("g", title + tag("circle", **place, class_=class_)))
    across = x([each.mean for each in front])
    up = y([each.tail for each in front])
    parts.append(tag("path", d=svg.path(across, up), class_="line plain"))
    parts += [svg.marker(*each, model.style) for each in zip(across, up, strict=True)]
    at, above = x.at(model.trials[0].mean), y.at(model.trials[0].tail)
    cross = svg.segment(at - 5, above - 5, at + 5, above + 5)
    cross += svg.segment(at - 5, above + 5, at + 5, above - 5)
    parts.append(tag("path", d=cross, class_="default"))
    return tag("g", "".join(parts), class_=f"s{model.style % 8}")


def _labels(models: list[TunedModel], x: Scale, y: Scale) -> str:
    """Circle the trials that were picked, and name them, below each other where they are close."""
    best = sorted(((m, m.trials[m.best]) for m in models), key=lambda pair: -pair[1].tail)
    parts, last = [], -math.inf
    for model, trial in best:
        at, above = x.at(trial.mean), y.at(trial.tail)
        ring = tag("circle", cx=svg.place(at), cy=svg.place(above), r="8", class_="picked")
        left = at > (x.start + x.end) / 2
        last = max(above + 4, last + LINE)
        shift, anchor = (-13, "end") if left else (13, "start")
        text = f"{model.model}, trial {trial.number}"
        parts.append(ring + svg.text(at + shift, last, text, "note halo", anchor))
    return "".join(parts)
