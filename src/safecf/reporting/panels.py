"""Everything about one metric: scores, differences, curves, who gains, the tail, the groups."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.special

from safecf.evaluation.difference import Difference
from safecf.evaluation.groups import Groups, GroupScore
from safecf.evaluation.profile import TailProfile, tail_profile
from safecf.evaluation.result import Evaluation
from safecf.measures.bootstrap import Counts, Estimate
from safecf.measures.tails import Floats
from safecf.reporting.content import (
    AtFloor,
    Bin,
    Chart,
    Gains,
    Group,
    GroupTable,
    Panel,
    Series,
    rounded,
)
from safecf.reporting.markup import level_name, signed
from safecf.reporting.source import Source

POINTS = 101  # of a curve over all users
BINS = 4  # of users by a property
MOST_GROUPS = 100  # on a page; the rest are only counted

Profiles = dict[str, TailProfile]  # by model


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
        # The shares of the groups are in their table.
        profiles={model: replace(each, groups={}) for model, each in profiles.items()},
        groups=_group_table(source, metric, profiles),
        caution=source.evaluations[0].caution(metric, source.level),
        floor=_at_floor(source, metric),
    )


def _at_floor(source: Source, metric: str) -> AtFloor | None:
    """The tails of the metric that is shown beside this one, if this one's are all zero."""
    if (floor := source.floor(metric)) is None:
        return None
    if floor.beside is None:
        return AtFloor(str(floor), "", {}, {})
    beside, level, comparison = floor.beside, source.level, source.comparison
    others = [] if comparison is None else comparison.others
    return AtFloor(
        sentence=str(floor),
        metric=beside,
        tails={each.model: source.estimate(each, beside, level) for each in source.evaluations},
        differences={
            each.model: comparison.difference(each, beside, level)
            for each in others
            if comparison is not None
        },
    )


def _lift_curve(source: Source, differences: dict[str, dict[float, Difference]]) -> Chart:
    """The lift of every model over the baseline at each level, as in the paper's figure.

    The curve has a gap where the baseline is zero.
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
    """The mean of the worst-off users at each level, for a page without a baseline."""
    series = []
    for each in source.evaluations:
        estimates = [source.estimate(each, metric, level) for level in levels]
        value, low, high = (rounded(values) for values in zip(*estimates, strict=True))
        series.append(Series(each.model, source.styles[each.model], value, low, high))
    return Chart(levels, series, labels=_names(levels), at=levels.index(source.level))


def _names(levels: list[float]) -> list[str]:
    return [level_name(level).capitalize() for level in levels]


def _gains(source: Source, other: Evaluation, metric: str, everybody: Difference) -> Gains:
    """Sort the users by their difference to the baseline, and average it by property."""
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
        rest=_mean_changes(ordered),
    )
    properties = {
        "history_length": base.users.history_length.astype(np.float64),
        "popularity": base.users.popularity,
    }
    bins = {
        key: _bins(values[known], gain[known], base.user_numbers[known], source.draws.confidence)
        for key, values in properties.items()
    }
    return Gains(everybody.wins, everybody.ties, everybody.losses, curve, bins)


def _mean_changes(changes: Floats) -> str:
    """Write the mean gain of the users who gain, and the mean loss of those who lose."""
    said = [
        f"{what} {signed(each.mean())}"
        for what, each in (("gain", changes[changes > 0]), ("loss", changes[changes < 0]))
        if each.size
    ]
    return f"Mean {', mean '.join(said)}" if said else "No score changes"


def _bins(values: Floats, gain: Floats, users: Counts, confidence: float) -> list[Bin]:
    """Mean gain of the users in each quarter of a property, with its normal interval.

    The deviations of a user who appears in several splits are summed for the standard error.
    """
    known = np.isfinite(values)
    values, gain, users = values[known], gain[known], users[known]
    if values.size == 0:
        return []
    edges = np.unique(np.quantile(values, np.linspace(0, 1, BINS + 1), method="inverted_cdf"))
    deviations = float(scipy.special.ndtri((1 + confidence) / 2))
    # The upper edge belongs to its bin, so that equal values stay together.
    place = np.searchsorted(edges[1:-1], values, side="left")
    found = []
    for index in range(max(len(edges) - 1, 1)):
        inside = place == index
        size = int(inside.sum())
        if size == 0:
            continue
        mean = float(gain[inside].mean())
        members, user = np.unique(users[inside], return_inverse=True)
        summed = np.bincount(user, gain[inside] - mean)
        variance = np.sum(summed**2) * members.size / max(members.size - 1, 1)
        spread = deviations * variance**0.5 / size if members.size > 1 else math.nan
        low, high = float(values[inside].min()), float(values[inside].max())
        found.append(Bin(low, high, size, (mean, mean - spread, mean + spread)))
    return found


def _group_table(source: Source, metric: str, profiles: Profiles) -> GroupTable:
    """Collect every group's means by model, in the order of the first model, worst first."""
    found = {each.model: source.groups(each, metric) for each in source.evaluations}
    first = found[source.evaluations[0].model]
    by_label = {m: {s.label: s for s in each.scores} for m, each in found.items()}
    every = [
        _group({m: scores[each.label] for m, scores in by_label.items()}, profiles)
        for each in first.scores
    ]
    large, small = [g for g in every if g.enough], [g for g in every if not g.enough]
    worst = {m: each.worst for m, each in found.items() if each.worst is not None}
    return GroupTable(
        large=large[:MOST_GROUPS],
        small=small[: max(MOST_GROUPS - len(large), 0)],
        pooled=_pooled(found, profiles),
        everybody=_everybody(source, metric, profiles) if first.scores else None,
        worst={m: (_group_name(each.label), _estimate(each)) for m, each in worst.items()},
        left_out=max(len(every) - MOST_GROUPS, 0),
    )


def _group(scores: dict[str, GroupScore], profiles: Profiles) -> Group:
    """One group by model; without intervals and risks if it has few users."""
    first = next(iter(scores.values()))
    means = {model: _estimate(each) for model, each in scores.items()}
    risks = {model: each.groups[first.label][2] for model, each in profiles.items()}
    if not first.enough:
        means = {model: (each.mean, math.nan, math.nan) for model, each in scores.items()}
        risks = {}
    name = _group_name(first.label)
    return Group(name, first.users, first.share, first.enough, means, risks)


def _pooled(found: dict[str, Groups], profiles: Profiles) -> Group | None:
    """All groups with few users, pooled."""
    smaller = {m: each.smaller for m, each in found.items() if each.smaller is not None}
    if not smaller:
        return None
    first = next(iter(smaller.values()))
    few = [each.label for each in next(iter(found.values())).scores if not each.enough]
    return Group(
        label=first.label,
        users=first.users,
        share=first.share,
        enough=True,
        means={m: _estimate(each) for m, each in smaller.items()},
        risks={m: _pooled_risk(each, few) for m, each in profiles.items()},
    )


def _pooled_risk(profile: TailProfile, labels: list[Any]) -> float:
    """Return the share of the users of these groups who are in the tail."""
    inside = profile.inside * sum(profile.groups[label][0] for label in labels)
    outside = profile.outside * sum(profile.groups[label][1] for label in labels)
    return inside / (inside + outside)


def _everybody(source: Source, metric: str, profiles: Profiles) -> Group:
    """All users, for comparison."""
    total = {m: each.inside + each.outside for m, each in profiles.items()}
    first = source.evaluations[0]
    return Group(
        label="all users",
        users=np.unique(first.user_numbers[np.isfinite(first.scores[metric])]).size,
        share=1.0,
        enough=True,
        means={each.model: source.estimate(each, metric, 1.0) for each in source.evaluations},
        risks={m: each.inside / total[m] for m, each in profiles.items()},
    )


def _estimate(score: GroupScore) -> Estimate:
    return score.mean, score.low, score.high


def _group_name(label: object) -> str:
    """Name a group; a bare number is written as `group 3`."""
    return f"group {label}" if isinstance(label, int) else str(label)
