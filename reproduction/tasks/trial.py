"""The cell of `tuning`: train, and score the validation users after some of the epochs."""

from typing import Any

import numpy as np

from reproduction.base import Record, Settings
from reproduction.data import load_split
from reproduction.tasks.quality import make_model
from safecf.evaluation import evaluate

METRICS = ("recall@20", "recall@50")


def trial(settings: Settings) -> Record:
    """Return recall@20 and 50 of each validation user, a row for each of settings["epochs"].

    Test users are never scored. Training that diverges before the first of the epochs has one row,
    of its last factors. The other settings are those of `quality`, without "on".
    """
    split = load_split(settings["data"], settings["split"])
    model = make_model(settings)
    wanted = [int(epoch) for epoch in settings["epochs"]]
    epochs: list[int] = []
    found: dict[str, list[Any]] = {metric: [] for metric in METRICS}

    def score(epoch: int) -> None:
        scores = evaluate(model, split, k=(20, 50), metrics=("recall",), on="validation").scores
        epochs.append(epoch)
        for metric in METRICS:
            found[metric].append(scores[metric])

    def callback(epoch: int, seconds: float, objective: float) -> None:
        if epoch + 1 in wanted:
            score(epoch + 1)

    model.fit(split.train, show_progress=False, callback=callback)
    if not epochs:
        score(0)
    return {"epochs": epochs, **{metric: np.array(rows) for metric, rows in found.items()}}
