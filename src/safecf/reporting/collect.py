"""From evaluations to the content of the page."""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from safecf.defaults import AUTO
from safecf.evaluation.result import Evaluation
from safecf.measures.tails import tail_mean, value_at_risk
from safecf.reporting.content import (
    Chart,
    Content,
    Losses,
    Progress,
    Run,
    Series,
    described,
    rounded,
)
from safecf.reporting.markup import level_name, short
from safecf.reporting.panels import panel
from safecf.reporting.source import Source
from safecf.reporting.tuned import tuned

if TYPE_CHECKING:
    from safecf.tuning import Tuning

HISTOGRAM = 36  # bars
POINTS = 200  # epochs of a curve; longer ones are thinned
OBJECTIVES = {"objective": "objective", "cvar": "training CVaR", "mean_loss": "mean training loss"}
RESIDUALS = {
    "residual_users": "users U",
    "residual_items": "items V",
    "residual_weights": "weights z",
}
NOT_SHOWN = {"epoch", "seconds", "var", "xi", "mean_weight", "bandwidth"}
UNKNOWN = 4  # charts of values that are not named above, at most


def collect(
    source: Source,
    title: str | None = None,
    data_summary: Mapping[str, object] | str | None = None,
    settings: Mapping[str, object] | str | None = None,
    tuning: "Tuning | None" = None,
) -> Content:
    """Compute everything that the page shows."""
    styles = source.styles
    evaluations = sorted(source.evaluations, key=lambda each: styles[each.model])
    distributions = [_losses(each, source.level, styles[each.model]) for each in evaluations]
    return Content(
        title=title or _title(source),
        metric=source.metric,
        level=source.level,
        tails=source.levels,
        confidence=source.draws.confidence,
        resamples=source.draws.resamples,
        baseline=source.baseline,
        headline=source.headline,
        styles=styles,
        panels={metric: panel(source, metric) for metric in source.metrics},
        unscored=source.unscored,
        users=len(evaluations[0].users.target_count),
        catalogue={each.model: dict(each.catalogue) for each in evaluations},
        losses=[each for each in distributions if each is not None],
        runs=_runs(evaluations),
        versions={key: value for each in evaluations for key, value in each.versions.items()},
        data=described(data_summary),
        settings=_settings(source) | described(settings, "Settings"),
        fingerprint=evaluations[0].data,
        splits=evaluations[0].num_splits,
        distinct=evaluations[0].num_users,
        tuned=None if tuning is None else tuned(tuning, styles),
    )


def _settings(source: Source) -> dict[str, str]:
    """Merge the settings of the evaluations; where they differ, the baseline's are shown."""
    found: dict[str, str] = {}
    for each in reversed(source.evaluations):
        found |= described(each.settings)
    return found


def _title(source: Source) -> str:
    """Name the models: `SAFER2 and ERM-MF compared with iALS`."""
    names = [model for model in source.styles if model != source.baseline]
    if source.baseline is None:
        return f"How {names[0]} serves its users"
    if len(names) > 3:
        return f"{len(names)} models compared with {source.baseline}"
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return f"{listed} compared with {source.baseline}"


def _losses(evaluation: Evaluation, level: float, style: int) -> Losses | None:
    """Make the histogram of the losses; the largest 0.5 % may lie outside and are counted."""
    if evaluation.losses is None:
        return None
    values = evaluation.losses[np.isfinite(evaluation.losses)]
    if values.size == 0:
        return None
    low, high = float(values.min()), float(np.quantile(values, 0.995))
    mean = var = cvar = float(values.mean())
    rest = f"All users: mean {short(mean)}"
    if level < 1:
        var, cvar = -value_at_risk(-values, level), -tail_mean(-values, level)
        name = level_name(level).capitalize()
        rest = f"{name}: {short(var)} and more, mean {short(cvar)}"
    high = max(high, cvar)
    if high <= low:
        low, high = low - 0.5, high + 0.5
    counts, edges = np.histogram(values, bins=HISTOGRAM, range=(low, high))
    chart = Chart(
        x=rounded((edges[:-1] + edges[1:]) / 2),
        series=[Series("users", style, rounded(counts))],
        y_format="count",
        labels=[f"Loss {short(a)} to {short(b)}:" for a, b in pairwise(edges)],
        rest=rest,
    )
    return Losses(
        model=evaluation.model,
        edges=rounded(edges),
        chart=chart,
        var=var if level < 1 else math.nan,
        cvar=cvar if level < 1 else math.nan,
        mean=mean,
        beyond=int((values > high).sum()),
    )


def _runs(evaluations: list[Evaluation]) -> list[Run]:
    """Describe how every model was trained, as far as its record goes."""
    found = []
    for each in evaluations:
        training = each.training
        kind, params = str(training.get("class") or ""), dict(training.get("params") or {})
        alike = [
            other.training.get("params") or {}
            for other in evaluations
            if other is not each and other.training.get("class") == kind and kind
        ]
        values = training.get("resolved") or {}
        resolved = {name: _digits(values[name]) for name in values if params.get(name) == AUTO}
        history = [epoch for epoch in training.get("history") or [] if isinstance(epoch, dict)]
        found.append(
            Run(
                model=each.model,
                kind=kind,
                params=params,
                resolved=resolved,
                differs={
                    k: f"{v}: {resolved[k]}" if k in resolved else v
                    for k, v in params.items()
                    if any(v != o.get(k) for o in alike)
                },
                facts=_facts(history),
                progress=_progress(history, training.get("tail")),
            )
        )
    return found


def _facts(history: list[dict[str, Any]]) -> dict[str, float]:
    """Return the number of epochs and, if known, the seconds that they took."""
    if not history:
        return {}
    facts = {"epochs": float(len(history))}
    spent = [epoch.get("seconds") for epoch in history]
    seconds = [
        sum(map(_number, each.values())) if isinstance(each, dict) else _number(each)
        for each in spent
    ]
    if np.isfinite(seconds).all():
        facts["seconds"] = float(sum(seconds))
    return facts


def _progress(history: list[dict[str, Any]], tail: float | None) -> list[Progress]:
    """Make the curves of objectives and residuals, and of other values in the history."""
    objectives = dict(OBJECTIVES)
    if tail is None or tail >= 1:
        objectives.pop("cvar")  # it is the mean loss
    else:
        objectives["cvar"] = f"training CVaR, {level_name(tail)}"
    wanted = [
        ("Objective", "value", False, objectives),
        ("Change per epoch", "norm", True, RESIDUALS),
    ]
    named = {*OBJECTIVES, *RESIDUALS, *NOT_SHOWN}
    unknown = dict.fromkeys(key for epoch in history for key in epoch if key not in named)
    wanted += [(key.replace("_", " "), "value", False, {key: key}) for key in unknown][:UNKNOWN]
    found = []
    for title, y_label, log, names in wanted:
        if (chart := _curve(history, names, log)) is not None:
            found.append(Progress(title, y_label, log, chart))
    return found


def _curve(history: list[dict[str, Any]], names: dict[str, str], log: bool) -> Chart | None:
    """Draw these values by epoch, if the history has any that can be drawn."""
    step = max(1, -(-len(history) // POINTS))
    # Thinned from the end, so that the last epoch is always kept.
    epochs = history[::-1][::step][::-1]
    series = []
    for style, (key, name) in enumerate(names.items()):
        y = [_number(epoch.get(key)) for epoch in epochs]
        if np.isfinite(y).any() and not (log and not np.nanmax(y) > 0):
            series.append(Series(name, style + 1, rounded(y)))
    if not series:
        return None
    x = [_number(epoch.get("epoch", place + 1)) for place, epoch in enumerate(epochs)]
    if not np.isfinite(x).all():
        x = [float(place + 1) for place in range(len(epochs))]
    return Chart(x, series, "Epoch {}", "count", "short", at=len(x) - 1)


def _digits(value: Any) -> str:
    """Write the value of an option with three digits."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _number(value: Any) -> float:
    """Return a number of a record; NaN if it is none."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known else float("nan")
