"""From the scores of users to rows of tables: means, gains and intervals over seeds and splits.

Seeds count as further splits: `safecf.evaluation` averages over them, and its intervals draw users,
each with all their appearances (a cluster bootstrap). published.toml has numbers of the paper.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from reproduction import settings
from reproduction.experiment import Result, Row, Tables, grouped
from reproduction.figures import GREY, panels, violins
from reproduction.page import heading
from safecf.defaults import RESAMPLES, SEED
from safecf.evaluation import Evaluation, compare, over_splits, tail_mean
from safecf.evaluation.profile import UserProfile

Column = tuple[str, float]  # a metric, and a tail level: the share of worst-off users, 1 for all
Known = dict[Any, Evaluation]  # by model
RATIOS: list[Column] = [(f"recall@{k}", level) for level in (1.0, 0.3) for k in (20, 50)]
PUBLISHED = settings("published")


def columns(data: str) -> list[Column]:
    """Return the four columns of Table 1; those of ML-1M for data that it does not have."""
    cutoffs = PUBLISHED["cutoffs"].get(data, PUBLISHED["cutoffs"]["ml-1m"])
    return [(f"recall@{k}", level) for level in (1.0, 0.3) for k in cutoffs]


def reported(data: str, source: str = "paper") -> dict[str, dict[Column, float]]:
    """Return the numbers of the "paper", or of the authors' "code", by model and column."""
    found = PUBLISHED[source].get(data, {})
    return {name: dict(zip(columns(data), each, strict=True)) for name, each in found.items()}


def evaluations(found: Mapping[Any, Sequence[Result]], without: Sequence[int] = ()) -> Known:
    """Return one evaluation per model, over its splits and seeds, without some of the users.

    A model without seeds counts once for every seed of the others, so that all can be compared.
    """
    most, known = max(map(len, found.values())), {}
    for name, results in found.items():
        repeated = [each for each in results for _ in range(most // len(results))]
        known[name] = over_splits([_evaluation(str(name), each, without) for each in repeated])
    return known


def _evaluation(name: str, result: Result, without: Sequence[int]) -> Evaluation:
    users = result.record["users"].astype(np.int64)
    zeros = np.zeros(users.size)
    scores = {
        metric: np.where(np.isin(users, without), np.nan, values)
        for metric, values in result.record.items()
        if metric != "users" and isinstance(values, np.ndarray)
    }
    profile = UserProfile(zeros.astype(int), zeros.astype(int) + 1, zeros, ids=users)
    data = f"{result.settings['data']}, split {result.settings['split']}"
    return Evaluation(name, scores, (), (), profile, {}, {}, None, {}, data=data)


def numbers(
    found: Mapping[Any, Sequence[Result]], columns: Sequence[Column], without: Sequence[int] = ()
) -> list[Row]:
    """Return a row for every model, split, seed and column."""
    return [
        {"data": each.settings["data"], "model": str(model), "split": each.settings["split"]}
        | {"seed": each.settings["seed"], "metric": metric, "tail": tail}
        | {"value": tail_mean(each.record[metric][~np.isin(each.record["users"], without)], tail)}
        for model, results in found.items()
        for each in results
        for metric, tail in columns
    ]


def by_split(rows: Iterable[Row]) -> dict[tuple[str, str, float], np.ndarray]:
    """Return means over seeds, one per split, by model, metric and tail of `numbers`."""
    found: dict[tuple[str, str, float], list[float]] = {}
    ordered = sorted(rows, key=lambda row: row["split"])
    for (*key, _), seeds in grouped(ordered, "model", "metric", "tail", "split").items():
        found.setdefault(tuple(key), []).append(np.mean([row["value"] for row in seeds]))
    return {key: np.array(values) for key, values in found.items()}


def means(rows: Sequence[Row], known: Known | None = None) -> list[Row]:
    """Return value and standard deviation by model and column: over splits, or seeds if one split.

    With evaluations also the ends of the interval.
    """
    splits = len({row["split"] for row in rows})
    of_split = by_split(rows if splits > 1 else [{**row, "split": row["seed"]} for row in rows])
    found = []
    for (model, metric, tail), values in of_split.items():
        row: Row = {"model": model, "metric": metric, "tail": tail, "value": float(values.mean())}
        row["std"] = float(values.std(ddof=1)) if values.size > 1 else None
        if known is not None:
            row["low"], row["high"] = known[model].interval(metric, tail)
        found.append(row)
    return found


def gains(known: Known, pairs: Iterable[tuple[Any, Any]], columns: Sequence[Column]) -> list[Row]:
    """Return by how many percent models are better than baselines, with 95 % intervals.

    `pairs` have the model first.
    """
    found = []
    for model, baseline in pairs:
        comparison = compare([known[baseline], known[model]])
        for metric, tail in columns:
            each = comparison.difference(0, metric, tail)
            ends = each.relative if each.has_lift else (None, None, None)
            row = {"model": str(model), "baseline": str(baseline), "metric": metric, "tail": tail}
            found.append(row | dict(zip(("gain", "low", "high"), ends, strict=True)))
    return found


def over(rows: Sequence[Row], gained: Sequence[Row]) -> list[Row]:
    """Add to gains what the splits say: their range, how many were won, and another interval.

    That interval draws splits, as if they had no users in common.
    """
    of_split = by_split(rows)
    found = []
    for row in gained:
        pair = [of_split[row[name], row["metric"], row["tail"]] for name in ("baseline", "model")]
        ratio = pair[1] / np.where(pair[0] == 0, np.nan, pair[0])
        size = ratio.size
        drawn = np.random.default_rng(SEED).integers(size, size=(RESAMPLES, size))
        before, after = (values[drawn].mean(axis=1) for values in pair)
        low, high = np.quantile(100 * (after / before - 1), [0.025, 0.975])
        more = {"smallest": float(ratio.min()), "largest": float(ratio.max())}
        more |= {"splits_low": float(low), "splits_high": float(high)}
        found.append({**row, **more, "won": int(np.sum(ratio > 1)), "splits": size})
    return found


def draw_ratios(pairs: Sequence[tuple[str, str]], tables: Tables) -> Any:
    """Draw a panel per column with the distributions over the splits of all pairs."""
    figure, axes = panels(len(RATIOS), sharey="row")
    of_split = by_split(tables["numbers"])
    names = [f"{model}\nover {baseline}".replace("SAFER2, ", "") for model, baseline in pairs]
    for column, panel in zip(RATIOS, axes, strict=True):
        violins(panel, [of_split[m, *column] / of_split[b, *column] for m, b in pairs], names)
        panel.axhline(1, color=GREY, linestyle="--", linewidth=0.8)
        panel.set(title=heading(*column), ylabel="ratio, one per split")
    return figure
