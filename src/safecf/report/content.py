"""What the page shows, as plain records: the page and the data inside it are both made of these."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from safecf.evaluation.comparison import Difference
from safecf.evaluation.profile import TailProfile

Estimate = tuple[float, float, float]
NOTHING: Estimate = (float("nan"), float("nan"), float("nan"))


@dataclass(frozen=True)
class Series:
    """One line of a chart; `style` picks colour, dash and marker, 0 being the baseline's."""

    name: str
    style: int
    y: list[float]
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Chart:
    """Values over x, with how to write them; `at` is the point that is read out at first.

    `labels`, where there are any, name the points instead of x.
    """

    x: list[float]
    series: list[Series]
    x_text: str = "{}"
    x_format: str = "percent"
    y_format: str = "number"
    labels: list[str] = field(default_factory=list)
    at: int = 0


@dataclass(frozen=True)
class Losses:
    """The distribution of one model's losses, with where its tail begins and what it is worth."""

    model: str
    edges: list[float]
    chart: Chart
    var: float
    cvar: float
    mean: float
    beyond: int  # users to the right of the last edge


@dataclass(frozen=True)
class Bin:
    """Users with a property from `low` to `high`, and how much better they fare on average."""

    low: float
    high: float
    users: int
    gain: Estimate


@dataclass(frozen=True)
class Gains:
    """Who gains and who loses beside the baseline."""

    wins: int
    ties: int
    losses: int
    curve: Chart
    bins: dict[str, list[Bin]]


@dataclass(frozen=True)
class Group:
    """A group of users: its mean by model, and the share of it that is in the tail."""

    label: str
    users: int
    means: dict[str, float]
    risks: dict[str, float]


@dataclass(frozen=True)
class Panel:
    """Everything about one metric. Keys of the dictionaries are models, then levels."""

    metric: str
    users: int
    scores: dict[str, dict[float, Estimate]]
    differences: dict[str, dict[float, Difference]]
    verdicts: dict[str, str]
    curve: Chart
    gains: dict[str, Gains]
    profiles: dict[str, TailProfile]
    groups: list[Group]
    worst: dict[str, str]
    groups_left_out: int


@dataclass(frozen=True)
class Run:
    """How one model was trained."""

    model: str
    style: int
    kind: str
    params: dict[str, Any]
    facts: dict[str, Any]
    objective: Chart | None
    residuals: Chart | None


@dataclass(frozen=True)
class Content:
    """The whole page."""

    title: str
    metric: str
    level: float
    tails: list[float]
    confidence: float
    resamples: int
    baseline: str | None
    headline: str
    styles: dict[str, int]
    panels: dict[str, Panel]
    unscored: list[str]
    users: int
    catalogue: dict[str, dict[str, float]]
    losses: list[Losses]
    runs: list[Run]
    versions: dict[str, str]
    data: dict[str, str]

    @property
    def others(self) -> list[str]:
        """The models beside the baseline, the headline first."""
        rest = [model for model in self.styles if model not in (self.baseline, self.headline)]
        return [self.headline, *rest] if self.baseline is not None else []


def rounded(values: ArrayLike) -> list[float]:
    """Return values to six digits, as a curve needs no more; NaN stands for all that is not finite.

    A lift is infinite where the baseline is zero: no chart can show it.
    """
    data = np.asarray(values, dtype=np.float64).ravel()
    return [float(f"{value:.6g}") if math.isfinite(value) else math.nan for value in data]


def described(summary: Mapping[str, object] | str | None) -> dict[str, str]:
    """Return a description of the data as names and values."""
    if summary is None:
        return {}
    if isinstance(summary, Mapping):
        return {str(key): str(value) for key, value in summary.items()}
    return {"Data": str(summary)}
