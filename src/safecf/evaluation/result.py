"""`Evaluation`: the scores of every user, and what follows from them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from safecf.defaults import CONFIDENCE, LEVEL, RESAMPLES, SEED
from safecf.errors import choose
from safecf.evaluation import aggregates
from safecf.evaluation.groups import Groups, GroupScore, group_scores
from safecf.evaluation.json_records import EVALUATION, evaluation_fields, to_json
from safecf.evaluation.profile import UserProfile
from safecf.measures import bootstrap
from safecf.measures.bootstrap import Draws, Estimate
from safecf.measures.tails import Floats, check_level, tail_mean, value_at_risk


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How well one model serves every user of a set; made by `evaluate`.

    Parameters
    ----------
    model
        Name of the model.
    scores
        By metric, such as "recall@20": one score per user. Users without held-out items have NaN
        and are left out of all aggregates; `unscored` counts them.
    k, tails
        The cutoffs, and the shares of worst-off users that tables show.
    users
        Who the users are.
    catalogue
        "coverage@20", "gini@20" and so on: how the recommendations spread over the items.
    training
        "class", "params", "history" (a dict per epoch), "tail", "losses" and "weights" (per
        training user, or None), "var" and "cvar" of the losses; empty for models without
        `get_params`.
    losses
        Loss of each user under the model's own objective, after fold-in; None if it has none.
    weights
        Weight w_u that training would give each user for that loss; None if it is not known.
    versions
        Versions of Python, the libraries and the native kernels.
    data
        Fingerprint of the held-out users: only evaluations that share it can be compared.
    settings
        Names and values given to `evaluate`, to repeat the evaluation.
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
        """The metrics for which at least one user has a score."""
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
        confidence: float = CONFIDENCE,
        resamples: int = RESAMPLES,
        seed: int = SEED,
    ) -> tuple[float, float]:
        """Return the percentile bootstrap interval, over users, of `tail(metric, level)`."""
        _, low, high = self.estimate(metric, level, Draws(resamples, confidence, seed))
        return low, high

    def estimate(self, metric: str, level: float, draws: Draws) -> Estimate:
        """Return `tail(metric, level)` with the low and high end of its interval."""
        drawn = self.resampled(metric, [level], draws)
        low, high = bootstrap.percentile_interval(drawn, draws.confidence)
        return self.tail(metric, level), float(low[0]), float(high[0])

    def resampled(self, metric: str, levels: Sequence[float], draws: Draws) -> Floats:
        """Return the tail means of bootstrap draws, one column per level; see `resample`.

        They are cached, because all intervals and comparisons use the same draws.
        """
        held = self._draws.setdefault((metric, draws.resamples, draws.seed), {})
        missing = [level for level in levels if level not in held]
        if missing:
            # Drawing costs far more than a further level, so all levels are computed at once.
            wanted = [level for level in {*missing, *self.tails} if level not in held]
            scores = self._scores(metric)
            found = bootstrap.resample(scores, wanted, draws.resamples, draws.seed)
            held.update(zip(wanted, found.T, strict=True))
        return np.stack([held[level] for level in levels], axis=1)

    def quantile_curve(
        self, metric: str, levels: Iterable[float] | None = None
    ) -> tuple[Floats, Floats]:
        """Return shares of users (default: every 1 %), and `value_at_risk` at each of them."""
        shares = _levels(levels, np.linspace(0.01, 1, 100))
        values = self._scores(metric)
        return shares, np.array([value_at_risk(values, level) for level in shares])

    def tail_curve(
        self, metric: str, levels: Iterable[float] | None = None
    ) -> tuple[Floats, Floats]:
        """Return shares of users (default: `tails`), and `tail` at each of them."""
        shares = _levels(levels, self.tails)
        return shares, bootstrap.tail_means(self._scores(metric), shares)

    def groups(
        self,
        metric: str,
        confidence: float = CONFIDENCE,
        resamples: int = RESAMPLES,
        seed: int = SEED,
    ) -> Groups:
        """Return the mean score of every group of users, with intervals; see `Groups`."""
        draws = Draws(resamples, confidence, seed)
        if (metric, draws) not in self._groups:
            found = group_scores(self.users.group, self._scores(metric), draws)
            self._groups[metric, draws] = found
        return self._groups[metric, draws]

    def worst_group(self, metric: str) -> GroupScore | None:
        """Return the group with the lowest mean, of those with enough users; see `Groups`."""
        return self.groups(metric).worst

    def rows(
        self,
        metrics: Sequence[str] | None = None,
        levels: Sequence[float] | None = None,
        confidence: float | None = None,
    ) -> list[dict[str, Any]]:
        """Return a record per metric and level: model, metric, level, value.

        With `confidence`, it has `low` and `high` too, the ends of the interval.
        """
        return aggregates.rows(self, *self._chosen(metrics, levels), confidence)

    def table(
        self,
        metrics: Sequence[str] | None = None,
        levels: Sequence[float] | None = None,
        confidence: float | None = None,
    ) -> str:
        """Return a Markdown table: one line per metric, one column per level."""
        return aggregates.table(self, *self._chosen(metrics, levels), confidence)

    def to_dict(
        self,
        level: float = LEVEL,
        confidence: float = CONFIDENCE,
        resamples: int = RESAMPLES,
        seed: int = SEED,
    ) -> dict[str, Any]:
        """Return everything as JSON values, null for NaN, with all numbers that a report shows.

        They are in "aggregates", by metric: tails with intervals and VaR, the quantile curve, the
        groups, and the profile of the worst-off share `level`.
        """
        check_level(level)
        names = [each for each in self.__dataclass_fields__ if not each.startswith("_")]
        draws = Draws(resamples, confidence, seed)
        found: dict[str, Any] = to_json(
            {
                "format": EVALUATION,
                **{name: getattr(self, name) for name in names},
                "intervals": draws,
                "aggregates": aggregates.by_metric(self, level, draws),
            }
        )
        return found

    @classmethod
    def from_dict(cls, record: Any) -> Self:
        """Read what `to_dict` returned; aggregates are computed again when asked for."""
        given = evaluation_fields(record)
        return cls(**{**given, "users": UserProfile(**given["users"])})

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
