"""The models as estimators of pyspark.ml, in place of its ALS (`pip install safecf[spark]`).

>>> from safecf.spark import SAFER2
>>> model = SAFER2(rank=64, userCol="user", itemCol="movie", ratingCol="").fit(ratings)
>>> model.recommendForAllUsers(10)
"""

try:
    from safecf.spark.estimators import ERMMF, IALS, SAFER2
except ModuleNotFoundError as problem:
    if (problem.name or "").split(".")[0] != "pyspark":
        raise
    raise ImportError("safecf.spark needs pyspark; try pip install 'safecf[spark]'") from problem
from safecf.spark.evaluator import TailEvaluator, with_unobserved
from safecf.spark.models import ERMMFModel, IALSModel, SAFER2Model

__all__ = [
    "ERMMF",
    "IALS",
    "SAFER2",
    "ERMMFModel",
    "IALSModel",
    "SAFER2Model",
    "TailEvaluator",
    "with_unobserved",
]
