"""Who the users are, and who of them is in the tail: history, popularity, groups, weight."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from safecf.data.matrices.csr import Csr
from safecf.errors import choose
from safecf.evaluation.json_records import to_json
from safecf.measures.tails import Floats, in_tail

if TYPE_CHECKING:
    from safecf.evaluation.result import Evaluation


@dataclass(frozen=True, eq=False)
class UserProfile:
    """Who the evaluated users are, one entry per user.

    Parameters
    ----------
    history_length
        Number of items in the history.
    target_count
        Number of held-out items.
    popularity
        Mean popularity of the items in the history, from 0 (the rarest item in training) to 1 (the
        most popular); NaN without a history.
    group
        The user's label, if the data have groups.
    ids
        The user's original id, if the split has ids: integers or strings.
    """

    history_length: NDArray[np.int64]
    target_count: NDArray[np.int64]
    popularity: Floats
    group: NDArray[Any] | None = None
    ids: NDArray[Any] | None = None


def describe_users(train: Csr, history: Csr, target: Csr, groups: Any, ids: Any) -> UserProfile:
    """Describe the users; an item's popularity is its mid-rank by training users, from 0 to 1."""
    popularity = np.bincount(train.indices, minlength=train.num_columns)
    percentile = (scipy.stats.rankdata(popularity) - 0.5) / popularity.size
    length = np.diff(history.indptr)
    binary = Csr(history.indptr, history.indices, None, history.shape)
    mean = np.full(length.size, np.nan)
    np.divide(binary.row_mass(percentile), length, out=mean, where=length > 0)
    labels = _one_per_user("groups", groups, length.size)
    named = _one_per_user("ids", ids, length.size)
    return UserProfile(length, np.diff(target.indptr), mean, labels, named)


def _one_per_user(name: str, values: Any, users: int) -> NDArray[Any] | None:
    """Return labels as integers or strings; raise unless there is one per user."""
    if values is None:
        return None
    labels = np.asarray(values)
    if labels.shape != (users,):
        raise ValueError(
            f"{name} have shape {labels.shape}, while there are {users} users; give one per user"
        )
    if labels.dtype.kind in "iub":
        return labels
    # as objects: numpy's strings all take the space of the longest, and end before a NUL
    return np.array([str(each) for each in labels.tolist()], dtype=object)


@dataclass(frozen=True)
class Spread:
    """Mean and quantiles of one property of some users; NaN if there are no users."""

    mean: float
    q10: float
    q25: float
    median: float
    q75: float
    q90: float

    @classmethod
    def of(cls, values: NDArray[Any]) -> "Spread":
        """Summarise the values that are not NaN."""
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
        The metric, and the share of worst-off users.
    inside, outside
        Number of users in the tail, all who tie with its boundary included, and of the others.
    properties
        A `Spread` of the users inside and one of those outside, for each property that is known:
        "history_length", "target_count", "popularity", "loss" and "weight" (in training, divided
        by the mean over all users).
    groups
        By label, the group's share of the users inside, its share of those outside, and its risk:
        the share of the group that is in the tail.
    """

    metric: str
    level: float
    inside: int
    outside: int
    properties: dict[str, tuple[Spread, Spread]]
    groups: dict[Any, tuple[float, float, float]]

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as JSON values."""
        found: dict[str, Any] = to_json(self)
        return found


def tail_profile(evaluation: "Evaluation", metric: str, level: float) -> TailProfile:
    """Describe the worst-off share `level` of the users by `metric`, beside all others."""
    if not hasattr(evaluation, "scores"):
        raise TypeError(
            f"the evaluation is of type {type(evaluation).__name__}; give what evaluate returns"
        )
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
    """Divide the weights by their mean, so that models can be compared."""
    if weights is None or not weights.mean() > 0:
        return None
    return np.asarray(weights / weights.mean())


def _group_shares(
    labels: NDArray[Any] | None, inside: NDArray[np.bool_], outside: NDArray[np.bool_]
) -> dict[Any, tuple[float, float, float]]:
    """Return by label: share of the users inside, share of those outside, risk."""
    if labels is None:
        return {}
    total = [max(int(np.count_nonzero(each)), 1) for each in (inside, outside)]
    found = {}
    for label in np.unique(labels).tolist():
        members = labels == label
        within, without = (int(np.count_nonzero(members & each)) for each in (inside, outside))
        if within + without:
            found[label] = (
                within / total[0],
                without / total[1],
                within / (within + without),
            )
    return found
