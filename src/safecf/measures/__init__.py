"""Measures of rankings: hits, metrics per user, exposure, VaR and CVaR, bootstrap over users."""

from safecf.measures.bootstrap import Draws
from safecf.measures.metrics import METRICS
from safecf.measures.tails import tail_mean, value_at_risk

__all__ = ["METRICS", "Draws", "tail_mean", "value_at_risk"]
