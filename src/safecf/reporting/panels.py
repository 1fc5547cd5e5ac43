"""Everything about one metric: scores, differences, curves, who gains, who is in the tail."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from safecf.evaluation.difference import Difference
from safecf.evaluation.profile import tail_profile
from safecf.evaluation.result import Evaluation
from safecf.reporting.content import Bin, Chart, Gains, Panel, Series, rounded
from safecf.reporting.group_table import group_table
from safecf.reporting.source import Source
from safecf.reporting.text import level_name, signed

Floats = NDArray[np.float64]

POINTS = 101  # of a curve over all users
BINS = 4  # groups of users by a property


def panel(source: Source, metric: str) -> Panel:
    """Compute everything about one metric."""
    profiles = {each.model: tail_profile(each, metric, source.level) for each in source.evaluations}
    levels = source.curve_levels
    differences: dict[str, dict[float, Difference]] = {}
    verdicts, gains = {}, {}
    if (comparison := source.comparison) is not None:
        for other in comparison.others:
            found = comparison.differences(other, metric, levels)
            differences[other.model] = {each.level: each for each in found}
            verdicts[other.model] = comparison.verdict(other, metric, source.level)
            gains[other.model] = _gains(source, other, metric, found[-1])
    curve = _lift_curve(source, differences) if differences else _tail_curve(source, metric, levels)
    return Panel(
        metric=metric,
        users=int(np.isfinite(source.evaluations[0].scores[metric]).sum()),
        scores={
            each.model: {level: source.estimate(each, metric, level) for level in source.levels}
            for each in source.evaluations
        },
        differences={
            model: {level: found[level] for level in source.levels}
            for model, found in differences.items()
        },
        verdicts=verdicts,
        curve=curve,
        gains=gains,
        # The shares of the groups stand in their table.
        profiles={model: replace(each, groups={}) for model, each in profiles.items()},
        groups=group_table(source, metric, profiles),
    )


def _lift_curve(source: Source, differences: dict[str, dict[float, Difference]]) -> Chart:
    """The lift of every model over the baseline at each level: the paper's figure.

    Where both are zero there is nothing to lift, and the curve has a gap.
    """
    series = []
    for model, found in differences.items():
        lifts = [each.relative for each in found.values()]
        lift, low, high = (rounded(values) for values in zip(*lifts, strict=True))
        series.append(Series(model, source.styles[model], lift, low, high))
    series.sort(key=lambda each: each.style)
    levels = list(next(iter(differences.values())))
    at = levels.index(source.level)
    return Chart(levels, series, y_format="lift", labels=_names(levels), at=at)


def _tail_curve(source: Source, metric: str, levels: list[float]) -> Chart:
    """The mean of the worst-off users at each level, for a model that stands alone."""
    series = []
    for each in source.evaluations:
        estimates = [source.estimate(each, metric, level) for level in levels]
        value, low, high = (rounded(values) for values in zip(*estimates, strict=True))
        series.append(Series(each.model, source.styles[each.model], value, low, high))
    return Chart(levels, series, labels=_names(levels), at=levels.index(source.level))


def _names(levels: list[float]) -> list[str]:
    return [level_name(level).capitalize() for level in levels]


def _gains(source: Source, other: Evaluation, metric: str, everybody: Difference) -> Gains:
    """Sort the users by how much better they fare than with the baseline."""
    base = source.evaluations[0]
    gain = other.scores[metric] - base.scores[metric]
    known = np.isfinite(gain)
    ordered = np.sort(gain[known])
    shares = np.linspace(0, 1, min(POINTS, max(ordered.size, 2)))
    place = np.minimum((shares * ordered.size).astype(int), ordered.size - 1)
    curve = Chart(
        x=rounded(shares),
        series=[Series("", source.styles[other.model], rounded(ordered[place]))],
        x_text="The user at {}:",
        y_format="signed",
        rest=_moved(ordered),
    )
    properties = {
        "history_length": base.users.history_length.astype(np.float64),
        "popularity": base.users.popularity,
    }
    bins = {key: _bins(values[known], gain[known]) for key, values in properties.items()}
    return Gains(everybody.wins, everybody.ties, everybody.losses, curve, bins)


def _moved(changes: Floats) -> str:
    """Say how much those gain who gain, and how much those lose who lose."""
    said = [
        f"{what} {signed(each.mean())}"
        for what, each in (("gain", changes[changes > 0]), ("loss", changes[changes < 0]))
        if each.size
    ]
    return f"Mean {', mean '.join(said)}" if said else "Nobody fares better or worse"


def _bins(values: Floats, gain: Floats) -> list[Bin]:
    """Mean gain of the users in each quarter of a property, with a normal 95 % interval."""
    known = np.isfinite(values)
    values, gain = values[known], gain[known]
    if values.size == 0:
        return []
    edges = np.unique(np.quantile(values, np.linspace(0, 1, BINS + 1), method="inverted_cdf"))
    # The upper edge belongs to its bin, so that equal values stay together.
    place = np.searchsorted(edges[1:-1], values, side="left")
    found = []
    for index in range(max(len(edges) - 1, 1)):
        inside = place == index
        size = int(inside.sum())
        if size == 0:
            continue
        mean = float(gain[inside].mean())
        spread = 1.96 * float(gain[inside].std(ddof=1)) / size**0.5 if size > 1 else float("nan")
        low, high = float(values[inside].min()), float(values[inside].max())
        found.append(Bin(low, high, size, (mean, mean - spread, mean + spread)))
    return found
