"""The tail report: who is left behind, on one page."""

from safecf.reporting.page import report

__all__ = ["report"]
