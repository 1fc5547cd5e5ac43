"""`Evaluation`: the scores of every user, and what follows from them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from safecf.errors import choose
from safecf.evaluation import table
from safecf.evaluation.aggregates import aggregates
from safecf.evaluation.groups import Groups, GroupScore, group_scores
from safecf.evaluation.json_records import to_json
from safecf.evaluation.reading import EVALUATION, evaluation_fields
from safecf.evaluation.users import UserProfile
from safecf.measures import bootstrap
from safecf.measures.tails import check_level, tail_mean, value_at_risk

Floats = NDArray[np.float64]
Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How well one model serves every user of a set; made by `evaluate`.

    Parameters
    ----------
    model
        Name of the model.
    scores
        "recall@20" and the like: one score per user, NaN for users without held-out items. They
        are left out of all aggregates; `unscored` counts them.
    k, tails
        The cutoffs, and the shares of worst-off users that tables show.
    users
        Who the users are.
    catalogue
        "coverage@20" and the like: what is recommended to all users together.
    training
        "class", "params", "history" (a dict per epoch), "tail", "losses", "weights" (per training
        user, or None) with their "var" and "cvar"; empty where the model knows of none.
    losses
        Loss of each user under the model's own objective, after fold-in; None if it has none.
    weights
        Weight w_u that training would give each user for its loss; None if it weighs nobody.
    versions
        What it was computed with.
    data
        Fingerprint of the held-out users: only evaluations that share it can be compared.
    settings
        Whatever else it takes to get the same numbers again: names and values, as the caller gave
        them.
    """

    model: str
    scores: dict[str, Floats]
    k: tuple[int, ...]
    tails: tuple[float, ...]
    users: UserProfile
    catalogue: dict[str, float]
    training: dict[str, Any]
    losses: Floats | None
    versions: dict[str, str]
    weights: Floats | None = None
    data: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    _draws: dict[Any, dict[float, Floats]] = field(default_factory=dict, init=False, repr=False)
    _groups: dict[Any, Groups] = field(default_factory=dict, init=False, repr=False)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the per-user scores."""
        return tuple(self.scores)

    @property
    def scored_metrics(self) -> tuple[str, ...]:
        """The metrics that at least one user has a score of."""
        return tuple(name for name, each in self.scores.items() if np.isfinite(each).any())

    @property
    def unscored(self) -> int:
        """Number of users without held-out items."""
        return int(np.count_nonzero(self.users.target_count == 0))

    def mean(self, metric: str) -> float:
        """Mean over all users that have a score."""
        return self.tail(metric, 1.0)

    def tail(self, metric: str, level: float) -> float:
        """Mean of the worst level * n users, the CVaR of the metric; see `tail_mean`."""
        return tail_mean(self._scores(metric), level)

    def value_at_risk(self, metric: str, level: float) -> float:
        """Score on the boundary of the worst level * n users; see `value_at_risk`."""
        return value_at_risk(self._scores(metric), level)

    def interval(
        self,
        metric: str,
        level: float,
        confidence: float = 0.95,
        resamples: int = 2000,
        seed: int = 0,
    ) -> Interval:
        """Return the percentile bootstrap interval, over users, of `tail(metric, level)`."""
        draws = self.draws(metric, [level], resamples, seed)
        low, high = bootstrap.percentile_interval(draws, confidence)
        return float(low[0]), float(high[0])

    def draws(self, metric: str, levels: Sequence[float], resamples: int, seed: int) -> Floats:
        """Return the tail means of bootstrap draws, a column per level; see `resample`.

        They are kept: all intervals, and all comparisons, come from the same draws.
        """
        held = self._draws.setdefault((metric, resamples, seed), {})
        missing = [level for level in levels if level not in held]
        if missing:
            # The draws cost far more than the levels, so that all come at once.
            wanted = [level for level in {*missing, *self.tails} if level not in held]
            found = bootstrap.resample(self._scores(metric), wanted, resamples, seed)
            held.update(zip(wanted, found.T, strict=True))
        return np.stack([held[level] for level in levels], axis=1)

    def quantile_curve(
        self, metric: str, levels: Iterable[float] | None = None
    ) -> tuple[Floats, Floats]:
        """Return shares of users, and the score that as many users do not exceed.

        The default is every 1 % of the users. `tail_curve` gives the means below instead.
        """
        shares = _levels(levels, np.linspace(0.01, 1, 100))
        values = self._scores(metric)
        return shares, np.array([value_at_risk(values, level) for level in shares])

    def tail_curve(
        self, metric: str, levels: Iterable[float] | None = None
    ) -> tuple[Floats, Floats]:
        """Return shares of users (default: `tails`), and the means of the worst-off by share."""
        shares = _levels(levels, self.tails)
        return shares, bootstrap.tail_means(self._scores(metric), shares)

    def groups(
        self, metric: str, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
    ) -> Groups:
        """Return how the groups of users fare, with intervals; see `Groups`."""
        key = (metric, confidence, resamples, seed)
        if key not in self._groups:
            self._groups[key] = group_scores(
                self.users.group,
                self._scores(metric),
                confidence=confidence,
                resamples=resamples,
                seed=seed,
            )
        return self._groups[key]

    def worst_group(self, metric: str) -> GroupScore | None:
        """Return the group that fares worst, of those with enough users; see `Groups.worst`."""
        return self.groups(metric).worst

    def rows(
        self,
        metrics: Sequence[str] | None = None,
        levels: Sequence[float] | None = None,
        confidence: float | None = None,
    ) -> list[dict[str, Any]]:
        """Return a record per metric and level: model, metric, level, value, with low and high.

        There are no intervals, which take a moment, unless `confidence` is given.
        """
        return table.rows(self, *self._chosen(metrics, levels), confidence)

    def table(
        self,
        metrics: Sequence[str] | None = None,
        levels: Sequence[float] | None = None,
        confidence: float | None = None,
    ) -> str:
        """Return a Markdown table: one line per metric, one column per level."""
        return table.table(self, *self._chosen(metrics, levels), confidence)

    def to_dict(
        self,
        level: float = 0.3,
        confidence: float = 0.95,
        resamples: int = 2000,
        seed: int = 0,
    ) -> dict[str, Any]:
        """Return everything as JSON values, null for NaN, and all numbers that a report shows.

        These are in "aggregates", by metric: tails with intervals and VaR, the quantile curve, the
        groups, and the profile of the worst-off share `level`. The draws take a moment.
        """
        check_level(level)
        names = [each for each in self.__dataclass_fields__ if not each.startswith("_")]
        draws: dict[str, Any] = {"confidence": confidence, "resamples": resamples, "seed": seed}
        found: dict[str, Any] = to_json(
            {
                "format": EVALUATION,
                **{name: getattr(self, name) for name in names},
                "intervals": draws,
                "aggregates": aggregates(self, level=level, **draws),
            }
        )
        return found

    @classmethod
    def from_dict(cls, record: Any) -> Self:
        """Take back what `to_dict` returned; aggregates are computed anew when asked for."""
        return cls(**evaluation_fields(record))

    def __repr__(self) -> str:
        return f"Evaluation({self.model!r}, {len(self.users.target_count)} users)"

    def __str__(self) -> str:
        return self.table()

    def _scores(self, metric: str) -> Floats:
        return choose("metric", metric, self.scores)

    def _chosen(
        self, metrics: Sequence[str] | None, levels: Sequence[float] | None
    ) -> tuple[Sequence[str], Sequence[float]]:
        return (
            self.metrics if metrics is None else metrics,
            self.tails if levels is None else levels,
        )


def _levels(levels: Iterable[float] | None, default: Iterable[float]) -> Floats:
    return np.array(list(default if levels is None else levels), dtype=np.float64)
