"""`Evaluation`: the scores of every user, and what follows from them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from safecf.caching import cached_property
from safecf.checks import check_list
from safecf.defaults import CONFIDENCE, LEVEL, RESAMPLES, SEED
from safecf.errors import choose
from safecf.evaluation import aggregates
from safecf.evaluation.groups import Groups, GroupScore, group_scores
from safecf.evaluation.json_records import EVALUATION, evaluation_fields, sealed, to_json
from safecf.evaluation.profile import UserProfile
from safecf.measures import bootstrap
from safecf.measures.bootstrap import Counts, Draws, Estimate
from safecf.measures.tails import Floats, check_level, check_levels, tail_mean, value_at_risk


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How well one model serves every user of a set; made by `evaluate`.

    An evaluation over several splits, made by `over_splits`, has one entry per appearance of a user
    in a split. Means and tails are those of the splits, averaged; intervals draw users, each with
    all their appearances. Quantiles, groups and profiles are of all appearances.

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
        "class", "params", "resolved" (the values of "auto" options), "history" (a dict per epoch),
        "tail", "losses" and "weights" (per training user, or None), "var" and "cvar" of the losses;
        empty for models without `get_params`.
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
    splits
        The number of the split, from 0, of every entry; None if there is only one split.
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
    splits: Counts | None = None
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

    @property
    def num_splits(self) -> int:
        """Number of splits."""
        return 1 if self.splits is None else int(self.splits.max()) + 1

    @cached_property
    def user_numbers(self) -> Counts:
        """The users, numbered from 0; a user has the same number in all splits."""
        if self.splits is None or self.users.ids is None:
            return np.arange(len(self.users.target_count))
        return np.unique(self.users.ids, return_inverse=True)[1]

    @property
    def num_users(self) -> int:
        """Number of distinct users."""
        return int(self.user_numbers.max(initial=-1)) + 1

    def caution(self, metric: str, level: float) -> str:
        """Say that the interval of `tail(metric, level)` has too few users, or return "".

        >>> evaluation.caution("recall@20", 0.3)
        'the worst-off 30 % of 4 users are 1.2 users, too few for an interval: it takes 20 of them,
        of 67 users'
        """
        check_level(level)
        users = np.unique(self.user_numbers[np.isfinite(self._scores(metric))]).size
        return bootstrap.caution(users, level)

    def split_tails(self, metric: str, levels: Sequence[float]) -> Floats:
        """Return the tail means on every split: one row per split, one column per level."""
        return np.array([bootstrap.tail_means(each, levels) for each in self._by_split(metric)])

    def mean(self, metric: str) -> float:
        """Mean over all users that have a score."""
        return self.tail(metric, 1.0)

    def tail(self, metric: str, level: float) -> float:
        """Mean of the worst level * n users, the CVaR of the metric; see `tail_mean`."""
        return float(np.mean([tail_mean(each, level) for each in self._by_split(metric)]))

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
            scores, rest = self._scores(metric), (draws.resamples, draws.seed)
            if self.splits is None:
                found = bootstrap.resample(scores, wanted, *rest)
            else:
                found = bootstrap.resample_clusters(
                    scores, wanted, self.user_numbers, self.splits, *rest
                )
            held.update(zip(wanted, found.T, strict=True))
        return np.stack([held[level] for level in levels], axis=1)

    def quantile_curve(
        self, metric: str, levels: Iterable[float] | None = None
    ) -> tuple[Floats, Floats]:
        """Return shares of users (default: every 1 %), and `value_at_risk` at each of them."""
        shares = np.array(check_levels(np.linspace(0.01, 1, 100) if levels is None else levels))
        values = self._scores(metric)
        return shares, np.array([value_at_risk(values, level) for level in shares])

    def tail_curve(
        self, metric: str, levels: Iterable[float] | None = None
    ) -> tuple[Floats, Floats]:
        """Return shares of users (default: `tails`), and `tail` at each of them."""
        shares = np.array(check_levels(self.tails if levels is None else levels))
        return shares, np.mean(self.split_tails(metric, list(shares)), axis=0)

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
            labels, scores = self.users.group, self._scores(metric)
            found = group_scores(labels, scores, draws, self.user_numbers)
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
        groups, and the profile of the worst-off share `level`. "checksum" is of everything else.
        """
        check_level(level)
        names = [each for each in self.__dataclass_fields__ if not each.startswith("_")]
        draws = Draws(resamples, confidence, seed)
        return sealed(
            to_json(
                {
                    "format": EVALUATION,
                    **{name: getattr(self, name) for name in names},
                    "intervals": draws,
                    "aggregates": aggregates.by_metric(self, level, draws),
                }
            )
        )

    @classmethod
    def from_dict(cls, record: Any) -> Self:
        """Read what `to_dict` returned; aggregates are computed again when asked for."""
        given = evaluation_fields(record)
        return cls(**{**given, "users": UserProfile(**given["users"])})

    def __repr__(self) -> str:
        splits = "" if self.splits is None else f" in {self.num_splits} splits"
        return f"Evaluation({self.model!r}, {self.num_users} users{splits})"

    def __str__(self) -> str:
        return self.table()

    def _scores(self, metric: str) -> Floats:
        return choose("metric", metric, self.scores)

    def _by_split(self, metric: str) -> list[Floats]:
        scores = self._scores(metric)
        if self.splits is None:
            return [scores]
        return [scores[self.splits == each] for each in range(self.num_splits)]

    def _chosen(
        self, metrics: Sequence[str] | None, levels: Sequence[float] | None
    ) -> tuple[Sequence[str], Sequence[float]]:
        names = "give a list of metrics, such as metrics=['recall@20']"
        return (
            self.metrics if metrics is None else check_list("metrics", metrics, names),
            self.tails if levels is None else check_levels(levels),
        )
