"""Ratios of models on the same splits, for `robustness`, `kernels` and `frontier`."""

from typing import Any, NamedTuple

import numpy as np

from reproduction.aggregate import Floats, Gain, Sample, gain, heading, percent, samples
from reproduction.base import Result
from reproduction.page import table
from reproduction.published import Column

Samples = dict[Column, dict[str, Sample]]  # by column and model

COLUMNS: list[Column] = [(f"recall@{k}", level) for level in (1.0, 0.3) for k in (20, 50)]

INTERVALS = (
    "There are two 95 % intervals. One draws splits, as if they were independent, though they "
    "share users. The other draws users, each with all their appearances among the test users of "
    "the splits: it tells how far the gain would hold for other users, and is the one to go by."
)


class Ratio(NamedTuple):
    """A model over a baseline in one column: the ratio on every split, and the gain over all."""

    model: str
    baseline: str
    column: Column
    values: Floats
    gain: Gain

    @property
    def name(self) -> str:
        """The model and its baseline."""
        return f"{self.model} / {self.baseline}"


def sampled(found: dict[str, list[Result]]) -> Samples:
    """Return the samples of all models in every column."""
    return {column: samples(found, column) for column in COLUMNS}


def ratios(known: Samples, pairs: list[tuple[str, str]]) -> list[Ratio]:
    """Return the ratios of all pairs of a model and its baseline, in every column."""
    return [
        Ratio(
            model,
            baseline,
            column,
            1 + percent(of[baseline].values, of[model].values) / 100,
            gain(of[baseline], of[model]),
        )
        for model, baseline in pairs
        for column, of in known.items()
    ]


def summary(found: list[Ratio]) -> str:
    """Return a table: gain with intervals, range of the ratios, and number of splits won."""
    lines = [
        [
            each.name,
            heading(each.column),
            finite("{:+.1f} %", each.gain.value),
            finite("[{:+.1f}, {:+.1f}]", *each.gain.splits),
            finite("[{:+.1f}, {:+.1f}]", *each.gain.users),
            finite("{:.3f} to {:.3f}", each.values.min(), each.values.max()),
            f"{round(each.gain.won * each.values.size)} of {each.values.size}",
        ]
        for each in found
    ]
    header = ["", "", "gain of the mean", "95 %, splits", "95 %, users", "ratios"]
    return table([*header, "splits won"], lines)


def finite(pattern: str, *numbers: float) -> str:
    """Write numbers; empty if one is not finite, since the baseline is 0."""
    return pattern.format(*numbers) if np.isfinite(numbers).all() else ""


def draw(found: list[Ratio]) -> Any:
    """Draw a panel per column with the distributions of all pairs."""
    from reproduction.figures import panels, violins  # noqa: PLC0415

    figure, axes = panels(len(COLUMNS), sharey="row")
    for column, panel in zip(COLUMNS, axes, strict=True):
        chosen = [each for each in found if each.column == column]
        names = [each.name.replace(" / ", "\nover ").replace("SAFER2, ", "") for each in chosen]
        violins(panel, [each.values for each in chosen], names)
        panel.axhline(1, color="#7F7F7F", linestyle="--", linewidth=0.8)
        panel.set_title(heading(column))
        panel.set_ylabel("ratio, one per split")
    return figure


def means(known: Samples) -> str:
    """Return a table of every model's means over the splits, and their standard deviations."""
    lines = []
    for name in known[COLUMNS[0]]:
        values = [of[name].values for of in known.values()]
        spread = [f" ± {v.std(ddof=1):.4f}" if v.size > 1 else "" for v in values]
        lines.append([name, *(f"{np.mean(v):.4f}{s}" for v, s in zip(values, spread, strict=True))])
    return table(["", *map(heading, COLUMNS)], lines)
