"""How the models were trained: their losses, settings and convergence."""

import math
from itertools import pairwise
from typing import Any

import numpy as np

from safecf.als.population import Population, conditional_value_at_risk, value_at_risk
from safecf.evaluation.result import Evaluation
from safecf.reporting.content import Chart, Losses, Progress, Run, Series, rounded
from safecf.reporting.text import percent, short

HISTOGRAM = 36
POINTS = 200  # epochs of a curve; longer ones are thinned
OBJECTIVES = {"objective": "objective", "cvar": "training CVaR", "mean_loss": "mean training loss"}
RESIDUALS = {
    "residual_users": "users U",
    "residual_items": "items V",
    "residual_weights": "weights z",
}
# Neither of the two, nor anything new: these lead training, or follow from the others.
INNER = {"epoch", "seconds", "var", "xi", "mean_weight"}
UNKNOWN = 4  # charts of what this page has no name for


def losses(evaluation: Evaluation, level: float, style: int) -> Losses | None:
    """Count the users by their loss; what lies beyond nearly all of them is one number."""
    if evaluation.losses is None:
        return None
    values = evaluation.losses[np.isfinite(evaluation.losses)]
    if values.size == 0:
        return None
    low, high = float(values.min()), float(np.quantile(values, 0.995))
    users = Population(values)
    mean = var = cvar = float(values.mean())
    rest = f"All users: mean {short(mean)}"
    if level < 1:
        var, cvar = value_at_risk(users, level), conditional_value_at_risk(users, level)
        rest = f"Worst-off {percent(level)}: {short(var)} and more, mean {short(cvar)}"
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


def runs(evaluations: list[Evaluation]) -> list[Run]:
    """Describe how every model was trained, as far as it knows."""
    found = []
    for each in evaluations:
        training = each.training
        kind, params = str(training.get("class") or ""), dict(training.get("params") or {})
        alike = [
            other.training.get("params") or {}
            for other in evaluations
            if other is not each and other.training.get("class") == kind and kind
        ]
        history = [epoch for epoch in training.get("history") or [] if isinstance(epoch, dict)]
        found.append(
            Run(
                model=each.model,
                kind=kind,
                params=params,
                differs={k: v for k, v in params.items() if any(v != o.get(k) for o in alike)},
                facts=_facts(history),
                progress=_progress(history, training.get("tail")),
            )
        )
    return found


def _facts(history: list[dict[str, Any]]) -> dict[str, float]:
    """Return the number of epochs, and how long they took, in all or by step."""
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
    """Draw what is known of the epochs, and whatever else their records hold."""
    objectives = dict(OBJECTIVES)
    if tail is None or tail >= 1:
        objectives.pop("cvar")  # it is the mean loss
    else:
        objectives["cvar"] = f"training CVaR, worst {percent(tail)}"
    wanted = [
        ("Objective", "value", False, objectives),
        ("Change per epoch", "norm", True, RESIDUALS),
    ]
    named = {*OBJECTIVES, *RESIDUALS, *INNER}
    unknown = dict.fromkeys(key for epoch in history for key in epoch if key not in named)
    wanted += [(key.replace("_", " "), "value", False, {key: key}) for key in unknown][:UNKNOWN]
    found = []
    for title, y_label, log, names in wanted:
        if (chart := _curve(history, names, log)) is not None:
            found.append(Progress(title, y_label, log, chart))
    return found


def _curve(history: list[dict[str, Any]], names: dict[str, str], log: bool) -> Chart | None:
    """Values by epoch, of those names that the history has, and that can be drawn."""
    step = max(1, -(-len(history) // POINTS))
    # From the end, so that the last epoch is always there.
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


def _number(value: Any) -> float:
    """Return a number of a record, NaN for whatever is none."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known else float("nan")
