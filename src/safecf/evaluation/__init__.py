"""Evaluation: one score per user, and the means, tails and comparisons that follow from them."""

from safecf.evaluation.comparison import Comparison, compare
from safecf.evaluation.difference import Difference
from safecf.evaluation.evaluator import evaluate, parse_metric
from safecf.evaluation.floors import Floor, find_floor
from safecf.evaluation.groups import Groups, GroupScore
from safecf.evaluation.profile import TailProfile, UserProfile, tail_profile
from safecf.evaluation.repeated import over_splits
from safecf.evaluation.result import Evaluation
from safecf.measures.metrics import METRICS
from safecf.measures.ranks import RANK_METRICS
from safecf.measures.tails import tail_mean, value_at_risk

__all__ = [
    "METRICS",
    "RANK_METRICS",
    "Comparison",
    "Difference",
    "Evaluation",
    "Floor",
    "GroupScore",
    "Groups",
    "TailProfile",
    "UserProfile",
    "compare",
    "evaluate",
    "find_floor",
    "over_splits",
    "parse_metric",
    "tail_mean",
    "tail_profile",
    "value_at_risk",
]
