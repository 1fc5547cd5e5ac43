"""The functions of cases: train a model, and score held-out users.

Settings are "data", "split", "on" ("test" or "validation"), "model" (the name of its class, or
"implicit"), its "options" and its "seed"; each function names further ones. "users" in a record are
numbered alike in all splits.
"""

from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.data import load_split
from reproduction.experiment import TINY, Record, Settings
from reproduction.run import threads
from safecf.data.splits.held_out import Split
from safecf.defaults import LEVEL, METRIC
from safecf.errors import choose
from safecf.evaluation import evaluate
from safecf.models import MODELS
from safecf.tuning import Choice, LogUniform, Range, Uniform, tune

SMALL = {"factors": 8, "block_size": 4, "batch_size": 50}  # the most for "tiny" data


def quality(settings: Settings) -> Record:
    """Return recall@20, 50 and 100 of every user, or "metrics", and "resolved": options by auto."""
    split = load_split(settings["data"], settings["split"])
    model = make_model(settings)
    model.fit(split.train, show_progress=False)
    known = [k for k in (20, 50, 100) if k < split.train.shape[1]]
    metrics = settings.get("metrics", ["recall"])
    found = evaluate(model, split, k=known, metrics=metrics, on=settings["on"])
    about = {"users": users_of(split, found.users.ids)}
    return {**found.scores, **about, "resolved": dict(getattr(model, "resolved", {}))}


def users_of(split: Split, ids: Any) -> NDArray[np.int64]:
    """Number users by their sorted ids, which are the same in all splits."""
    return np.searchsorted(np.unique(split.user_ids), np.asarray(ids))


def statistics(settings: Settings) -> Record:
    """Return numbers of users, items and interactions after the filters, and validation users."""
    split = load_split(settings["data"], settings["split"])
    parts = (split.validation, split.test)
    held_out = sum(part.nnz for each in parts for part in (each.history, each.target))
    facts = {
        "training users": split.train.shape[0],
        "validation users": split.validation.target.shape[0],
        "test users": split.test.target.shape[0],
        "items": split.train.shape[1],
        "training interactions": split.train.nnz,
        "interactions": split.train.nnz + held_out,
    }
    first = split.train.shape[0]
    ids = np.asarray(split.user_ids)[first : first + facts["validation users"]]
    return {"facts": facts, "validation users": users_of(split, ids)}


class _LastEpoch(Exception):  # noqa: N818 - not an error
    """Raised by the callback to end `fit` before the final fold-in."""


def course(settings: Settings) -> Record:
    """Return "rows", an epoch each: seconds by step, the model's history, and recalls.

    Users are scored after each epoch in settings["looks"]; scoring is not timed. Training ends with
    the last epoch, without the final fold-in.
    """
    split = load_split(settings["data"], settings["split"])
    model = make_model(settings)
    last = getattr(model, "iterations", 0)
    rows: list[dict[str, Any]] = []

    def callback(epoch: int, seconds: float, objective: float) -> None:
        rows.append(dict(vars(model.history[-1])) if last else {})
        if epoch + 1 in settings["looks"]:
            scores = evaluate(model, split, k=(20, 50), metrics=("recall",), on=settings["on"])
            for metric, tail in product(("recall@20", "recall@50"), (1.0, LEVEL)):
                rows[-1][f"{metric}, tail {tail:g}"] = scores.tail(metric, tail)
        if epoch + 1 == last:
            raise _LastEpoch

    with suppress(_LastEpoch):
        model.fit(split.train, show_progress=False, callback=callback)
    return {"rows": rows}


def tuned(settings: Settings) -> Record:
    """Return "trials" of `safecf.tune`: options, epochs, mean and tail of the validation users.

    "space" has the arguments of `range_of`, or None for what is not searched. Test users are never
    scored: the final evaluation, too, is on the validation users.
    """
    split = load_split(settings["data"], settings["split"])
    found = tune(
        make_model(settings),
        replace(split, test=split.validation),
        metric=settings.get("metric", METRIC),
        objective=settings["objective"],
        trials=settings["trials"],
        space={name: each and range_of(*each) for name, each in settings["space"].items()},
        show_progress=False,
    )
    trials = [
        {"options": each.options, "epochs": each.epochs, "scores": each.scores}
        for each in found.searches[0].trials
        if each.scores is not None
    ]
    return {"trials": trials}


def range_of(kind: str, *values: Any) -> Range:
    """Return a range: "log" or "linear" with its ends and points of a grid, or "one of" values."""
    if kind == "one of":
        return Choice(values)
    return LogUniform(*values) if kind == "log" else Uniform(*values)


def make_model(settings: Settings) -> Any:
    """Return the model of a case, with the worker's number of threads."""
    here: dict[str, Any] = {"random_state": settings["seed"], "num_threads": threads()}
    if settings["model"] == "implicit":
        from implicit.als import AlternatingLeastSquares  # noqa: PLC0415 - it is optional

        return AlternatingLeastSquares(**here)
    kind, options = choose("model", settings["model"], MODELS), settings["options"]
    if settings["data"] == TINY:
        options = {name: min(each, SMALL.get(name, each)) for name, each in options.items()}
    known = kind().get_params()
    return kind(**options, **{name: value for name, value in here.items() if name in known})
