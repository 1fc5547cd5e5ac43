"""The sections with curves: by tail level, losses, training."""

import math

from safecf.report import charts, distributions
from safecf.report.content import Chart, Content, Panel, Run
from safecf.report.figures import (
    Of,
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
from safecf.report.text import FORMATS, count, escape, name, percent, short, tag


def levels(content: Content) -> str:
    """Lift over the baseline at every tail level, as in the paper's figure."""
    if not content.panels:
        return ""
    parts = {}
    for metric, panel in content.panels.items():
        label = "lift over the baseline" if content.baseline is not None else metric
        title = f"{escape(metric)}: {label} by share of worst-off users"
        if content.baseline is None:
            title = f"Mean {escape(metric)} of the worst-off users"
        spoken = f"{metric} by tail level. {_spoken(panel)}"
        drawing = "".join(
            charts.level_chart(
                panel.curve, level=content.level, label=spoken, y_label=label, narrow=narrow
            )
            for narrow in (False, True)
        )
        parts[metric] = figure(
            title,
            drawing,
            chart=("panels", metric, "curve"),
            above=readout(panel.curve, metric=metric),
            below=_gap(panel.curve) + folded("Show as a table", _curve_table(panel)),
        )
    if content.baseline is None:
        lede = "Left: the few users who are served worst. Right: everybody, so the plain average."
        return section(
            "levels", "From the worst-off to everybody", lede, by_metric(parts, content.metric)
        )
    lede = (
        "Left: the few users who are served worst. Right: everybody, so the plain average. Above "
        f"the zero line a model serves that share of users better than {name(content.baseline)}; "
        f"where the shaded {percent(content.confidence)} band touches the line, it may be chance."
    )
    title = "Who is lifted: the worst-off, or only the average?"
    return section("levels", title, lede, by_metric(parts, content.metric))


def _spoken(panel: Panel) -> str:
    """Say the point that is read out at first, for those who cannot see the chart."""
    chart = panel.curve
    said = [f"{each.name} {FORMATS[chart.y_format](each.y[chart.at])}" for each in chart.series]
    return f"{point_name(chart, chart.at)}: {', '.join(said)}."


def _gap(chart: Chart) -> str:
    """Say why a curve does not begin at the left."""
    known = [
        x for place, x in enumerate(chart.x) if any(math.isfinite(s.y[place]) for s in chart.series)
    ]
    if known and known[0] == chart.x[0]:
        return ""
    start = percent(known[0]) if known else "all users"
    said = f"Below {start}, users score nothing with the baseline, so a lift has no meaning."
    return tag("p", said, class_="fine")


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
    head = ["", *(name(each.name) for each in chart.series)]
    return table(head, rows, label=f"{panel.metric} by tail level")


def losses(content: Content) -> str:
    """The distribution of every model's losses."""
    if not content.losses:
        return ""
    figures, rows = [], []
    for place, each in enumerate(content.losses):
        marks = f"VaR {short(each.var)}, CVaR {short(each.cvar)}"
        label = f"Losses of the users under {each.model}: {marks}"
        drawing = distributions.loss_chart(each, label=label)
        path = ("losses", str(place), "chart")
        above = readout(each.chart, swatches=False)
        figures.append(figure(name(each.model), drawing, chart=path, above=above))
        of = Of(None, content.level, each.model)
        cells = [
            shown(getattr(each, stat), of, f"loss {stat}", "short")
            for stat in ("mean", "var", "cvar")
        ]
        rows.append([name(each.model), *cells, count(each.beyond)])
    head = ["", "mean", "VaR", "CVaR", "users beyond the chart"]
    below = folded("Show as a table", table(head, rows, label="Losses"))
    worst = percent(content.level)
    lede = (
        f"What each model tries to make small, user by user. VaR is where the worst-off {worst} "
        f"begin (dark bars); CVaR is their mean loss, which safe training lowers. Every model has "
        "a loss of its own: compare shapes, not values."
    )
    return section(
        "losses",
        "How badly users are served",
        lede,
        tag("div", "".join(figures), class_="row") + below,
    )


def training(content: Content) -> str:
    """How training converged."""
    trained = [run for run in content.runs if run.objective or run.residuals]
    if not trained:
        return ""
    lede = (
        "Left: what training lowers. Right: how much the users' factors, the items' factors and "
        "the users' weights still change per epoch; lines that fall and flatten mean that more "
        "epochs would change little."
    )
    rows = "".join(_run(content, run) for run in trained)
    return section("training", "How training went", lede, rows)


def _run(content: Content, run: Run) -> str:
    place = content.runs.index(run)
    facts = run.facts
    pairs = {"Epochs": count(facts["epochs"]), "Seconds": short(facts["seconds"])}
    if {"tail", "cvar"} <= facts.keys():
        pairs[f"CVaR, worst {percent(facts['tail'])}"] = short(facts["cvar"])
    listed = "".join(tag("dt", key) + tag("dd", value) for key, value in pairs.items())
    parts = [tag("figure", tag("figcaption", name(run.model)) + tag("dl", listed), class_="facts")]
    for key, chart, title, log in (
        ("objective", run.objective, "Objective", False),
        ("residuals", run.residuals, "Change per epoch", True),
    ):
        if chart is None:
            continue
        last = ", ".join(f"{s.name} {short(s.y[-1])}" for s in chart.series)
        label = f"{title} of {run.model} by epoch; last epoch: {last}"
        drawing = charts.epoch_chart(
            chart, label=label, y_label="norm" if log else "value", log=log
        )
        parts.append(figure(title, drawing, chart=("runs", str(place), key), above=readout(chart)))
    return tag("div", "".join(parts), class_="row")
