"""The sections with curves: by level, of losses, of training."""

import math

from safecf.reporting.content import Chart, Content, Panel, Run
from safecf.reporting.drawing import charts, user_charts
from safecf.reporting.markup import FORMATS, count, escape, name, percent, short, tag, whom
from safecf.reporting.sections.elements import (
    by_metric,
    figure,
    folded,
    point_name,
    readout,
    section,
    shown,
    table,
    with_interval,
)

FAR = 2  # curves for which a note says how far they leave the chart


def levels(content: Content) -> str:
    """Lift over the baseline at every level, as in the paper's figure."""
    if not content.panels:
        return ""
    lede = (
        "From left to right more users count, the worst-served first: on the left only a few, on "
        "the right everybody, which is the plain average."
    )
    title = "From the worst-off to everybody"
    if content.baseline is not None:
        title = "Who is lifted: the worst-off, or only the average?"
        lede += (
            f" Above the zero line, a model serves that share better than "
            f"{name(content.baseline)}; where the shaded {percent(content.confidence)} band "
            "touches the line, the difference may be chance."
        )
    return section("levels", title, lede, by_metric(content, _level_figure))


def _level_figure(content: Content, panel: Panel) -> str:
    metric, chart, alone = panel.metric, panel.curve, content.baseline is None
    label = metric if alone else "lift over the baseline"
    title = f"{escape(metric)}: {label} by share of worst-off users"
    if alone:
        title = f"Mean {escape(metric)} of the worst-off users"
    if not any(math.isfinite(y) for series in chart.series for y in series.y):
        said = (
            "Every user scores zero with the baseline, so a lift in percent is not defined. The "
            "differences are in the tables of all numbers."
        )
        return tag("figure", tag("figcaption", title) + tag("p", said, class_="fine"))
    drawing = "".join(
        charts.level_chart(
            chart,
            level=content.level,
            label=f"{metric} by tail level. {_spoken(panel)}",
            y_label=label,
            narrow=narrow,
        )
        for narrow in (False, True)
    )
    return figure(
        title,
        drawing,
        chart=("panels", metric, "curve"),
        above=readout(chart, stat="value" if alone else "relative"),
        below=_notes(chart) + folded("Show as a table", _curve_table(panel)),
    )


def _spoken(panel: Panel) -> str:
    """Describe the first point of the read-out for screen readers."""
    chart = panel.curve
    said = [f"{each.name} {FORMATS[chart.y_format](each.y[chart.at])}" for each in chart.series]
    return f"{point_name(chart, chart.at)}: {', '.join(said)}."


def _notes(chart: Chart) -> str:
    """Explain why a curve begins late, and how far it leaves the chart."""
    said = []
    known = [
        x for place, x in enumerate(chart.x) if any(math.isfinite(s.y[place]) for s in chart.series)
    ]
    if known[0] > chart.x[0]:
        said.append(
            f"Below {percent(known[0])} the baseline scores zero, so a lift is not defined."
        )
    far = [
        f"{name(model)} reaches {FORMATS['lift'](y)} at {percent(x)}"
        for model, (x, y) in charts.beyond(chart).items()
    ]
    if far:
        more = f" and {len(far) - FAR} more" if len(far) > FAR else ""
        said.append(f"Outside the chart: {', '.join(far[:FAR])}{more}.")
    return tag("p", " ".join(said), class_="fine") if said else ""


def _curve_table(panel: Panel) -> str:
    chart = panel.curve
    places = [p for p, x in enumerate(chart.x) if p == chart.at or round(100 * x) % 10 == 0]
    rows = []
    for place in places:
        cells = []
        for each in chart.series:
            ends = (each.low[place], each.high[place]) if each.low else (math.nan, math.nan)
            cells.append(
                with_interval((0, *ends), FORMATS[chart.y_format](each.y[place]), chart.y_format)
            )
        rows.append([escape(point_name(chart, place)), *cells])
    head = ["Users", *(name(each.name) for each in chart.series)]
    return table(head, rows, label=f"{panel.metric} by tail level")


def losses(content: Content) -> str:
    """The distribution of every model's losses."""
    if not content.losses:
        return ""
    figures, rows = [], []
    for place, each in enumerate(content.losses):
        label = f"Losses of the held-out users under {each.model}. {each.chart.rest}"
        drawing = user_charts.loss_chart(each, label=label)
        path = ("losses", str(place), "chart")
        above = readout(each.chart, swatches=False)
        figures.append(figure(name(each.model), drawing, chart=path, above=above))
        cells = [
            shown(getattr(each, stat), f"loss {stat}", model=each.model, level=content.level)
            for stat in ("mean", "var", "cvar")
        ]
        rows.append([name(each.model), *cells, count(each.beyond)])
    head = ["Model", "mean", "VaR", "CVaR", "users outside the chart"]
    below = folded("Show as a table", table(head, rows, label="Losses"))
    lede = "The loss is what a model minimises in training, here for the held-out users. "
    if content.level < 1:
        lede += (
            f"VaR is the loss at which {whom(content.level)} begin (dark bars), CVaR their mean "
            "loss, which safe training lowers. "
        )
    lede += "Each model's loss has its own scale: compare the shapes, not the values."
    drawn = tag("div", "".join(figures), class_="row")
    return section("losses", "How badly users are served", lede, drawn + below)


def training(content: Content) -> str:
    """How training converged."""
    trained = [place for place, run in enumerate(content.runs) if run.progress]
    if not trained:
        return ""
    lede = "What training minimises, epoch by epoch, over the training users."
    if content.losses:
        lede += " Their losses are not those of the held-out users above."
    if any(each.log for run in content.runs for each in run.progress):
        lede += " Once the change per epoch is small and flat, more epochs change little."
    rows = "".join(_run(content.runs[place], place) for place in trained)
    return section("training", "How training went", lede, rows)


def _run(run: Run, place: int) -> str:
    write = {"epochs": count, "seconds": short}
    pairs = {key.capitalize(): write[key](value) for key, value in run.facts.items()}
    listed = "".join(tag("dt", key) + tag("dd", value) for key, value in pairs.items())
    parts = [tag("figure", tag("figcaption", name(run.model)) + tag("dl", listed), class_="facts")]
    for index, each in enumerate(run.progress):
        last = ", ".join(f"{s.name} {short(s.y[-1])}" for s in each.chart.series)
        label = f"{each.title} of {run.model} by epoch; last epoch: {last}"
        drawing = charts.epoch_chart(each.chart, label=label, y_label=each.y_label, log=each.log)
        path = ("runs", str(place), "progress", str(index), "chart")
        title = escape(each.title[0].upper() + each.title[1:])
        parts.append(figure(title, drawing, chart=path, above=readout(each.chart)))
    return tag("div", "".join(parts), class_="row run")
