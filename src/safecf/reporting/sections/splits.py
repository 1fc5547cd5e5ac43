"""The section on splits, if there are several: on how many of them a model is better."""

from safecf.reporting.content import Content, Panel
from safecf.reporting.drawing import user_charts
from safecf.reporting.markup import FORMATS, escape, level_name, name
from safecf.reporting.sections.elements import (
    by_metric,
    figure,
    folded,
    section,
    shown,
    table,
)


def splits(content: Content) -> str:
    """The difference to the baseline on every split."""
    if content.splits == 1 or content.baseline is None or not content.panels:
        return ""
    lede = (
        f"Each mark is one of the {content.splits} splits. What one split shows may be due to its "
        "users alone; what nearly all of them show is not."
    )
    return section("splits", "Split by split", lede, by_metric(content, _splits))


def _splits(content: Content, panel: Panel) -> str:
    chosen = [
        (other, panel.differences[other][level])
        for level in sorted({content.level, 1.0})
        for other in content.others
    ]
    names = [f"{other}, {level_name(each.level)}" for other, each in chosen]
    # there is no lift if the baseline is zero on some split
    if all(before > 0 for _, each in chosen for before, _ in each.splits):
        write, what, x_label = FORMATS["lift"], "Lift over", "lift, %"
        values = [each.split_lifts for _, each in chosen]
    else:
        write, what = FORMATS["signed"], f"Difference in {escape(panel.metric)} to"
        x_label = f"difference in {panel.metric}"
        values = [[after - before for before, after in each.splits] for _, each in chosen]
    styles = [content.styles[other] for other, _ in chosen]
    rows = list(zip(names, styles, values, strict=True))
    won = [f"{n}: better on {c.splits_won}" for n, (_, c) in zip(names, chosen, strict=True)]
    drawing = "".join(
        user_charts.split_chart(rows, label="; ".join(won), x_label=x_label, narrow=narrow)
        for narrow in (False, True)
    )
    lines = [
        [
            name(other),
            level_name(each.level),
            f"{shown(each.splits_won, 'splits_won', model=other, level=each.level)} of "
            f"{content.splits}",
            f"{write(min(found))} to {write(max(found))}",
        ]
        for (other, each), found in zip(chosen, values, strict=True)
    ]
    every = [
        [str(number), *map(write, found)]
        for number, found in enumerate(zip(*values, strict=True), start=1)
    ]
    below = table(["Model", "users", "splits won", "from, to"], lines, label="Splits won")
    below += folded("Show every split", table(["Split", *map(name, names)], every, label="Splits"))
    return figure(f"{what} {name(content.baseline)} on every split", drawing, below=below)
