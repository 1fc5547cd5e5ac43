"""What an evaluation says of each metric, as numbers: everything that its report shows."""

from typing import TYPE_CHECKING, Any

from safecf.evaluation.profile import tail_profile

if TYPE_CHECKING:
    from safecf.evaluation.result import Evaluation


def aggregates(
    evaluation: "Evaluation", *, level: float, confidence: float, resamples: int, seed: int
) -> dict[str, Any]:
    """Return by metric: tails with intervals and VaR, the quantile curve, groups, the profile.

    Metrics that no user has a score of are left out.
    """
    draws: dict[str, Any] = {"confidence": confidence, "resamples": resamples, "seed": seed}
    found = {}
    for metric in evaluation.scored_metrics:
        tails = []
        for each in sorted({*evaluation.tails, level, 1.0}):
            low, high = evaluation.interval(metric, each, **draws)
            tails.append(
                {
                    "level": each,
                    "value": evaluation.tail(metric, each),
                    "low": low,
                    "high": high,
                    "value_at_risk": evaluation.value_at_risk(metric, each),
                }
            )
        shares, scores = evaluation.quantile_curve(metric)
        found[metric] = {
            "tails": tails,
            "quantiles": {"share": shares, "score": scores},
            "groups": evaluation.groups(metric, **draws),
            "profile": tail_profile(evaluation, metric, level),
        }
    return found
