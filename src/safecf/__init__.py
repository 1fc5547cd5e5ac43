"""Safe collaborative filtering: recommenders that look after the worst-off users.

>>> model = safecf.SAFER2(factors=32).fit(user_items)
>>> ids, scores = model.recommend(7, user_items[7])
"""

from importlib.metadata import version

from safecf.data import datasets, split
from safecf.data.interactions import Interactions
from safecf.errors import (
    ConvergenceWarning,
    FileFormatError,
    ModelFitError,
    NotFittedError,
    ParameterWarning,
    SolveError,
)
from safecf.evaluation import Comparison, Evaluation, compare, evaluate
from safecf.models import ERMMF, IALS, SAFER2, SAFER2CG, Recommender
from safecf.report import report

__version__ = version("safecf")

load = Recommender.load

__all__ = [
    "ERMMF",
    "IALS",
    "SAFER2",
    "SAFER2CG",
    "Comparison",
    "ConvergenceWarning",
    "Evaluation",
    "FileFormatError",
    "Interactions",
    "ModelFitError",
    "NotFittedError",
    "ParameterWarning",
    "Recommender",
    "SolveError",
    "__version__",
    "compare",
    "datasets",
    "evaluate",
    "load",
    "report",
    "split",
]
