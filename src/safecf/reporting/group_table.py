"""From evaluations to the table of the groups of users."""

import math

from safecf.evaluation.groups import GroupScore
from safecf.evaluation.profile import TailProfile
from safecf.reporting.content import Estimate, Group, GroupTable
from safecf.reporting.source import Source

MOST = 100  # groups on a page; the rest are counted


def group_name(label: object) -> str:
    """Name a group: a number alone says nothing."""
    return f"group {label}" if isinstance(label, int) else str(label)


def group_table(source: Source, metric: str, profiles: dict[str, TailProfile]) -> GroupTable:
    """Set every group's means side by side, worst first by the first model."""
    found = {each.model: source.groups(each, metric) for each in source.evaluations}
    first = found[source.evaluations[0].model]
    means = {model: {each.label: each for each in groups.scores} for model, groups in found.items()}

    def group(score: GroupScore) -> Group:
        risks = {m: each.groups[score.label][2] for m, each in profiles.items()}
        estimates = {m: _estimate(known[score.label]) for m, known in means.items()}
        if not score.enough:
            estimates = {m: (mean, math.nan, math.nan) for m, (mean, *_) in estimates.items()}
        return Group(
            label=group_name(score.label),
            users=score.users,
            share=score.share,
            enough=score.enough,
            means=estimates,
            risks=risks if score.enough else {},
        )

    every = [group(score) for score in first.scores]
    large, small = [g for g in every if g.enough], [g for g in every if not g.enough]
    worst = {m: each.worst for m, each in found.items() if each.worst is not None}
    return GroupTable(
        large=large[:MOST],
        small=small[: max(MOST - len(large), 0)],
        together=_together(source, metric, profiles),
        everybody=_everybody(source, metric, profiles) if first.scores else None,
        worst={m: (group_name(each.label), _estimate(each)) for m, each in worst.items()},
        left_out=max(len(every) - MOST, 0),
    )


def _estimate(score: GroupScore) -> Estimate:
    return score.mean, score.low, score.high


def _together(source: Source, metric: str, profiles: dict[str, TailProfile]) -> Group | None:
    """All groups that are too small for a row of their own."""
    found = {each.model: source.groups(each, metric) for each in source.evaluations}
    smaller = {m: each.smaller for m, each in found.items() if each.smaller is not None}
    if not smaller:
        return None
    first = next(iter(smaller.values()))
    few = {each.label: each.users for each in next(iter(found.values())).scores if not each.enough}
    return Group(
        label=first.label,
        users=first.users,
        share=first.share,
        enough=True,
        means={m: _estimate(each) for m, each in smaller.items()},
        risks={
            m: sum(each.groups[label][2] * users for label, users in few.items()) / first.users
            for m, each in profiles.items()
        },
    )


def _everybody(source: Source, metric: str, profiles: dict[str, TailProfile]) -> Group:
    """All users, for comparison."""
    total = {m: each.inside + each.outside for m, each in profiles.items()}
    return Group(
        label="all users",
        users=max(total.values()),
        share=1.0,
        enough=True,
        means={each.model: source.estimate(each, metric, 1.0) for each in source.evaluations},
        risks={m: each.inside / total[m] for m, each in profiles.items()},
    )
