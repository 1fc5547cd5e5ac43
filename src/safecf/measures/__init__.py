"""Measures of rankings: hits, ranks, metrics per user, exposure, tails, bootstrap over users."""

from safecf.measures.bootstrap import Draws
from safecf.measures.metrics import METRICS
from safecf.measures.ranks import RANK_METRICS
from safecf.measures.tails import tail_mean, value_at_risk

__all__ = ["METRICS", "RANK_METRICS", "Draws", "tail_mean", "value_at_risk"]
