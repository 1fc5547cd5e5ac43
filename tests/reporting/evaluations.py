"""Evaluations made up for the report's tests."""

from dataclasses import replace
from typing import Any

import numpy as np

from safecf.evaluation import Comparison, Evaluation, UserProfile, compare

METRICS = ("recall@20", "recall@50", "ndcg@20")
TAILS = (0.1, 0.3, 0.5, 1.0)
GROUPS = np.repeat(np.arange(7), [10, 10, 10, 10, 10, 100, 50])  # five are small
HOSTILE = "</script><img src=x onerror=alert(1)> \"'&{} $title"


def history(epochs: int) -> list[dict[str, Any]]:
    names = ("objective", "mean_loss", "var", "cvar", "xi", "mean_weight")
    residuals = ("residual_users", "residual_items", "residual_weights")
    return [
        {
            "epoch": epoch,
            **dict.fromkeys(names, 0.3 + 1 / epoch),
            **dict.fromkeys(residuals, 10.0 / epoch**2),
            "seconds": {"users": 0.1, "items": 0.2},
        }
        for epoch in range(1, epochs + 1)
    ]


def make(
    model: str,
    *,
    users: int = 200,
    seed: int = 1,
    gain: float = 0.0,
    metrics: tuple[str, ...] = METRICS,
    epochs: int = 12,
    groups: Any = None,
    losses: bool = True,
) -> Evaluation:
    """Scores on a grid, like those of recall; a `gain` lifts the users below the median."""
    rng = np.random.default_rng(0)
    level = np.clip(rng.beta(1.3, 2.4, users), 0, 1)
    noise = np.random.default_rng(seed)
    scores = {}
    for metric in metrics:
        moved = level + noise.normal(0, 0.08, users) + gain * (level < np.median(level))
        scores[metric] = np.round(np.clip(moved, 0, 1) * 20) / 20
    return Evaluation(
        model=model,
        scores=scores,
        k=(20, 50),
        tails=TAILS,
        users=UserProfile(
            history_length=rng.integers(3, 300, users),
            target_count=rng.integers(1, 40, users),
            popularity=rng.uniform(0, 1, users),
            group=groups,
        ),
        catalogue={"coverage@20": 0.2 + gain, "gini@20": 0.9},
        training={
            "class": "SAFER2",
            "params": {"factors": 32, "tail": 0.3},
            "history": history(epochs),
            "tail": 0.3,
            "var": 0.3,
            "cvar": 0.4,
        }
        if epochs
        else {},
        losses=noise.gamma(4, 0.07, users) if losses else None,
        versions={"safecf": "0.0.0"},
    )


def repeated(splits: int = 3, users: int = 200, **options: Any) -> Comparison:
    """iALS and SAFER2 on several splits, each with some users of the others."""

    def on_splits(model: str, seed: int, gain: float) -> list[Evaluation]:
        found = []
        for split in range(splits):
            each = make(model, seed=seed + 10 * split, gain=gain, users=users, **options)
            ids = np.arange(users) + users // 2 * split
            group = None if each.users.group is None else each.users.group[ids % users]
            found.append(replace(each, users=replace(each.users, ids=ids, group=group)))
        return found

    return compare([on_splits("iALS", 1, 0.0), on_splits("SAFER2", 2, 0.15)], resamples=60)


def pair(**options: Any) -> Comparison:
    """iALS and a SAFER2 that is better for the worst-off."""
    second = make("SAFER2", seed=2, gain=0.15, **options)
    return compare([make("iALS", **options), second], resamples=60)
