"""Approximate search: the items of a model as an index of usearch or faiss, and what that gains.

>>> found = export(model, "items.usearch")
>>> found.check.recall[10], found.check.verdict
(0.998, 'Exact search takes 0.30 ms for one user: fast enough, no index is needed.')
"""

from safecf.approximate.exporting import Exported, export
from safecf.approximate.formats import FORMATS
from safecf.approximate.quality import Check, Speed

__all__ = ["FORMATS", "Check", "Exported", "Speed", "export"]
