"""Measures of rankings: hits, per-user metrics, tails, VaR and CVaR, the bootstrap over users."""

from safecf.measures.metrics import METRICS
from safecf.measures.tails import tail_mean, value_at_risk

__all__ = ["METRICS", "tail_mean", "value_at_risk"]
