"""The model's own objective: the losses of its users, and how training went."""

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.als.quantile import conditional_value_at_risk, value_at_risk
from safecf.data.matrix import Csr, check_matrix
from safecf.evaluation.records import to_json
from safecf.models.fold_in import FoldIn
from safecf.models.recommender import Recommender

Floats = NDArray[np.float64]


def user_losses(model: Any, history: Any, batch: int) -> Floats | None:
    """Return loss_u of new users with their fold-in factors; None for models without a loss."""
    if not isinstance(model, FoldIn):
        return None
    parts = []
    for start in range(0, history.shape[0], batch):
        rows = history[start : start + batch]
        shown = check_matrix(rows, name="history", allow_empty=True)
        parts.append(model.user_losses(shown, model.fold_in(rows)))
    return np.concatenate(parts)


def user_weights(model: Any, losses: Floats | None) -> Floats | None:
    """Return w_u by these losses and the xi of the last epoch; None where there is no epoch."""
    if losses is None or not getattr(model, "history", []):
        return None
    weights: Floats = model._compose().risk.weights(losses, model.history[-1].xi)
    return weights


def describe_training(model: Any, train: Csr) -> dict[str, Any]:
    """Return class, options, epochs and the users' losses of a `Recommender`; else nothing.

    The losses are those of the stored factors, the fold-in solutions (w_u = 1), not those of the
    last epoch, and `var` and `cvar` are theirs; the epochs have their own. Users without
    interactions have NaN. `weights` are w_u of the last epoch.
    """
    if not isinstance(model, Recommender):
        return {}
    found: dict[str, Any] = {
        "class": type(model).__name__,
        "params": to_json(model.get_params()),
        "history": [to_json(asdict(epoch)) for epoch in getattr(model, "history", [])],
        "tail": None,
        "var": None,
        "cvar": None,
        "losses": None,
        "weights": None,
    }
    if not isinstance(model, FoldIn):
        return found
    found["tail"] = tail = min(float(model._compose().risk.tail), 1.0)
    users = model.user_factors
    if users is not None and len(users) == train.num_rows:
        active = np.diff(train.indptr) > 0
        losses = np.where(active, model.user_losses(train, users), np.nan)
        found["losses"], found["weights"] = losses, model.user_weights.copy()
        found["var"] = value_at_risk(losses[active], tail)
        found["cvar"] = conditional_value_at_risk(losses[active], tail)
    return found
