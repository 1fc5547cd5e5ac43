"""The glossary: what the words on the page mean."""

METRICS = {
    "recall": "Of what a user went on to like, the share that is among the first {k} "
    "recommendations. It is divided by {k} at most, so that 1 can be reached.",
    "ndcg": "Like recall, but a hit counts more the higher up it stands among the first {k} "
    "recommendations. 1 is a perfect order.",
    "precision": "Of the first {k} recommendations, the share that the user went on to like.",
    "map": "Average precision: how pure the list of {k} is down to each hit. 1 is a perfect list.",
    "mrr": "One divided by the place of the first hit among {k}: 1 for the first place, 0.5 for "
    "the second, 0 without a hit.",
    "hit": "1 if at least one of the first {k} recommendations is right, else 0.",
}

TERMS = {
    "Worst-off {level}": "The {level} of the users with the lowest scores, by each model's own "
    "scores: two models may leave different people behind. The number is their mean score.",
    "Lift": "How much higher the mean is than the baseline's, in percent of the baseline's.",
    "Interval": "If other users of the same kind had been drawn, the number would be inside in "
    "about {confidence} of the draws. An interval that includes zero means that the difference "
    "may be chance. It does not cover the chance in training; other seeds show that.",
    "Baseline": "The model that the others are compared with, user by user.",
    "Loss": "What a model makes small in training: how far its scores are from what the user "
    "did. Low is good, the opposite of the metrics.",
    "Weight in training": "How much a user counts in training, where 1 is the average. Safe "
    "training looks more at the users with high losses.",
    "VaR and CVaR": "Value at risk: the loss at which the worst-off {level} begin. Conditional "
    "value at risk: the mean loss of those users. The held-out users have theirs, and the users of "
    "the training have others.",
    "Coverage and Gini": "Coverage is the share of all items that anyone is recommended. Gini is "
    "0 if all items are shown equally often, and near 1 if a few take it all.",
    "p": "How often a difference at least this clear would appear if neither model were better.",
}


def explain(metrics: list[str]) -> list[tuple[str, str]]:
    """Return each kind of metric on the page, at its first cutoff, with what it means."""
    found: dict[str, tuple[str, str]] = {}
    for metric in metrics:
        kind, _, cutoff = metric.partition("@")
        if kind in METRICS and kind not in found:
            found[kind] = (metric, METRICS[kind].replace("{k}", cutoff or "K"))
    return list(found.values())
