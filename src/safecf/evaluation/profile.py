"""Who is in the tail: history length, popularity of taste, groups, training weight."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safecf.errors import choose
from safecf.evaluation.json_records import to_json
from safecf.measures.tails import in_tail

if TYPE_CHECKING:
    from safecf.evaluation.result import Evaluation

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """Mean and quantiles of one property of some users; NaN where there are no users."""

    mean: float
    q10: float
    q25: float
    median: float
    q75: float
    q90: float

    @classmethod
    def of(cls, values: NDArray[Any]) -> "Spread":
        """Summarise the values, those that are NaN aside."""
        known = values[~np.isnan(values)]
        if known.size == 0:
            return cls(*[float("nan")] * 6)
        quantiles = np.quantile(known, [0.1, 0.25, 0.5, 0.75, 0.9])
        return cls(float(known.mean()), *(float(value) for value in quantiles))


@dataclass(frozen=True)
class TailProfile:
    """The users of the tail beside all others.

    Parameters
    ----------
    metric, level
        Whose tail it is.
    inside, outside
        Number of users in the tail, everybody who ties with its boundary included, and of others.
    properties
        "history_length", "target_count", "popularity", "loss" and "weight" (in training, where 1
        is the mean of all users), as far as they are known: a `Spread` of those inside and of
        those outside.
    groups
        By label, the group's share of those inside and of those outside, and `risk`: the share of
        the group that is in the tail.
    """

    metric: str
    level: float
    inside: int
    outside: int
    properties: dict[str, tuple[Spread, Spread]]
    groups: dict[Any, tuple[float, float, float]]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        found: dict[str, Any] = to_json(self)
        return found


def tail_profile(evaluation: "Evaluation", metric: str, level: float) -> TailProfile:
    """Describe the worst-off share `level` of the users by `metric`, beside all others."""
    scores = choose("metric", metric, evaluation.scores)
    inside = in_tail(scores, level)
    outside = ~inside & ~np.isnan(scores)
    users = evaluation.users
    known = {
        "history_length": users.history_length,
        "target_count": users.target_count,
        "popularity": users.popularity,
        "loss": evaluation.losses,
        "weight": _relative(evaluation.weights),
    }
    return TailProfile(
        metric=metric,
        level=level,
        inside=int(np.count_nonzero(inside)),
        outside=int(np.count_nonzero(outside)),
        properties={
            name: (Spread.of(values[inside]), Spread.of(values[outside]))
            for name, values in known.items()
            if values is not None
        },
        groups=_group_shares(users.group, inside, outside),
    )


def _relative(weights: Floats | None) -> Floats | None:
    """Return weights by their mean, so that those of all models are on one scale."""
    if weights is None or not weights.mean() > 0:
        return None
    return np.asarray(weights / weights.mean())


def _group_shares(
    labels: NDArray[Any] | None, inside: NDArray[np.bool_], outside: NDArray[np.bool_]
) -> dict[Any, tuple[float, float, float]]:
    """Return by label: the share of those inside, of those outside, and the group's risk."""
    if labels is None:
        return {}
    total = [max(int(np.count_nonzero(each)), 1) for each in (inside, outside)]
    found = {}
    for label in np.unique(labels):
        members = labels == label
        within, without = (int(np.count_nonzero(members & each)) for each in (inside, outside))
        if within + without:
            found[label.item()] = (
                within / total[0],
                without / total[1],
                within / (within + without),
            )
    return found
