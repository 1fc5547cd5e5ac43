"""The model's own objective: the losses of its users, and how training went."""

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safecf.als.population import Population, conditional_value_at_risk, value_at_risk
from safecf.data.matrices.csr import Csr
from safecf.evaluation.json_records import options_to_json, to_json
from safecf.models.als import ALSModel
from safecf.models.recommender import Recommender

Floats = NDArray[np.float64]


def user_weights(model: Any, losses: Floats | None) -> Floats | None:
    """Return w_u by these losses and the xi of the last epoch; None where there is no epoch.

    None as well where groups of users were weighed in training: nobody knows those of new users.
    """
    if losses is None or not getattr(model, "history", []) or model.group_weights is not None:
        return None
    weights: Floats = model.compose().risk.weights(Population(losses), model.history[-1].xi)
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
        "params": options_to_json(model.get_params()),
        "history": [to_json(asdict(epoch)) for epoch in getattr(model, "history", [])],
        "tail": None,
        "var": None,
        "cvar": None,
        "losses": None,
        "weights": None,
    }
    if not isinstance(model, ALSModel):
        return found
    found["tail"] = tail = min(float(model.compose().risk.tail), 1.0)
    users = model.user_factors
    if users is not None and len(users) == train.num_rows:
        has_some = np.diff(train.indptr) > 0
        losses = np.where(has_some, model.user_losses(train, users), np.nan)
        found["losses"], found["weights"] = losses, model.user_weights.copy()
        active = has_some & (model.user_counts > 0)
        population = Population(losses[active], model.user_counts[active])
        found["var"] = value_at_risk(population, tail)
        found["cvar"] = conditional_value_at_risk(population, tail)
    return found
