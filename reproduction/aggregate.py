"""From scores of users to numbers of tables: means, gains and intervals over seeds and splits."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from reproduction.base import Cell, Result, Results
from reproduction.published import Column
from safecf.defaults import RESAMPLES, SEED
from safecf.measures.bootstrap import percentile_interval, resample, tail_means_of_counts
from safecf.measures.tails import tail_mean

Floats = NDArray[np.float64]
Counts = NDArray[np.floating[Any]]  # how often each user is drawn; exact in float32
Name = TypeVar("Name", bound=Hashable)


class Estimate(NamedTuple):
    """A number, its standard deviation over seeds or splits (NaN for one), and a 95 % interval."""

    value: float
    spread: float
    low: float
    high: float

    @property
    def is_finite(self) -> bool:
        """Whether the interval is finite."""
        return bool(np.isfinite([self.low, self.high]).all())

    def in_percent(self) -> str:
        """Write a lift; empty if the baseline is 0 in some of the draws."""
        if not self.is_finite:
            return ""
        return f"{self.value:+.1f} % [{self.low:+.1f}, {self.high:+.1f}]"


class Gain(NamedTuple):
    """By how many percent one model is better than another, with 95 % bootstrap intervals.

    `splits` resamples splits, as if they had no users in common. `users` resamples users, each with
    all their appearances in test sets: a cluster bootstrap, which holds for other users. `won` is
    the share of splits on which the model is better.
    """

    value: float
    splits: tuple[float, float]
    users: tuple[float, float]
    won: float


def heading(column: Column) -> str:
    """Return the heading of a column.

    >>> heading(("recall@20", 0.3))
    'R@20, worst-off 30 %'
    """
    metric, level = column
    name = metric.replace("recall", "R").replace("ndcg", "nDCG")
    return name + ("" if level == 1 else f", worst-off {100 * level:g} %")


def collect(named: Iterable[tuple[Name, Cell]], results: Results) -> dict[Name, list[Result]]:
    """Group results by the names of their cells; both are in the same order."""
    found: dict[Name, list[Result]] = defaultdict(list)
    for (name, _), result in zip(named, results, strict=True):
        found[name].append(result)
    return dict(found)


def tails(results: Iterable[Result], column: Column) -> Floats:
    """Return the tail mean of each result."""
    metric, level = column
    return np.array([tail_mean(each.record[metric], level) for each in results])


def estimate(results: Sequence[Result], column: Column) -> Estimate:
    """Return the mean over seeds on one split, with an interval that resamples users."""
    values = tails(results, column)
    metric, level = column
    low, high = percentile_interval(_user_draws(results, metric, [level]))
    return Estimate(float(values.mean()), _spread(values), float(low[0]), float(high[0]))


def lift(before: Sequence[Result], after: Sequence[Result], column: Column) -> Estimate:
    """100 (after / before - 1) of the means over seeds; users are resampled in pairs."""
    metric, level = column
    return lifts(before, after, metric, [level])[0]


def lifts(
    before: Sequence[Result], after: Sequence[Result], metric: str, levels: Sequence[float]
) -> list[Estimate]:
    """Return `lift` at each level."""
    pair = (before, after)
    means = [[tails(each, (metric, level)).mean() for each in pair] for level in levels]
    low, high = percentile_interval(percent(*(_user_draws(each, metric, levels) for each in pair)))
    return [
        Estimate(float(percent(*mean)), np.nan, float(a), float(b))
        for mean, a, b in zip(means, low, high, strict=True)
    ]


def without_users(results: Results, users: Iterable[int]) -> Results:
    """Return the results without these users."""
    excluded = np.array(list(users))
    found = []
    for each in results:
        kept = ~np.isin(each.record["users"], excluded)
        record = {
            name: value[kept] if isinstance(value, np.ndarray) else value
            for name, value in each.record.items()
        }
        found.append(replace(each, record=record))
    return Results(tuple(found))


class Sample(NamedTuple):
    """A model's numbers in one column, means over seeds."""

    splits: list[int]  # their seeds, sorted
    values: Floats  # one per split
    draws: Floats  # means over splits, one per bootstrap draw of users


def samples(found: Mapping[Name, Sequence[Result]], column: Column) -> dict[Name, Sample]:
    """Return the samples of all models; the draws of users are the same for all."""
    counts = _drawn_users([each for results in found.values() for each in results])
    return {name: _sample(_splits(results), counts, column) for name, results in found.items()}


def _sample(splits: dict[int, list[Result]], counts: Counts, column: Column) -> Sample:
    values = np.array([tails(each, column).mean() for each in splits.values()])
    return Sample(list(splits), values, _clustered(splits, counts, column))


def over_splits(sample: Sample) -> Estimate:
    """Return the mean over splits, with an interval that resamples users, as `Gain.users` does."""
    values = sample.values
    return Estimate(float(values.mean()), _spread(values), *_interval(sample.draws))


def gain(before: Sample, after: Sample) -> Gain:
    """100 (mean after / mean before - 1) on the same splits; splits and users are paired."""
    if before.splits != after.splits:
        raise ValueError("the models were not run on the same splits; run both on the same")
    means = [before.values, after.values]
    chosen = _drawn_splits(len(means[0]))
    over = percent(*(each[chosen].mean(axis=1) for each in means))
    return Gain(
        float(percent(means[0].mean(), means[1].mean())),
        _interval(over),
        _interval(percent(before.draws, after.draws)),
        float(np.mean(means[1] > means[0])),
    )


def rows(name: str, results: Iterable[Result], columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Return the rows of a CSV file: a model's number for every split, seed and column."""
    return [
        {
            "data": each.settings["data"],
            "model": name,
            "split": each.settings["split"],
            "seed": each.settings["seed"],
            "metric": metric,
            "tail": level,
            "value": tail_mean(each.record[metric], level),
        }
        for each in results
        for metric, level in columns
    ]


def _splits(results: Iterable[Result]) -> dict[int, list[Result]]:
    found: dict[int, list[Result]] = defaultdict(list)
    for each in results:
        found[each.settings["split"]].append(each)
    return {split: found[split] for split in sorted(found)}


def _user_draws(results: Sequence[Result], metric: str, levels: Sequence[float]) -> Floats:
    """Return tail means for each draw of users, averaged over results with the same users."""
    draws = [resample(each.record[metric], levels) for each in results]
    return np.asarray(np.mean(draws, axis=0))


def _drawn_splits(count: int) -> NDArray[np.int64]:
    return np.random.default_rng(SEED).integers(count, size=(RESAMPLES, count))


def _drawn_users(results: Sequence[Result]) -> Counts:
    """Return how often each user is drawn, a column for each bootstrap draw."""
    users = np.unique(np.concatenate([each.record["users"] for each in results])).astype(int)
    rng = np.random.default_rng(SEED)
    counts = np.zeros((users[-1] + 1, RESAMPLES), dtype=np.float32)
    counts[users] = rng.multinomial(users.size, np.full(users.size, 1 / users.size), RESAMPLES).T
    return counts


def _clustered(splits: dict[int, list[Result]], counts: Counts, column: Column) -> Floats:
    """Return the mean over splits and seeds for each draw of users, weighted by `counts`."""
    metric, level = column
    total = np.zeros(counts.shape[1])
    for results in splits.values():
        drawn = counts[results[0].record["users"].astype(int)].T
        values = [tail_means_of_counts(each.record[metric], drawn, [level]) for each in results]
        total += np.mean(values, axis=0)[:, 0]
    return np.asarray(total / len(splits))


def _interval(draws: Floats) -> tuple[float, float]:
    low, high = percentile_interval(draws[:, None])
    return float(low[0]), float(high[0])


def _spread(values: Floats) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else np.nan


def percent(before: Any, after: Any) -> Any:
    """100 (after / before - 1), NaN where before = 0.

    >>> float(percent(0.5, 0.75)), float(percent(0.0, 0.1))
    (50.0, nan)
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.equal(before, 0), np.nan, 100 * (np.asarray(after) / before - 1))
