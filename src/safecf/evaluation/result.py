"""`Evaluation`: the scores of every user, and what follows from them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from safecf.errors import choose
from safecf.evaluation import bootstrap
from safecf.evaluation.records import floats_from_json, to_json
from safecf.evaluation.tail import tail_mean, value_at_risk

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class UserProfile:
    """Who the evaluated users are, one entry per user.

    Parameters
    ----------
    history_length
        Number of items that the model was shown.
    target_count
        Number of held-out items.
    popularity
        Mean popularity of the items in the history, 0 (the rarest in training) to 1 (the most
        popular); NaN without a history.
    group
        The user's label, if the data have groups.
    """

    history_length: Counts
    target_count: Counts
    popularity: Floats
    group: NDArray[Any] | None = None


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
    _draws: dict[Any, dict[float, Floats]] = field(default_factory=dict, init=False, repr=False)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the per-user scores."""
        return tuple(self.scores)

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

    def groups(self, metric: str) -> dict[Any, tuple[float, int]]:
        """Return mean and number of the scored users by group label, the worst group first."""
        labels, values = self.users.group, self._scores(metric)
        if labels is None:
            return {}
        found = {}
        for label in np.unique(labels):
            inside = values[labels == label]
            inside = inside[~np.isnan(inside)]
            if inside.size:
                found[label.item()] = (float(inside.mean()), inside.size)
        return dict(sorted(found.items(), key=lambda entry: entry[1][0]))

    def worst_group(self, metric: str) -> tuple[Any, float, int] | None:
        """Return label, mean and number of users of the group that fares worst."""
        for label, (mean, count) in self.groups(metric).items():
            return label, mean, count
        return None

    def rows(
        self,
        metrics: Sequence[str] | None = None,
        levels: Sequence[float] | None = None,
        confidence: float | None = None,
    ) -> list[dict[str, Any]]:
        """Return a record per metric and level: model, metric, level, value, with low and high.

        There are no intervals, which take a moment, unless `confidence` is given.
        """
        found = []
        for metric in self.metrics if metrics is None else metrics:
            for level in self.tails if levels is None else levels:
                row = {"model": self.model, "metric": metric, "level": level}
                row["value"] = self.tail(metric, level)
                if confidence is not None:
                    row["low"], row["high"] = self.interval(metric, level, confidence)
                found.append(row)
        return found

    def table(
        self,
        metrics: Sequence[str] | None = None,
        levels: Sequence[float] | None = None,
        confidence: float | None = None,
    ) -> str:
        """Return a Markdown table: one line per metric, one column per level."""
        levels = self.tails if levels is None else levels
        rows = self.rows(metrics, levels, confidence)
        lines = [[self.model, *(_level_name(level) for level in levels)]]
        lines.append(["---"] * len(lines[0]))
        for start in range(0, len(rows), len(levels)):
            line = rows[start : start + len(levels)]
            lines.append([line[0]["metric"], *(_cell(row) for row in line)])
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values, null for NaN."""
        names = (each for each in self.__dataclass_fields__ if each != "_draws")
        found: dict[str, Any] = to_json({name: getattr(self, name) for name in names})
        return found

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        """Take back what `to_dict` returned."""
        users, group = record["users"], record["users"]["group"]
        training = dict(record["training"])
        for name in ("losses", "weights"):
            if training.get(name) is not None:
                training[name] = floats_from_json(training[name])
        losses, weights = (
            None if record[name] is None else floats_from_json(record[name])
            for name in ("losses", "weights")
        )
        return cls(
            model=record["model"],
            scores={name: floats_from_json(each) for name, each in record["scores"].items()},
            k=tuple(record["k"]),
            tails=tuple(record["tails"]),
            users=UserProfile(
                history_length=np.array(users["history_length"], dtype=np.int64),
                target_count=np.array(users["target_count"], dtype=np.int64),
                popularity=floats_from_json(users["popularity"]),
                group=None if group is None else np.array(group),
            ),
            catalogue=dict(record["catalogue"]),
            training=training,
            losses=losses,
            versions=dict(record["versions"]),
            weights=weights,
            data=record["data"],
        )

    def __repr__(self) -> str:
        return f"Evaluation({self.model!r}, {len(self.users.target_count)} users)"

    def __str__(self) -> str:
        return self.table()

    def _scores(self, metric: str) -> Floats:
        return choose("metric", metric, self.scores)


def _levels(levels: Iterable[float] | None, default: Iterable[float]) -> Floats:
    return np.array(list(default if levels is None else levels), dtype=np.float64)


def _level_name(level: float) -> str:
    return "all users" if level == 1 else f"worst {100 * level:g} %"


def _cell(row: dict[str, Any]) -> str:
    interval = f" [{row['low']:.4f}, {row['high']:.4f}]" if "low" in row else ""
    return f"{row['value']:.4f}{interval}"
