"""Cells of `course`, and curves from their results: values by epoch and by seconds."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from reproduction import presets
from reproduction.aggregate import Floats
from reproduction.base import Cell, Result
from reproduction.data import RECIPES, SEED
from reproduction.published import Column
from reproduction.tasks.course import course
from safecf.models.presets import Preset

EVERY, THEN = 50, 10  # users are scored after every epoch up to this one, then after every tenth
NEAR = 0.99  # the share of its best recall at which a model counts as converged
# Columns of a model's history in the CSV files; Mult-VAE has the objective only.
HISTORY = (
    "objective",
    "cvar",
    "mean_weight",
    "residual_users",
    "residual_items",
    "residual_weights",
)


class Curve(NamedTuple):
    """Values after some epochs, and the seconds of training up to each."""

    epochs: list[int]
    seconds: Floats
    values: Floats

    @property
    def converged(self) -> int:
        """The index of the first value that is at least `NEAR` times the best."""
        return int(np.argmax(self.values >= NEAR * self.values.max()))


def has_quality(data: str) -> bool:
    """Whether recall is meaningful: not on synthetic data, save "tiny", which tries the code."""
    return data == "tiny" or data not in RECIPES


def shape_of(data: str) -> str:
    """Return the data set whose shape synthetic data have, and whose presets they use.

    >>> shape_of("msd-like")
    'msd'
    """
    return data.removesuffix("-like")


def cell(
    preset: Preset, data: str, seed: int = 0, *, scored: bool = True, alone: bool = True
) -> Cell:
    """Return the cell of a model on the paper's split, with validation users scored or not.

    `alone` is part of the key: seconds of cells that shared the machine are not used.
    """
    settings = presets.settings(preset, data, SEED, seed, on="validation")
    last = int(preset.options["iterations"])
    looks = [epoch for epoch in range(1, last + 1) if epoch <= EVERY or epoch % THEN == 0]
    return Cell(course, {**settings, "looks": looks if scored else [], "alone": alone})


def seconds(result: Result) -> Floats:
    """Return the seconds of each epoch."""
    return np.asarray(np.sum(list(result.record["seconds"].values()), axis=0))


def median_seconds(result: Result, warm_up: int = 0) -> float:
    """Return the median seconds of an epoch, without the first `warm_up`."""
    return float(np.median(seconds(result)[warm_up:]))


def history(result: Result, name: str) -> Curve:
    """Return a column of the model's history."""
    values = np.array(result.record["history"][name])
    return Curve(list(range(1, len(values) + 1)), np.cumsum(seconds(result)), values)


def recall(results: Sequence[Result], column: Column) -> Curve:
    """Return the mean over seeds, up to the epoch in which the first of them ended."""
    found = [_recall(each, column) for each in results]
    epochs = min((each.epochs for each in found), key=len)
    size = len(epochs)
    return Curve(
        epochs,
        np.mean([each.seconds[:size] for each in found], axis=0),
        np.mean([each.values[:size] for each in found], axis=0),
    )


def last(results: Sequence[Result], column: Column, count: int) -> list[Floats]:
    """Return the last `count` recalls of every seed, or all if there are fewer."""
    return [_recall(each, column).values[-count:] for each in results]


def rows(names: Mapping[str, Any], result: Result) -> list[dict[str, Any]]:
    """Return rows of a CSV file, one per epoch, that start with `names`.

    Only cells that ran alone have seconds.
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
