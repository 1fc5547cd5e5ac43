"""Self-scaling options: what "auto" means on given data; docs/defaults.md has the evidence."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from safecf.als.loss import Loss, Vector
from safecf.als.rows import Problem
from safecf.defaults import AUTO

if TYPE_CHECKING:
    from safecf.data.matrices.interactions import Interactions
    from safecf.models.als import ALSModel

# How much the unobserved pairs of an average user weigh, where the observed ones weigh 1.
UNOBSERVED = 15.0
# The ridge of data with many long histories, of little data, and how it grows in between.
REGULARIZATION = (0.005, 0.02)
SCARCITY = 8.0
# The bandwidth in standard deviations of the losses.
RELATIVE_BANDWIDTH = 1.5


def unobserved_weight(loss: Loss, problem: Problem) -> float:
    """Return b = 15 evenness mean(a_u m_u) / |V|, over the users that count."""
    mass = loss.pair_weight(problem.user_mass) * problem.user_mass
    mean = float(problem.counts @ mass) / problem.num_users
    return UNOBSERVED * evenness(problem) * mean / problem.num_items


def evenness(problem: Problem) -> float:
    """Return sum_u (sum_i c_ui)^2 / sum_i c_ui^2 / sum_u n_u: 1 if confidences are equal.

    That is the share of the interactions that carry the confidences. Where a few of each user's
    have most of them, the others would count less than unobserved pairs.
    """
    users = problem.interactions.users
    if users.weights is None:
        return 1.0
    squared: Any = np.square(users.weights, dtype=np.float64)  # beyond float32, if they are large
    squares = replace(users, weights=squared).row_mass()
    carrying = np.where(squares > 0, problem.user_mass**2 / np.where(squares > 0, squares, 1), 0)
    return float((problem.counts @ carrying) / (problem.counts @ np.diff(users.indptr)))


def regularization(problem: Problem) -> float:
    """Return lambda = 8 / (N |U|^(1/3)), but from 0.005 to 0.02; N = sum_u n_u^2 / sum_u n_u.

    n_u is the number of the user's interactions, and N its mean over interactions.
    """
    length = np.diff(problem.interactions.users.indptr).astype(np.float64)
    typical = (problem.counts @ length**2) / (problem.counts @ length)
    return float(np.clip(SCARCITY / (typical * problem.num_users ** (1 / 3)), *REGULARIZATION))


def resolve(
    model: "ALSModel", interactions: "Interactions", user_count: Vector | None
) -> dict[str, float]:
    """Return the values of the "auto" options that depend on the data alone."""
    names = [
        name for name in ("regularization", "unobserved_weight") if getattr(model, name) == AUTO
    ]
    if not names:
        return {}
    some = model.settled(dict.fromkeys(names, 1.0))  # neither matters here
    loss = some.make_loss()
    problem = Problem(interactions, loss, some.make_ridge(), tail=1.0, user_count=user_count)
    found = {
        "regularization": lambda: regularization(problem),
        "unobserved_weight": lambda: unobserved_weight(loss, problem),
    }
    return {name: found[name]() for name in names}
