"""The cell that most experiments share: train a model, and score every held-out user."""

import time
from typing import Any

from safecf.errors import choose
from safecf.evaluation import evaluate
from safecf.experiments.base import Record, Settings
from safecf.experiments.data import load_split
from safecf.experiments.worker import threads
from safecf.models import MODELS, Recommender

CUTOFFS = (20, 50, 100)


def quality(settings: Settings) -> Record:
    """Return recall@20, 50 and 100 of every user of settings["on"], "test" or "validation".

    Further settings are "data", "split", "model" (the name of its class), its "options", and
    "seed", that of its initialisation.
    """
    split = load_split(settings["data"], settings["split"])
    model = make_model(settings)
    start = time.perf_counter()
    model.fit(split.train, show_progress=False)
    seconds = time.perf_counter() - start
    cutoffs = [k for k in CUTOFFS if k < split.train.shape[1]]
    found = evaluate(model, split, k=cutoffs, metrics=("recall",), on=settings["on"])
    return {**found.scores, "fit_seconds": seconds}


def make_model(settings: Settings) -> Recommender:
    """Return the model of a cell, with the worker's number of threads."""
    kind = choose("model", settings["model"], MODELS)
    known = kind().get_params()
    here: dict[str, Any] = {"random_state": settings["seed"], "num_threads": threads()}
    chosen = {name: value for name, value in here.items() if name in known}
    return kind(**settings["options"], **chosen)
