"""Validation: how well held-out users are served while a model is being trained."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from safecf.data.matrices.csr import Csr
from safecf.data.matrices.csr_from_scipy import check_matrix
from safecf.errors import choose, shown
from safecf.measures.metrics import METRICS
from safecf.measures.ranks import RANK_METRICS, Ranks
from safecf.measures.tails import check_level, tail_mean
from safecf.models.options import Integer
from safecf.models.queries import PADDING_ID
from safecf.models.recommender import Recommender

METRIC, LEVEL, PATIENCE = "ndcg@100", 1.0, 15


@dataclass(frozen=True, eq=False)
class Validation:
    """The mean of a metric over the worst-off share `level` of held-out users; 1 means all.

    Training ends after `patience` epochs without a better score.
    """

    history: Csr
    target: Csr
    metric: str
    cutoff: int | None  # None: over the whole ranking
    level: float
    patience: int

    def score(self, model: Recommender) -> float:
        """Rank for the held-out users, computed from their histories, as `evaluate` does."""
        history, target = self.history.to_scipy(), self.target.to_scipy()
        if self.cutoff is None:
            rank, held_out = model.ranks(history, target), np.diff(self.target.indptr)
            user = np.repeat(np.arange(self.target.num_rows), held_out)
            candidates = self.history.num_columns - np.diff(self.history.indptr)
            scores = Ranks.of(user, rank, held_out, candidates).scores(RANK_METRICS[self.metric])
        else:
            users = np.arange(self.history.num_rows)
            ranked, _ = model.recommend(users, history, N=self.cutoff, recalculate_user=True)
            missing = self.cutoff - ranked.shape[1]  # there may be fewer items
            ranked = np.pad(ranked, ((0, 0), (0, missing)), constant_values=PADDING_ID)
            scores = METRICS[self.metric](ranked, target, self.cutoff)
        return tail_mean(scores, self.level)


def make_validation(
    heldout: Any, metric: str | None, level: float | None, patience: int | None, num_items: int
) -> Validation | None:
    """Check the arguments of a validation; None if there are no held-out users.

    Without them, the other arguments have to be None, which stands for the defaults.

    `heldout` has a `history` and a `target`, as `split.validation` has; `metric` is one of
    `METRICS` and its cutoff, as in "ndcg@100", or one of `RANK_METRICS`, as in "auc"; `num_items`
    is their number in training.
    """
    if heldout is None:
        given = {"metric": metric, "level": level, "patience": patience}
        useless = [name for name, value in given.items() if value is not None]
        if useless:
            raise ValueError(
                f"{useless[0]}={shown(given[useless[0]])} has no effect without held-out users; "
                f"pass validation=, such as split.validation, or leave {useless[0]} out"
            )
        return None
    metric = METRIC if metric is None else metric
    level = LEVEL if level is None else level
    patience = PATIENCE if patience is None else patience
    name, sign, cutoff = str(metric).partition("@")
    whole = not sign and name in RANK_METRICS
    if not whole and not (cutoff.isdecimal() and int(cutoff) > 0):
        raise ValueError(f"metric={shown(metric)} has no cutoff; try metric='ndcg@100'")
    if not whole:
        choose("metric", name, METRICS)
    check_level(level)
    Integer(1)("patience", patience, PATIENCE)
    history, target = _check_heldout(heldout, num_items)
    return Validation(history, target, name, None if whole else int(cutoff), level, int(patience))


def _check_heldout(heldout: Any, num_items: int) -> tuple[Csr, Csr]:
    """Check and return history and target."""
    if not (hasattr(heldout, "history") and hasattr(heldout, "target")):
        raise TypeError(
            f"validation is of type {type(heldout).__name__} and has no history and target; "
            "try split.validation"
        )
    history = check_matrix(
        heldout.history, name="validation.history", columns=num_items, allow_empty=True
    )
    target = check_matrix(heldout.target, name="validation.target", columns=num_items)
    if history.num_rows != target.num_rows:
        raise ValueError(
            f"validation.history has {history.num_rows} rows and validation.target "
            f"{target.num_rows}; give both one row per user"
        )
    return history, target
