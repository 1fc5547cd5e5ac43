"""The content of the page as plain records; its HTML and its JSON are both made from these."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from safecf.evaluation.difference import Difference
from safecf.evaluation.profile import TailProfile
from safecf.measures.bootstrap import Estimate


@dataclass(frozen=True)
class Series:
    """One line of a chart; `style` chooses colour, dash and marker (0 is the baseline's)."""

    name: str
    style: int
    y: list[float]
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Chart:
    """Values over x, and the formats to write them in.

    The read-out begins at point `at`, or with the text `rest` if there is one. `labels`, if any,
    name the points; else x does.
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
    """Histogram of one model's losses, with VaR, CVaR and mean.

    VaR and CVaR are NaN if the page is about all users.
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
    """Users with a property from `low` to `high`, and the mean difference of their scores."""

    low: float
    high: float
    users: int
    gain: Estimate


@dataclass(frozen=True)
class Gains:
    """How many users gain and lose compared with the baseline, and who they are."""

    wins: int
    ties: int
    losses: int
    curve: Chart
    bins: dict[str, list[Bin]]


@dataclass(frozen=True)
class Group:
    """A group of users: its mean and its risk, the share of it in the tail, by model.

    A group with few users has no intervals and no risks.
    """

    label: str
    users: int
    share: float
    enough: bool
    means: dict[str, Estimate]
    risks: dict[str, float]


@dataclass(frozen=True)
class GroupTable:
    """The groups with enough users, worst first; the smaller ones; these pooled; all users.

    `worst` has, by model, the worst of the large groups with its interval. `left_out` is the number
    of groups beyond the most that a page shows.
    """

    large: list[Group]
    small: list[Group]
    pooled: Group | None
    everybody: Group | None
    worst: dict[str, tuple[str, Estimate]]
    left_out: int


@dataclass(frozen=True)
class AtFloor:
    """A tail that is zero with every model, and the metric that is shown beside it, by model.

    `metric` is empty, and so are the dictionaries, if there is no such metric.
    """

    sentence: str
    metric: str
    tails: dict[str, Estimate]
    differences: dict[str, Difference]


@dataclass(frozen=True)
class Panel:
    """Everything about one metric; dictionaries are by model, then by level."""

    metric: str
    users: int
    scores: dict[str, dict[float, Estimate]]
    differences: dict[str, dict[float, Difference]]
    verdicts: dict[str, str]
    curve: Chart
    gains: dict[str, Gains]
    profiles: dict[str, TailProfile]
    groups: GroupTable
    caution: str
    floor: AtFloor | None = None


@dataclass(frozen=True)
class Progress:
    """A curve of training, by epoch."""

    title: str
    y_label: str
    log: bool
    chart: Chart


@dataclass(frozen=True)
class Run:
    """How one model was trained.

    `resolved` are the values of "auto" options, `differs` the options in which models of its class
    differ.
    """

    model: str
    kind: str
    params: dict[str, Any]
    resolved: dict[str, str]
    differs: dict[str, Any]
    facts: dict[str, float]
    progress: list[Progress]


@dataclass(frozen=True)
class TrialPoint:
    """A trial of tuning: its scores on the validation users; NaN if its training failed."""

    number: int
    state: str
    epochs: int
    mean: float
    tail: float
    options: dict[str, Any]


@dataclass(frozen=True)
class TunedModel:
    """The trials of one model; `best` and `front` are numbers of trials.

    Trial 0 are its defaults. `edges` are the options whose best value is near an end of the range,
    `minutes` is how long the trials took.
    """

    model: str
    style: int
    trials: list[TrialPoint]
    best: int
    front: list[int]
    ranges: dict[str, str]
    edges: list[str]
    minutes: float


@dataclass(frozen=True)
class Tuned:
    """How options were searched; `kind` is "mean", "tail" or "both"."""

    metric: str
    level: float
    kind: str
    pick: str
    users: int
    models: list[TunedModel]


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
    splits: int  # number of them
    distinct: int  # users, each of whom may appear in several splits
    tuned: Tuned | None = None

    @property
    def others(self) -> list[str]:
        """The models that are compared with the baseline, the headline first."""
        rest = [model for model in self.styles if model not in (self.baseline, self.headline)]
        return [self.headline, *rest] if self.baseline is not None else []

    @property
    def models(self) -> list[str]:
        """All models in the order of the tables: the baseline, the headline, the rest."""
        return [self.headline] if self.baseline is None else [self.baseline, *self.others]


def rounded(values: ArrayLike) -> list[float]:
    """Round to six digits, enough for a curve; infinite values cannot be drawn and become NaN."""
    data = np.asarray(values, dtype=np.float64).ravel()
    return [float(f"{value:.6g}") if math.isfinite(value) else math.nan for value in data]


def described(summary: Mapping[str, object] | str | None, title: str = "Data") -> dict[str, str]:
    """Return a text, or names and values, as names and texts."""
    if summary is None:
        return {}
    if isinstance(summary, Mapping):
        return {str(key): str(value) for key, value in summary.items() if value is not None}
    return {title: str(summary)}


def compact(value: Any) -> Any:
    """Round the numbers among JSON values to seven digits, more than the page shows."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {key: compact(item) for key, item in value.items()}
    return [compact(item) for item in value] if isinstance(value, list) else value
