"""Convergence of SAFER2 with changed options, for `bandwidth`, `sampling` and `xi-steps`."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reproduction import curves, presets, published
from reproduction.aggregate import Floats, collect, heading
from reproduction.base import Cell, Options, Result, Results
from reproduction.page import Page, table
from reproduction.published import Column

NAME = "SAFER2"
LAST = 10  # epochs at the end, for the table
RESIDUALS = {
    "residual_users": r"$\Vert \Delta U\Vert$",
    "residual_items": r"$\Vert \Delta V\Vert$",
    "residual_weights": r"$\Vert \Delta z\Vert$",
}
HEADER = ["", "norm of ΔU", "of its largest", "of ΔV", "of Δz", "error of the mean weight"]
WATCHED = {"mean_weight": "mean weight", "cvar": "CVaR of training losses"}
EARLY = 2  # first epochs, which the axes of recalls need not include
ROUNDING = 1e-9  # smaller norms are shown as 0
SIGNIFICANT = 2.0  # standard errors
UNDECIDED = "not told apart"
SAME = 0.01  # a smaller relative difference counts as "almost the same"

Found = dict[str, list[Result]]
Measure = Callable[[list[Result], list[Column]], list[float]]


def _norm(name: str) -> Measure:
    """Return the mean norm over the last epochs, for each seed."""
    return lambda runs, _: [curves.history(each, name).values[-LAST:].mean() for each in runs]


def _swing(place: int) -> Measure:
    return lambda runs, columns: [np.ptp(of) for of in curves.last(runs, columns[place], LAST)]


def _recall(place: int) -> Measure:
    return lambda runs, columns: [of.mean() for of in curves.last(runs, columns[place], LAST)]


MEASURES = {
    "norm of ΔU": _norm("residual_users"),
    "norm of Δz": _norm("residual_weights"),
    "swing of the recall": _swing(0),
    "recall": _recall(0),
    "recall of the tail": _recall(1),
}


@dataclass(frozen=True)
class Claim:
    """A statement of the paper on two curves, made measurable.

    Parameters
    ----------
    text
        The statement.
    measure
        One of `MEASURES`.
    first, second
        The curves.
    relation
        ">" if the first should have the larger value, "=" if they should be almost the same.
    """

    text: str
    measure: str
    first: str
    second: str
    relation: str = ">"

    def line(self, found: Found, columns: list[Column]) -> list[str]:
        """Return a row of the table: the difference, paired by seed, and the verdict."""
        measure = MEASURES[self.measure]
        pairs = [np.array(measure(found[name], columns)) for name in (self.first, self.second)]
        differences = pairs[0] - pairs[1]
        mean, error = float(differences.mean()), _standard_error(differences)
        level = float(np.mean(pairs))
        difference = f"{mean:+.2g}" + ("" if math.isnan(error) else f" ± {error:.1g}")
        measured = f"{self.measure}, {self.first} less {self.second}"
        return [self.text, measured, difference, self.verdict(mean, error, level)]

    def verdict(self, mean: float, error: float, level: float) -> str:
        """Judge the claim by a difference, its standard error, and the mean level of both curves.

        >>> Claim("h = 1 is better", "R@20", "h = 1", "h = 2").verdict(0.003, 0.001, 0.3)
        'seen'
        """
        if math.isnan(error):
            return "not told by one start"
        margin = SIGNIFICANT * error
        if self.relation == "=":
            if abs(mean) + margin < SAME * level:
                return "seen"
            return "not seen" if abs(mean) - margin > SAME * level else UNDECIDED
        return UNDECIDED if abs(mean) <= margin else "seen" if mean > 0 else "the opposite"


@dataclass(frozen=True)
class Profile:
    """Curves of SAFER2 with the authors' settings and some options changed.

    Parameters
    ----------
    changes
        The changed options by the name of the curve.
    text
        The first paragraph of the page.
    claims
        Statements of the paper.
    drawn
        The curves of the figure; None means all.
    watched
        The column of the history in the last panel.
    """

    changes: Mapping[str, dict[str, Any]]
    text: str
    claims: tuple[Claim, ...]
    drawn: tuple[str, ...] | None = None
    watched: str = "mean_weight"

    def plan(self, options: Options) -> list[tuple[str, Cell]]:
        """Return the cells of every curve with every seed."""
        (preset,) = presets.require(options.data, "paper", (NAME,), options.presets)
        changed = {
            name: replace(preset, options={**preset.options, **change})
            for name, change in self.changes.items()
        }
        return [
            (name, curves.cell(each, options.data, seed, alone=False))
            for name, each in changed.items()
            for seed in presets.seeds(each, options.seeds)
        ]

    def render(self, results: Results, options: Options) -> Page:
        """Return tables of residual norms, quality and claims, and the curves."""
        found = collect(self.plan(options), results)
        columns = quality_columns(options.data)
        lines = [[name, *_line(each, columns)] for name, each in found.items()]
        drawn = {name: found[name] for name in self.drawn or found}
        return Page(
            [
                self.text,
                f"The validation users of the paper's split, {options.seeds} starts. All numbers "
                f"are of the last {LAST} epochs. Residual norms are those of the change of U, V "
                "and z in an epoch, that of U also as a share of its largest; they, and by which "
                "share of alpha the mean weight is off, are means over epochs and starts. Recalls "
                "are means over the epochs, and then over the starts ± their standard deviation; "
                "what they swing is the difference of the largest and the smallest one within a "
                "start. The paper shows curves for ML-20M, and no numbers.",
                table(_header(columns), lines),
                "What the paper says of ML-20M, and whether it is seen here: differences of two "
                "curves from the same starts, means ± standard errors. A difference is one beyond "
                f"{SIGNIFICANT:g} standard errors; almost the same is what differs by less than "
                f"{SAME:.0%}, those {SIGNIFICANT:g} standard errors included.",
                table(
                    ["the paper", "measured", "difference", "verdict"],
                    [claim.line(found, columns) for claim in self.claims],
                ),
            ],
            [
                row
                for name, runs in found.items()
                for each in runs
                for row in curves.rows({"curve": name}, each)
            ],
            lambda: draw(drawn, columns, self.watched),
            f"Residual norms, validation recall and {WATCHED[self.watched]} by epoch; recalls are "
            "means over the starts, the others are those of the first",
        )


def quality_columns(data: str) -> list[Column]:
    """Return the validation measure of the paper, for all users and for the worst-off 30 %."""
    (low, *_) = published.columns(data)
    return [(low[0], level) for level in (1.0, 0.3)]


def _header(columns: list[Column]) -> list[str]:
    return HEADER + [text for each in columns for text in (heading(each), "swings")]


def _line(runs: list[Result], columns: list[Column]) -> list[str]:
    norms = [float(np.mean(_norm(name)(runs, columns))) for name in RESIDUALS]
    left = np.mean([each[-LAST:].mean() / each.max() for each in map(_changes_of_users, runs)])
    error = float(np.mean([_error(each)[-LAST:].mean() for each in runs]))
    line = [*map(_short, norms), _short(error)]
    line.insert(1, f"{left:.2%}")
    for place in range(len(columns)):
        line.append(_spread(np.array(_recall(place)(runs, columns))))
        line.append(f"{np.mean(_swing(place)(runs, columns)):.4f}")
    return line


def _changes_of_users(result: Result) -> Floats:
    return curves.history(result, "residual_users").values


def _error(result: Result) -> Floats:
    """|mean weight / tail - 1|, which is 0 if xi is the quantile of the current losses."""
    weights = curves.history(result, "mean_weight").values
    return np.asarray(np.abs(weights / result.settings["options"]["tail"] - 1))


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else math.nan


def _short(value: float) -> str:
    return "0" if value < ROUNDING else f"{value:.2g}"


def _spread(values: Floats) -> str:
    spread = f" ± {values.std(ddof=1):.4f}" if len(values) > 1 else ""
    return f"{values.mean():.4f}{spread}"


def draw(found: Found, columns: list[Column], watched: str) -> Any:
    """Draw residual norms in the first row, recalls and the watched column in the second."""
    from reproduction.figures import line_style, panels  # noqa: PLC0415

    figure, axes = panels(6, columns=3, height=1.9)
    norms, recalls, last = axes[:3], axes[3:5], axes[5]
    for place, (name, runs) in enumerate(found.items()):
        style: dict[str, Any] = {"label": name, "markevery": (2 * place, 9)}
        style |= line_style(place)._asdict()
        for panel, residual in zip(norms, RESIDUALS, strict=True):
            curve = curves.history(runs[0], residual)
            panel.plot(
                curve.epochs, np.where(curve.values < ROUNDING, np.nan, curve.values), **style
            )
        for panel, column in zip(recalls, columns, strict=True):
            curve = curves.recall(runs, column)
            panel.plot(curve.epochs, curve.values, **style)
        curve = curves.history(runs[0], watched)
        last.plot(curve.epochs, curve.values, **style)
    labels = [*RESIDUALS.values(), *map(heading, columns), WATCHED[watched]]
    for panel, label in zip(axes, labels, strict=True):
        panel.set(xlabel="epoch", ylabel=label)
    for panel in norms:
        panel.set_yscale("log")
    for panel, column in zip(recalls, columns, strict=True):
        later = [curves.recall(runs, column).values[EARLY:] for runs in found.values()]
        if all(map(len, later)):
            panel.set_ylim(bottom=0.99 * min(map(min, later)))
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=len(found))
    return figure
