"""The numbers that the page should show, computed from the evaluations."""

import math
from typing import Any

import numpy as np

from safecf.evaluation import Comparison, Evaluation, tail_profile

LEVEL = 0.3  # of the page


COUNTS = ("wins", "ties", "losses", "splits_won")
SHARES = ("risk", "coverage")
STATS = {"value", "relative", "group", "worst group", "catalogue", *COUNTS, *SHARES}
STATS |= {"loss mean", "loss var", "loss cvar"}


def written(stat: str, value: float) -> str:
    """How the page writes a number: a count, a share, a lift in percent, a loss, or a score."""
    form = ".4f"
    if stat == "relative":
        form = "+.1f"
    elif stat in COUNTS:
        form = ",.0f"
    elif stat in SHARES:
        value, form = 100 * value, ".3g"
    elif stat.startswith("loss "):
        form = f".{max(0, 2 - math.floor(math.log10(abs(value))))}f"
    unit = "\u00a0%" if stat in ("relative", *SHARES) else ""
    return f"{value:{form}}{unit}".replace("-", "\u2212")


def expected(
    results: Comparison, stat: str, metric: str, level: float, model: str, group: str
) -> Any:
    """Compute a number again; `level` is NaN and `group` empty if they do not apply."""
    evaluation = {each.model: each for each in (results.baseline, *results.others)}[model]
    if stat in ("group", "risk", "worst group"):
        return _group(evaluation, stat, metric, group, results.resamples)
    if stat.startswith("loss "):
        assert evaluation.losses is not None
        worst = np.sort(evaluation.losses)[-round(LEVEL * evaluation.losses.size) :]
        losses = {"mean": evaluation.losses.mean(), "var": worst[0], "cvar": worst.mean()}
        return losses[stat.removeprefix("loss ")]
    if stat in ("catalogue", "coverage"):
        return evaluation.catalogue[metric]
    if stat == "value":
        return evaluation.tail(metric, level)
    (change,) = results.differences(model, metric, [level])
    found = getattr(change, stat)
    return found[0] if stat in ("relative", "absolute") else found


def _group(evaluation: Evaluation, stat: str, metric: str, group: str, resamples: int) -> Any:
    groups = evaluation.groups(metric, resamples=resamples)
    profile = tail_profile(evaluation, metric, LEVEL)
    means: dict[str, float] = {f"group {each.label}": each.mean for each in groups.scores}
    risks: dict[str, float] = {f"group {key}": each[2] for key, each in profile.groups.items()}
    means["all users"] = evaluation.mean(metric)
    risks["all users"] = profile.inside / (profile.inside + profile.outside)
    if groups.smaller is not None:
        few = np.isin(
            evaluation.users.group, [each.label for each in groups.scores if not each.enough]
        )
        means[groups.smaller.label] = evaluation.scores[metric][few].mean()
        risks[groups.smaller.label] = (
            evaluation.scores[metric] <= evaluation.value_at_risk(metric, LEVEL)
        )[few].mean()
    if stat == "worst group":
        assert groups.worst is not None
        return groups.worst.mean
    return means[group] if stat == "group" else round(risks[group], 3)
