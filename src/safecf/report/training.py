"""How the models were trained: their losses, settings and convergence."""

from itertools import pairwise
from typing import Any

import numpy as np

from safecf.als.quantile import conditional_value_at_risk, value_at_risk
from safecf.evaluation.result import Evaluation
from safecf.report.content import Chart, Losses, Run, Series, rounded
from safecf.report.text import short

HISTOGRAM = 36
POINTS = 200  # epochs of a curve; longer ones are thinned
OBJECTIVES = {"objective": "objective", "cvar": "CVaR of the loss", "mean_loss": "mean loss"}
RESIDUALS = {
    "residual_users": "users U",
    "residual_items": "items V",
    "residual_weights": "weights z",
}


def losses(evaluation: Evaluation, level: float, style: int) -> Losses | None:
    """Count the users by their loss; what lies beyond nearly all of them is one number."""
    if evaluation.losses is None:
        return None
    values = evaluation.losses[np.isfinite(evaluation.losses)]
    if values.size == 0:
        return None
    low, high = float(values.min()), float(np.quantile(values, 0.995))
    var, cvar = value_at_risk(values, level), conditional_value_at_risk(values, level)
    high = max(high, cvar)
    if high <= low:
        low, high = low - 0.5, high + 0.5
    counts, edges = np.histogram(values, bins=HISTOGRAM, range=(low, high))
    chart = Chart(
        x=rounded((edges[:-1] + edges[1:]) / 2),
        series=[Series("users", style, rounded(counts))],
        y_format="count",
        labels=[f"Loss {short(a)} to {short(b)}" for a, b in pairwise(edges)],
        at=int(counts.argmax()),
    )
    return Losses(
        model=evaluation.model,
        edges=rounded(edges),
        chart=chart,
        var=var,
        cvar=cvar,
        mean=float(values.mean()),
        beyond=int((values > high).sum()),
    )


def run(evaluation: Evaluation, style: int) -> Run:
    """Describe how a model was trained, as far as it knows."""
    training = evaluation.training
    history: list[dict[str, Any]] = list(training.get("history") or [])
    facts: dict[str, Any] = {}
    if history:
        facts["epochs"] = len(history)
        seconds = [sum((epoch.get("seconds") or {}).values()) for epoch in history]
        facts["seconds"] = float(sum(seconds))
    for key in ("tail", "cvar"):
        if training.get(key) is not None:
            facts[key] = float(training[key])
    return Run(
        model=evaluation.model,
        style=style,
        kind=str(training.get("class") or ""),
        params=dict(training.get("params") or {}),
        facts=facts,
        objective=_curve(history, OBJECTIVES),
        residuals=_curve(history, RESIDUALS),
    )


def _curve(history: list[dict[str, Any]], names: dict[str, str]) -> Chart | None:
    """Values by epoch, of those names that the history has."""
    step = max(1, -(-len(history) // POINTS))
    # From the end, so that the last epoch is always there.
    epochs = history[::-1][::step][::-1]
    series = []
    for style, (key, name) in enumerate(names.items()):
        y = [float("nan") if epoch.get(key) is None else float(epoch[key]) for epoch in epochs]
        if np.isfinite(y).any():
            series.append(Series(name, style + 1, rounded(y)))
    if not series:
        return None
    x = [float(epoch.get("epoch", place + 1)) for place, epoch in enumerate(epochs)]
    return Chart(x, series, "Epoch {}", "count", "short", at=len(x) - 1)
