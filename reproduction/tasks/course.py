"""The cell of convergence and run time: what a model records in every epoch."""

from contextlib import suppress
from typing import Any

from reproduction.base import Record, Settings
from reproduction.data import load_split
from reproduction.tasks.quality import make_model
from safecf.defaults import LEVEL
from safecf.evaluation import evaluate
from safecf.measures.tails import tail_mean

CUTOFFS = (20, 50)
LEVELS = (1.0, LEVEL)


class _LastEpoch(Exception):  # noqa: N818 - not an error
    """Raised by the callback to end `fit` before the final fold-in."""


def course(settings: Settings) -> Record:
    """Return the model's history by column, its seconds by step, and recalls by metric and level.

    The users of settings["on"] are scored after each epoch in settings["looks"], which may be
    empty; scoring is not timed. Training ends with the last epoch, without the final fold-in. The
    other settings are those of `quality`.
    """
    split = load_split(settings["data"], settings["split"])
    model: Any = make_model(settings)
    looks: list[int] = []
    recalls: list[dict[str, Any]] = [
        {"metric": f"recall@{k}", "level": level, "values": []} for level in LEVELS for k in CUTOFFS
    ]

    history: list[Any] = []

    def callback(epoch: int, seconds: float, objective: float) -> None:
        history.append(model.history[-1])
        if epoch + 1 in settings["looks"]:
            on = settings["on"]
            scores = evaluate(model, split, k=CUTOFFS, metrics=("recall",), on=on).scores
            looks.append(epoch + 1)
            for each in recalls:
                each["values"].append(tail_mean(scores[each["metric"]], each["level"]))
        if epoch + 1 == model.iterations:
            raise _LastEpoch

    with suppress(_LastEpoch):
        model.fit(split.train, show_progress=False, callback=callback)
    columns = _columns([vars(epoch) for epoch in history])
    return {
        "seconds": _columns(columns.pop("seconds")),
        "history": columns,
        "looks": looks,
        "recalls": recalls,
    }


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}
