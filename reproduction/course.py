"""The cell of convergence and time: what every epoch of a model did, and how long it took."""

from contextlib import suppress
from typing import Any

from reproduction.base import Record, Settings
from reproduction.data import load_split
from reproduction.quality import make_model
from safecf.evaluation import evaluate
from safecf.measures.tails import tail_mean

CUTOFFS = (20, 50)
LEVELS = (1.0, 0.3)


class _Ended(Exception):  # noqa: N818 - nothing has gone wrong
    """Training has ended, and nobody is to be folded in."""


def course(settings: Settings) -> Record:
    """Return the model's history by name, its seconds by step, and recalls by metric and level.

    The users of settings["on"] are scored after each epoch of settings["looks"], which may be
    none, while the clock stands still. Training ends with the last epoch: what models do after it
    is nothing that anybody waits for here. The other settings are those of `quality`.
    """
    split = load_split(settings["data"], settings["split"])
    model: Any = make_model(settings)
    looks: list[int] = []
    recalls: list[dict[str, Any]] = [
        {"metric": f"recall@{k}", "level": level, "values": []} for level in LEVELS for k in CUTOFFS
    ]

    history: list[Any] = []

    def look(epoch: int, seconds: float, objective: float) -> None:
        history.append(model.history[-1])
        if epoch + 1 in settings["looks"]:
            on = settings["on"]
            scores = evaluate(model, split, k=CUTOFFS, metrics=("recall",), on=on).scores
            looks.append(epoch + 1)
            for each in recalls:
                each["values"].append(tail_mean(scores[each["metric"]], each["level"]))
        if epoch + 1 == model.iterations:
            raise _Ended

    with suppress(_Ended):
        model.fit(split.train, show_progress=False, callback=look)
    columns = _columns([vars(epoch) for epoch in history])
    return {
        "seconds": _columns(columns.pop("seconds")),
        "history": columns,
        "looks": looks,
        "recalls": recalls,
    }


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}
