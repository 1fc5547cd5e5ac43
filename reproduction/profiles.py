"""What `bandwidth`, `sampling` and `xi-steps` share: how SAFER2 converges with other options."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reproduction import courses, presets, published
from reproduction.aggregate import Floats, collect, heading
from reproduction.base import Cell, Options, Result, Results
from reproduction.page import Page, table
from reproduction.published import Column

NAME = "SAFER2"
LAST = 10  # epochs at the end that the table is of
RESIDUALS = {
    "residual_users": r"$\Vert \Delta U\Vert$",
    "residual_items": r"$\Vert \Delta V\Vert$",
    "residual_weights": r"$\Vert \Delta z\Vert$",
}
HEADER = ["", "norm of ΔU", "of its largest", "of ΔV", "of Δz", "error of the mean weight"]
WATCHED = {"mean_weight": "mean weight", "cvar": "CVaR of training losses"}
EARLY = 2  # epochs that need not be within the panels of recalls
NOTHING = 1e-9  # norms below are rounding
SURE, UNSURE = 2.0, "not told apart"  # standard errors that make a difference, and if they do not
SAME = 0.01  # what is almost the same differs by a smaller share

Found = dict[str, list[Result]]
Measure = Callable[[list[Result], list[Column]], list[float]]


def _norm(name: str) -> Measure:
    """Return the mean norm of a change at the end, from every start."""
    return lambda runs, _: [courses.history(each, name).values[-LAST:].mean() for each in runs]


def _swing(place: int) -> Measure:
    return lambda runs, columns: [np.ptp(of) for of in courses.last(runs, columns[place], LAST)]


def _recall(place: int) -> Measure:
    return lambda runs, columns: [of.mean() for of in courses.last(runs, columns[place], LAST)]


MEASURES = {
    "norm of ΔU": _norm("residual_users"),
    "norm of Δz": _norm("residual_weights"),
    "swing of the recall": _swing(0),
    "recall": _recall(0),
    "recall of the tail": _recall(1),
}


@dataclass(frozen=True)
class Claim:
    """What the paper says of two curves, as something that can be measured.

    Parameters
    ----------
    text
        The claim.
    measure
        One of `MEASURES`.
    first, second
        The curves.
    relation
        ">" if the first is said to have more of it, "=" if they are said to be almost the same.
    """

    text: str
    measure: str
    first: str
    second: str
    relation: str = ">"

    def line(self, found: Found, columns: list[Column]) -> list[str]:
        """Return the difference of the curves, start by start, and whether it is as claimed."""
        measure = MEASURES[self.measure]
        pairs = [np.array(measure(found[name], columns)) for name in (self.first, self.second)]
        differences = pairs[0] - pairs[1]
        mean, error = float(differences.mean()), _standard_error(differences)
        level = float(np.mean(pairs))
        told = f"{mean:+.2g}" + ("" if math.isnan(error) else f" ± {error:.1g}")
        what = f"{self.measure}, {self.first} less {self.second}"
        return [self.text, what, told, self.verdict(mean, error, level)]

    def verdict(self, mean: float, error: float, level: float) -> str:
        """Return what a difference, its standard error and the level of both say of the claim.

        >>> Claim("h = 1 is better", "R@20", "h = 1", "h = 2").verdict(0.003, 0.001, 0.3)
        'seen'
        """
        if math.isnan(error):
            return "not told by one start"
        far = SURE * error
        if self.relation == "=":
            least, most = (abs(mean) + side * far for side in (-1, 1))
            return "seen" if most < SAME * level else "not seen" if least > SAME * level else UNSURE
        return UNSURE if abs(mean) <= far else "seen" if mean > 0 else "the opposite"


@dataclass(frozen=True)
class Profile:
    """SAFER2 with the authors' settings, but for some options.

    Parameters
    ----------
    changes
        By the name of a curve, the options that it changes.
    text
        What is changed.
    claims
        What the paper says of it.
    drawn
        The curves of the figure; None means all.
    watched
        What of the history the last panel shows.
    """

    changes: Mapping[str, dict[str, Any]]
    text: str
    claims: tuple[Claim, ...]
    drawn: tuple[str, ...] | None = None
    watched: str = "mean_weight"

    def plan(self, options: Options) -> list[tuple[str, Cell]]:
        """Return every curve from every start."""
        (preset,) = presets.require(options.data, "paper", (NAME,), options.presets)
        changed = {
            name: replace(preset, options={**preset.options, **change})
            for name, change in self.changes.items()
        }
        return [
            (name, courses.cell(each, options.data, seed, alone=False))
            for name, each in changed.items()
            for seed in each.seeds(options.seeds)
        ]

    def render(self, results: Results, options: Options) -> Page:
        """Return the residual norms and the quality of every curve."""
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
                f"{SURE:g} standard errors; almost the same is what differs by less than "
                f"{SAME:.0%}, those {SURE:g} standard errors included.",
                table(
                    ["the paper", "measured", "difference", "verdict"],
                    [claim.line(found, columns) for claim in self.claims],
                ),
            ],
            [
                row
                for name, runs in found.items()
                for each in runs
                for row in courses.rows({"curve": name}, each)
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
    return courses.history(result, "residual_users").values


def _error(result: Result) -> Floats:
    """|mean weight / tail - 1|: how far xi is from the quantile of the losses it was sought for."""
    weights = courses.history(result, "mean_weight").values
    return np.asarray(np.abs(weights / result.settings["options"]["tail"] - 1))


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else math.nan


def _short(value: float) -> str:
    return "0" if value < NOTHING else f"{value:.2g}"


def _spread(values: Floats) -> str:
    spread = f" ± {values.std(ddof=1):.4f}" if len(values) > 1 else ""
    return f"{values.mean():.4f}{spread}"


def draw(found: Found, columns: list[Column], watched: str) -> Any:
    """Draw the residual norms above, recalls and what else is watched below."""
    from reproduction.figures import look, panels  # noqa: PLC0415

    figure, axes = panels(6, columns=3, height=1.9)
    norms, recalls, last = axes[:3], axes[3:5], axes[5]
    for place, (name, runs) in enumerate(found.items()):
        style: dict[str, Any] = {"label": name, "markevery": (2 * place, 9)}
        style |= look(place)._asdict()
        for panel, residual in zip(norms, RESIDUALS, strict=True):
            curve = courses.history(runs[0], residual)
            panel.plot(
                curve.epochs, np.where(curve.values < NOTHING, np.nan, curve.values), **style
            )
        for panel, column in zip(recalls, columns, strict=True):
            curve = courses.recall(runs, column)
            panel.plot(curve.epochs, curve.values, **style)
        curve = courses.history(runs[0], watched)
        last.plot(curve.epochs, curve.values, **style)
    labels = [*RESIDUALS.values(), *map(heading, columns), WATCHED[watched]]
    for panel, label in zip(axes, labels, strict=True):
        panel.set(xlabel="epoch", ylabel=label)
    for panel in norms:
        panel.set_yscale("log")
    for panel, column in zip(recalls, columns, strict=True):
        later = [courses.recall(runs, column).values[EARLY:] for runs in found.values()]
        if all(map(len, later)):
            panel.set_ylim(bottom=0.99 * min(map(min, later)))
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=len(found))
    return figure
