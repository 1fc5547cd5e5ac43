"""The cell of most experiments: train a model and score every held-out user."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.base import Record, Settings
from reproduction.data import load_split
from reproduction.worker import threads
from safecf.data.splits.held_out import Split
from safecf.errors import choose
from safecf.evaluation import evaluate
from safecf.evaluation.alignment import held_out_ids
from safecf.models import MODELS, Recommender

CUTOFFS = (20, 50, 100)


def quality(settings: Settings) -> Record:
    """Return recall@20, 50 and 100 of every user of settings["on"], "test" or "validation".

    "users" in the record numbers these users in the same way in all splits. Further settings are
    "data", "split", "model" (the name of its class), its "options", and its "seed"; "metrics" names
    others than recall. What a model has found for options that are "auto" is in "resolved".
    """
    split = load_split(settings["data"], settings["split"])
    model = make_model(settings)
    start = time.perf_counter()
    model.fit(split.train, show_progress=False)
    seconds = time.perf_counter() - start
    cutoffs = [k for k in CUTOFFS if k < split.train.shape[1]]
    metrics = settings.get("metrics", ["recall"])
    found = evaluate(model, split, k=cutoffs, metrics=metrics, on=settings["on"])
    users = users_of(split, settings["on"])
    about = {"users": users, "fit_seconds": seconds, "resolved": dict(model.resolved)}
    return {**found.scores, **about}


def users_of(split: Split, on: str) -> NDArray[np.int64]:
    """Number the evaluated users by their sorted ids, which are the same in all splits."""
    return np.searchsorted(np.unique(split.user_ids), np.asarray(held_out_ids(split, on)))


def make_model(settings: Settings) -> Recommender:
    """Return the model of a cell, with the worker's number of threads."""
    kind = choose("model", settings["model"], MODELS)
    known = kind().get_params()
    here: dict[str, Any] = {"random_state": settings["seed"], "num_threads": threads()}
    chosen = {name: value for name, value in here.items() if name in known}
    return kind(**settings["options"], **chosen)
