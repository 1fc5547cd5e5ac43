"""What experiments on convergence and time share: their cells, and curves from the results."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from reproduction.aggregate import Floats
from reproduction.base import Cell, Result
from reproduction.course import course
from reproduction.data import RECIPES, SEED
from reproduction.presets import Preset
from reproduction.published import Column

EVERY, THEN = 50, 10  # looks at every epoch up to this one, and then at every tenth
NEAR = 0.99  # the share of its best recall at which a model has practically arrived
# What is written of a model's history; Mult-VAE knows of its objective only.
HISTORY = (
    "objective",
    "cvar",
    "mean_weight",
    "residual_users",
    "residual_items",
    "residual_weights",
)


class Curve(NamedTuple):
    """Values after some epochs, and when that was."""

    epochs: list[int]
    seconds: Floats
    values: Floats

    @property
    def arrival(self) -> int:
        """The place of the first value that is nearly the best one."""
        return int(np.argmax(self.values >= NEAR * self.values.max()))


def has_quality(data: str) -> bool:
    """Whether recall means anything: not for synthetic users; "tiny" is for trying it."""
    return data == "tiny" or data not in RECIPES


def shape_of(data: str) -> str:
    """Return the data set whose shape it has, and whose settings fit.

    >>> shape_of("msd-like")
    'msd'
    """
    return data.removesuffix("-like")


def cell(
    preset: Preset, data: str, seed: int = 0, *, scored: bool = True, alone: bool = True
) -> Cell:
    """Return the cell of a model on the paper's split, scored for the validation users or not.

    Cells that run alone are others than those that do not, whose seconds mean nothing.
    """
    settings = preset.settings(data, SEED, seed, on="validation")
    last = int(preset.options["iterations"])
    looks = [epoch for epoch in range(1, last + 1) if epoch <= EVERY or epoch % THEN == 0]
    return Cell(course, {**settings, "looks": looks if scored else [], "alone": alone})


def seconds(result: Result) -> Floats:
    """Return how long each epoch took."""
    return np.asarray(np.sum(list(result.record["seconds"].values()), axis=0))


def pace(result: Result, warm_up: int = 0) -> float:
    """Return the median of the seconds of an epoch, without the first ones."""
    return float(np.median(seconds(result)[warm_up:]))


def history(result: Result, name: str) -> Curve:
    """Return what the model recorded after every epoch."""
    values = np.array(result.record["history"][name])
    return Curve(list(range(1, len(values) + 1)), np.cumsum(seconds(result)), values)


def recall(results: Sequence[Result], column: Column) -> Curve:
    """Return the mean over starts; they end with the one that ends first."""
    found = [_recall(each, column) for each in results]
    epochs = min((each.epochs for each in found), key=len)
    size = len(epochs)
    return Curve(
        epochs,
        np.mean([each.seconds[:size] for each in found], axis=0),
        np.mean([each.values[:size] for each in found], axis=0),
    )


def last(results: Sequence[Result], column: Column, count: int) -> list[Floats]:
    """Return the last recalls from every start, as many as there are up to a number."""
    return [_recall(each, column).values[-count:] for each in results]


def rows(names: Mapping[str, Any], result: Result) -> list[dict[str, Any]]:
    """Return rows of a CSV file, which begin with names: all numbers after every epoch.

    What did not run alone has no seconds that would mean anything.
    """
    clock, known = np.cumsum(seconds(result)), result.record["history"]
    values = {
        f"{each['metric']}, tail {each['level']:g}": dict(
            zip(result.record["looks"], each["values"], strict=True)
        )
        for each in result.record["recalls"]
    }
    return [
        {
            **names,
            "seed": result.settings["seed"],
            "epoch": epoch,
            **({"seconds": round(float(clock[epoch - 1]), 4)} if result.settings["alone"] else {}),
            **{name: known[name][epoch - 1] if name in known else None for name in HISTORY},
            **{name: seen.get(epoch) for name, seen in values.items() if seen},
        }
        for epoch in range(1, len(clock) + 1)
    ]


def _recall(result: Result, column: Column) -> Curve:
    (values,) = (
        each["values"]
        for each in result.record["recalls"]
        if (each["metric"], each["level"]) == column
    )
    looks = result.record["looks"]
    clock = np.cumsum(seconds(result))
    return Curve(looks, clock[np.array(looks, dtype=int) - 1], np.array(values))
