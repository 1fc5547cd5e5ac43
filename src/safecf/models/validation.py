"""Validation: how well held-out users are served while a model is being trained."""

from typing import Any

import numpy as np

from safecf.data.matrix import check_matrix
from safecf.errors import choose
from safecf.evaluation.metrics import METRICS
from safecf.evaluation.tail import check_level, tail_mean
from safecf.models.options import Integer
from safecf.models.recommender import Recommender


class Validation:
    """The mean of a metric over the worst-off share `level` of held-out users; 1 means all.

    Parameters
    ----------
    heldout
        What has a `history` and a `target`, such as `split.validation`.
    metric
        One of `METRICS` and its cutoff, as in "ndcg@100".
    level
        The share of worst-off users.
    patience
        Number of epochs without a better score after which training ends.
    num_items
        Number of items in training.
    """

    def __init__(
        self, heldout: Any, metric: str, level: float, patience: int, num_items: int
    ) -> None:
        if not (hasattr(heldout, "history") and hasattr(heldout, "target")):
            raise TypeError(
                f"validation is of type {type(heldout).__name__} and has no history and target; "
                "try split.validation"
            )
        name, _, cutoff = str(metric).partition("@")
        if not (cutoff.isdecimal() and int(cutoff) > 0):
            raise ValueError(f"metric={metric!r} has no cutoff; try metric='ndcg@100'")
        check_level(level)
        Integer(1, example=10)("patience", patience)
        for part in ("history", "target"):
            matrix = check_matrix(
                getattr(heldout, part),
                name=f"validation.{part}",
                columns=num_items,
                allow_empty=part == "history",
            )
            if matrix.num_rows != heldout.target.shape[0]:
                raise ValueError(
                    f"validation.history has {matrix.num_rows} rows and validation.target "
                    f"{heldout.target.shape[0]}; give both one row per user"
                )
        self.metric, self.cutoff = choose("metric", name, METRICS), int(cutoff)
        self.heldout, self.level, self.patience = heldout, level, int(patience)

    def score(self, model: Recommender) -> float:
        """Rank for the held-out users, computed from their histories, as `evaluate` does."""
        history = self.heldout.history
        users = np.arange(history.shape[0])
        ranked, _ = model.recommend(users, history, N=self.cutoff, recalculate_user=True)
        return tail_mean(self.metric(ranked, self.heldout.target, self.cutoff), self.level)
