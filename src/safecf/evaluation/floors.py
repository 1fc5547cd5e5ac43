"""Floors: tails in which every user scores zero, with every model."""

from collections.abc import Sequence
from dataclasses import dataclass

from safecf.checks import check_list, check_type
from safecf.evaluation.result import Evaluation
from safecf.measures.ranks import RANK_METRICS
from safecf.measures.tails import level_name


@dataclass(frozen=True)
class Floor:
    """The tail of a metric is zero with every model, so that it cannot tell them apart.

    On sparse data most users have no hit among 20 recommendations.

    Parameters
    ----------
    metric, level
        The metric, and the share of worst-off users.
    beside
        The metric over the whole ranking to show beside it, whose tail is not zero; None if the
        evaluations have none.

    >>> print(Floor("recall@20", 0.3, "ndcg"))
    recall@20 is 0 for all of the worst-off 30 %, whatever the model; ndcg, over the whole ranking,
    is shown beside it
    """

    metric: str
    level: float
    beside: str | None

    def __str__(self) -> str:
        users = "all users" if self.level == 1 else f"all of the {level_name(self.level)}"
        said = f"{self.metric} is 0 for {users}, whatever the model"
        if self.beside is None:
            return f"{said}; evaluate again for ndcg over the whole ranking, which tells them apart"
        return f"{said}; {self.beside}, over the whole ranking, is shown beside it"


def find_floor(evaluations: Sequence[Evaluation], metric: str, level: float) -> Floor | None:
    """Return the floor that all models are at, or None if a tail is above zero."""
    given = check_list("evaluations", evaluations, "give a list, as in [evaluation]")
    if not given:
        raise ValueError("there is no evaluation; give at least one")
    for each in given:
        check_type("an entry of evaluations", each, Evaluation, "give what evaluate returns")

    def all_zero(name: str) -> bool:
        return all(each.tail(name, level) == 0 for each in given)

    if not all_zero(metric):
        return None
    known = [name for name in RANK_METRICS if all(name in each.scores for each in given)]
    return Floor(metric, level, next((name for name in known if not all_zero(name)), None))
