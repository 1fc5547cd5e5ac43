"""Self-scaling options: what "auto" means on given data; docs/defaults.md has the evidence."""

from typing import TYPE_CHECKING

from safecf.als.loss import Loss, Vector
from safecf.als.rows import Problem
from safecf.models.options import AUTO

if TYPE_CHECKING:
    from safecf.data.matrices.interactions import Interactions
    from safecf.models.als import ALSModel

# How much the unobserved pairs of an average user weigh, where the observed ones weigh 1.
UNOBSERVED = 15.0
# The bandwidth in standard deviations of the losses.
RELATIVE_BANDWIDTH = 1.5


def unobserved_weight(loss: Loss, problem: Problem) -> float:
    """B = c mean(a_u m_u) / |V|, over the users that count."""
    mass = loss.pair_weight(problem.user_mass) * problem.user_mass
    return UNOBSERVED * float(problem.counts @ mass) / problem.num_users / problem.num_items


def resolve(
    model: "ALSModel", interactions: "Interactions", user_count: Vector | None
) -> dict[str, float]:
    """Return the values of the options that only depend on the data, where they are "auto"."""
    if model.unobserved_weight != AUTO:
        return {}
    any_weight = model.settled({"unobserved_weight": 0.0})
    loss, ridge = any_weight.make_loss(), any_weight.make_ridge()
    problem = Problem(interactions, loss, ridge, tail=1.0, user_count=user_count)
    return {"unobserved_weight": unobserved_weight(loss, problem)}
