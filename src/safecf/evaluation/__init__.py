"""Evaluation: scores per user first, their tails and means after."""

from safecf.evaluation.comparison import Comparison, Difference, compare
from safecf.evaluation.evaluator import evaluate
from safecf.evaluation.groups import Groups, GroupScore
from safecf.evaluation.profile import TailProfile, tail_profile
from safecf.evaluation.result import Evaluation
from safecf.evaluation.users import UserProfile
from safecf.measures.metrics import METRICS
from safecf.measures.tails import tail_mean, value_at_risk

__all__ = [
    "METRICS",
    "Comparison",
    "Difference",
    "Evaluation",
    "GroupScore",
    "Groups",
    "TailProfile",
    "UserProfile",
    "compare",
    "evaluate",
    "tail_mean",
    "tail_profile",
    "value_at_risk",
]
