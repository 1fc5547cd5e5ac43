"""What the page shows, as plain records: the page and the data inside it are both made of these."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from safecf.evaluation.difference import Difference
from safecf.evaluation.profile import TailProfile

Estimate = tuple[float, float, float]


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
    """Values over x, with how to write them.

    `at` is the point that is read out at first, unless `rest` has something better to say.
    `labels`, where there are any, name the points instead of x.
    """

    x: list[float]
    series: list[Series]
    x_text: str = "{}"
    x_format: str = "percent"
    y_format: str = "number"
    labels: list[str] = field(default_factory=list)
    at: int = 0
    rest: str = ""


@dataclass(frozen=True)
class Losses:
    """The distribution of one model's losses, with where its tail begins and what it is worth.

    A page about all users has no tail: VaR and CVaR are NaN.
    """

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
    """A group of users: its mean by model, and the share of it that is in each model's tail.

    With few users, there is no interval, and no such share.
    """

    label: str
    users: int
    share: float
    enough: bool
    means: dict[str, Estimate]
    risks: dict[str, float]


@dataclass(frozen=True)
class GroupTable:
    """The groups with enough users, worst first; the smaller ones; these together; everybody.

    `worst` is by model the worst case among the large ones, with its interval. `left_out` counts
    what a page has no room for.
    """

    large: list[Group]
    small: list[Group]
    together: Group | None
    everybody: Group | None
    worst: dict[str, tuple[str, Estimate]]
    left_out: int


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
    groups: GroupTable


@dataclass(frozen=True)
class Progress:
    """Something that training wrote down, epoch by epoch."""

    title: str
    y_label: str
    log: bool
    chart: Chart


@dataclass(frozen=True)
class Run:
    """How one model was trained; `differs` are the options that others of its kind have not."""

    model: str
    kind: str
    params: dict[str, Any]
    differs: dict[str, Any]
    facts: dict[str, float]
    progress: list[Progress]


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
    settings: dict[str, str]
    fingerprint: str

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


def described(summary: Mapping[str, object] | str | None, title: str = "Data") -> dict[str, str]:
    """Return a description, a text or names and values, as names and texts."""
    if summary is None:
        return {}
    if isinstance(summary, Mapping):
        return {str(key): str(value) for key, value in summary.items() if value is not None}
    return {title: str(summary)}


def compact(value: Any) -> Any:
    """Return JSON values with numbers to seven digits, which is more than a page shows."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {key: compact(item) for key, item in value.items()}
    return [compact(item) for item in value] if isinstance(value, list) else value
