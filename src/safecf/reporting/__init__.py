"""The tail report: how well the worst-off users are served, on one HTML page."""

from safecf.reporting.page import report

__all__ = ["report"]
